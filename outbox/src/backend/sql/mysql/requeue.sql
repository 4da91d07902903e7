-- A dead letter gets a new life; its fence goes on counting. now, id.
UPDATE outbox_event
SET status = 'pending', attempts = 0, crashes = 0, last_error = NULL, processed_at = NULL,
    locked_at = NULL, locked_by = NULL, available_at = clock_at(?)
WHERE id = ? AND status = 'dead_letter'
