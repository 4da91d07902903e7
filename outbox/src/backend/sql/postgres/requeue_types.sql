-- A page of the dead letters of the given types get a new life. $1 types, $2 page, $3 now.
UPDATE outbox_event
SET status = 'pending', attempts = 0, crashes = 0, last_error = NULL, processed_at = NULL,
    locked_at = NULL, locked_by = NULL, available_at = clock_at($3)
WHERE status = 'dead_letter' AND seq = ANY (ARRAY(
    SELECT seq FROM outbox_event WHERE status = 'dead_letter' AND event_type = ANY ($1::text[])
    ORDER BY processed_at, seq LIMIT $2 FOR UPDATE SKIP LOCKED))
