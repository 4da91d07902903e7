-- Deletes completed events at once, where completed rows are not kept. $1 seqs, $2 their fence, $3 worker.
-- Its shape is explained at settle_completed.sql.
DELETE FROM outbox_event
WHERE seq = ANY (ARRAY(
    SELECT seq FROM outbox_event
    WHERE seq = ANY ($1::bigint[]) AND fence = $2 AND locked_by || '' = $3 AND status || '' = 'processing'
    FOR UPDATE SKIP LOCKED))
RETURNING seq
