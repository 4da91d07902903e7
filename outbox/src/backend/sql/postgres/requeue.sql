-- A dead letter gets a new life; its fence goes on counting. $1 id, $2 now.
UPDATE outbox_event
SET status = 'pending', attempts = 0, crashes = 0, last_error = NULL, processed_at = NULL,
    locked_at = NULL, locked_by = NULL, available_at = clock_at($2)
WHERE id = $1::uuid AND status = 'dead_letter'
