-- Frees events whose handler does not end: an attempt is spent. now, seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY)
SET status = CASE WHEN attempts + 1 >= max_attempts THEN 'dead_letter' ELSE 'pending' END,
    processed_at = CASE WHEN attempts + 1 >= max_attempts THEN clock_at(?) END,
    attempts = attempts + 1,
    last_error = 'held past the stuck threshold: the handler did not end', locked_at = NULL, locked_by = NULL
WHERE seq IN ({list})
