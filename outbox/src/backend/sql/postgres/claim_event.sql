-- Claims one event by its id, if it is due, nobody has its row locked, and no other of its key comes first.
-- $1 id, $2 worker, $3 now.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = $2, locked_at = clock_at($3)
WHERE seq = ANY (ARRAY(
    SELECT event.seq FROM outbox_event AS event
    WHERE event.id = $1::uuid AND event.status = 'pending' AND event.available_at <= (SELECT clock_at($3))
      AND head_of_key(event)
    FOR UPDATE SKIP LOCKED))
RETURNING seq, id, fence, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at,
          created_at, ordering_key
