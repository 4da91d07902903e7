-- The rows that an outcome did not match, as they are. seqs.
SELECT seq, fence, status, locked_by FROM outbox_event FORCE INDEX (PRIMARY) WHERE seq IN ({list})
