-- Completes events whose runs ended as most do: nothing to be said of them, no attempt spent. $1 seqs, $2 their fence,
-- $3 worker, $4 now. Its guard and its || '' are explained at settle.sql. One fence for all, so that the rows are found
-- and locked by one scan: a probe for each, with a fence of its own, costs a fifth more.
UPDATE outbox_event
SET status = 'completed', processed_at = clock_at($4), last_error = NULL, locked_at = NULL, locked_by = NULL
WHERE seq = ANY (ARRAY(
    SELECT seq FROM outbox_event
    WHERE seq = ANY ($1::bigint[]) AND fence = $2 AND locked_by || '' = $3 AND status || '' = 'processing'
    FOR UPDATE SKIP LOCKED))
RETURNING seq
