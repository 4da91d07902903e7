-- Deletes completed events at once, where completed rows are not kept. $1 seqs, $2 fences, $3 worker.
-- Its shape is explained at settle.sql.
WITH held AS MATERIALIZED (
    SELECT outcome.seq
    FROM unnest($1::bigint[], $2::bigint[]) AS outcome (seq, fence)
    JOIN outbox_event AS event ON event.seq = outcome.seq AND event.fence = outcome.fence
    WHERE event.locked_by || '' = $3 AND event.status || '' = 'processing'
    FOR UPDATE OF event SKIP LOCKED)
DELETE FROM outbox_event AS event USING held WHERE event.seq = held.seq
RETURNING event.seq
