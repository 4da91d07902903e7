-- Writes the outcomes of a batch. $1 seqs, $2 fences, $3 statuses, $4 attempts, $5 delays in ms, $6 whether the error
-- stays, $7 errors, $8 worker, $9 now. Guarded by fence, owner and status: whoever lost the lease changes nothing.
-- A row that somebody else has locked is passed over, and comes again with the next batch.
--
-- Each step is one probe of the primary key per outcome. The || '' keep the planner off the index of what is processing,
-- which has a dead entry, under this worker's name, for each event that it ever held. LATERAL with a lock inside leaves it
-- no choice of another join: while the table is small, or nobody has analyzed it, it reads the whole of it and compares
-- every row with every outcome (110 ms instead of 10 for 500). The materialized step does the same for the second join.
WITH held AS MATERIALIZED (
    SELECT outcome.*
    FROM unnest($1::bigint[], $2::bigint[], $3::text[], $4::bigint[], $5::bigint[], $6::boolean[], $7::text[])
             AS outcome (seq, fence, status, attempts, delay_ms, keep_error, error)
    CROSS JOIN LATERAL (
        SELECT 1 FROM outbox_event AS event
        WHERE event.seq = outcome.seq AND event.fence = outcome.fence
          AND event.locked_by || '' = $8 AND event.status || '' = 'processing'
        FOR UPDATE SKIP LOCKED) AS locked)
UPDATE outbox_event AS event
SET status = held.status,
    attempts = held.attempts,
    available_at = coalesce(clock.now + held.delay_ms * interval '1 millisecond', event.available_at),
    processed_at = CASE WHEN held.status <> 'pending' THEN clock.now END,
    last_error = CASE WHEN held.keep_error THEN event.last_error ELSE held.error END,
    locked_at = NULL,
    locked_by = NULL
FROM held, (SELECT clock_at($9) AS now) AS clock
WHERE event.seq = held.seq
RETURNING event.seq
