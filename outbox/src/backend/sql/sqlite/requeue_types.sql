-- A page of the dead letters of the given types get a new life. ?1 [type, …], ?2 page, ?3 now.
UPDATE outbox_event
SET status = 'pending', attempts = 0, crashes = 0, last_error = NULL, processed_at = NULL,
    locked_at = NULL, locked_by = NULL, available_at = clock_at(?3)
WHERE status = 'dead_letter' AND seq IN (
    SELECT seq FROM outbox_event INDEXED BY outbox_event_dead
    WHERE status = 'dead_letter' AND event_type IN (SELECT value FROM json_each(?1))
    ORDER BY processed_at, seq LIMIT ?2)
