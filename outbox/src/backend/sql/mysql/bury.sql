-- Locked events become dead letters. error, now, seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY) SET status = 'dead_letter', last_error = ?, processed_at = clock_at(?)
WHERE seq IN ({list})
