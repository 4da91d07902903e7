-- Claims one event by its id, if it is due and nobody has its row locked. $1 id, $2 worker, $3 now.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = $2, locked_at = clock_at($3)
WHERE seq = ANY (ARRAY(
    SELECT seq FROM outbox_event
    WHERE id = $1::uuid AND status = 'pending' AND available_at <= (SELECT clock_at($3))
    FOR UPDATE SKIP LOCKED))
RETURNING seq, id::text, fence, event_type, event_version, payload::text, headers::text, attempts, crashes, max_attempts,
       (extract(epoch FROM available_at) * 1000000)::bigint, (extract(epoch FROM created_at) * 1000)::bigint
