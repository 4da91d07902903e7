-- The rows that an outcome did not match, as they are. $1 seqs.
SELECT seq, fence, status, locked_by FROM outbox_event WHERE seq = ANY ($1::bigint[])
