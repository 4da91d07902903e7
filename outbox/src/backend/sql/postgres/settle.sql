-- Writes the outcomes of a batch. $1 seqs, $2 fences, $3 statuses, $4 attempts, $5 delays in ms, $6 whether the error
-- stays, $7 errors, $8 worker, $9 now. Guarded by fence, owner and status: whoever lost the lease changes nothing.
-- A row that somebody else has locked is passed over, and comes again with the next batch.
UPDATE outbox_event AS event
SET status = outcome.status,
    attempts = outcome.attempts,
    available_at = coalesce(clock.now + outcome.delay_ms * interval '1 millisecond', event.available_at),
    processed_at = CASE WHEN outcome.status <> 'pending' THEN clock.now END,
    last_error = CASE WHEN outcome.keep_error THEN event.last_error ELSE outcome.error END,
    locked_at = NULL,
    locked_by = NULL
FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[])
         AS outcome (seq, fence, status, attempts, delay_ms, keep_error, error),
     (SELECT clock_at($9) AS now) AS clock
WHERE event.seq = outcome.seq AND event.fence = outcome.fence AND event.locked_by = $8 AND event.status = 'processing'
  AND event.seq = ANY (ARRAY(
      SELECT seq FROM outbox_event WHERE seq = ANY ($1::bigint[]) AND status = 'processing' FOR UPDATE SKIP LOCKED))
RETURNING event.seq
