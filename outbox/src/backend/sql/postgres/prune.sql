-- Deletes what is finished and old enough within a page. $1 status, $2 older_than_ms, $3 after, $4 last, $5 now.
DELETE FROM outbox_event
WHERE seq > $3 AND seq <= $4 AND status = $1 AND status IN ('completed', 'dead_letter')
  AND processed_at <= (SELECT clock_at($5)) - $2::bigint * interval '1 millisecond'
