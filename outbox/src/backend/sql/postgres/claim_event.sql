-- Claims one event by its id, if it is due, nobody has its row locked, and no other of its key comes first.
-- $1 id, $2 worker, $3 now.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = $2, locked_at = clock_at($3)
WHERE seq = ANY (ARRAY(
    SELECT event.seq FROM outbox_event AS event
    WHERE event.id = $1::uuid AND event.status = 'pending' AND event.available_at <= (SELECT clock_at($3))
      AND head_of_key(event)
    FOR UPDATE SKIP LOCKED))
RETURNING seq, id::text, fence, event_type, event_version::bigint, payload::text, headers::text, attempts::bigint, crashes::bigint, max_attempts::bigint,
       (extract(epoch FROM available_at) * 1000000)::bigint, (extract(epoch FROM created_at) * 1000)::bigint, ordering_key
