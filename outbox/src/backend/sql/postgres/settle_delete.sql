-- Deletes completed events at once, where completed rows are not kept. $1 seqs, $2 fences, $3 worker.
DELETE FROM outbox_event AS event
USING unnest($1::bigint[], $2::bigint[]) AS outcome (seq, fence)
WHERE event.seq = outcome.seq AND event.fence = outcome.fence AND event.locked_by = $3 AND event.status = 'processing'
  AND event.seq = ANY (ARRAY(
      SELECT seq FROM outbox_event WHERE seq = ANY ($1::bigint[]) AND status = 'processing' FOR UPDATE SKIP LOCKED))
RETURNING event.seq
