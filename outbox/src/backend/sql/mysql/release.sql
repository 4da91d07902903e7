-- Gives back what is locked. seqs.
UPDATE outbox_event FORCE INDEX (PRIMARY) SET status = 'pending', locked_at = NULL, locked_by = NULL WHERE seq IN ({list})
