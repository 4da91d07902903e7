-- Deletes rows that are locked. In the form for several tables, which alone can name an index: read through, a small
-- table would have it wait for rows that others have locked. seqs.
DELETE event FROM outbox_event AS event FORCE INDEX (PRIMARY) WHERE event.seq IN ({list})
