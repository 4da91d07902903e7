-- Frees events whose owner is dead: crashes + 1; an attempt only of an event that was a suspect already. Assignments
-- see those before them, so what reads a column comes before what changes it. now, seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY)
SET status = CASE WHEN crashes > 0 AND attempts + 1 >= max_attempts THEN 'dead_letter' ELSE 'pending' END,
    processed_at = CASE WHEN crashes > 0 AND attempts + 1 >= max_attempts THEN clock_at(?) END,
    attempts = attempts + CASE WHEN crashes > 0 THEN 1 ELSE 0 END,
    crashes = crashes + 1,
    last_error = 'worker lost', locked_at = NULL, locked_by = NULL
WHERE seq IN ({list})
