-- Deletes rows that are locked. seqs.
DELETE FROM outbox_event WHERE seq IN ({list})
