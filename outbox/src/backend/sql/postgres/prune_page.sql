-- The next page of the table in order of seq: its last row, how many rows, how many may go, and whether all are young.
-- $1 status, $2 older_than_ms, $3 after, $4 page, $5 now.
SELECT max(seq), count(*),
       count(*) FILTER (WHERE status = $1 AND processed_at <= clock.now - $2::bigint * interval '1 millisecond'),
       coalesce(min(created_at) > min(clock.now) - $2::bigint * interval '1 millisecond', false)
FROM (SELECT clock_at($5) AS now) AS clock
CROSS JOIN (SELECT seq, status, processed_at, created_at FROM outbox_event WHERE seq > $3 ORDER BY seq LIMIT $4) AS page
