-- Writes the outcomes of a batch. ?1 [[seq, fence, status, attempts, delay_ms, keep_error, error], …], ?2 worker, ?3 now.
-- Guarded by fence, owner and status: whoever lost the lease changes nothing. The plus signs keep the planner
-- on the primary key.
UPDATE outbox_event AS event
SET status = outcome.status,
    attempts = outcome.attempts,
    available_at = CASE WHEN outcome.delay_ms IS NULL THEN event.available_at ELSE outcome.now + outcome.delay_ms END,
    processed_at = CASE WHEN outcome.status = 'pending' THEN NULL ELSE outcome.now END,
    last_error = CASE WHEN outcome.keep_error THEN event.last_error ELSE outcome.error END,
    locked_at = NULL,
    locked_by = NULL
FROM (
    SELECT value ->> 0 AS seq, value ->> 1 AS fence, value ->> 2 AS status, value ->> 3 AS attempts,
           value ->> 4 AS delay_ms, value ->> 5 AS keep_error, value ->> 6 AS error,
           clock_at(?3) AS now
    FROM json_each(?1)) AS outcome
WHERE event.seq = outcome.seq AND +event.fence = outcome.fence
  AND +event.locked_by = ?2 AND +event.status = 'processing'
RETURNING seq
