-- The same as requeue.sql for many that are locked. now, seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY)
SET status = 'pending', attempts = 0, crashes = 0, last_error = NULL, processed_at = NULL,
    locked_at = NULL, locked_by = NULL, available_at = clock_at(?)
WHERE seq IN ({list})
