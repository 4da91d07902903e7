-- Claims what is locked. worker, now, seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY)
SET status = 'processing', fence = fence + 1, locked_by = ?, locked_at = clock_at(?)
WHERE seq IN ({list})
