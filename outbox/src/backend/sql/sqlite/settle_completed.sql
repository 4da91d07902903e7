-- Completes events whose runs ended as most do: nothing to be said of them, no attempt spent. ?1 {seq: fence, …},
-- ?2 worker, ?3 now. Guarded as settle.sql is. It answers with nothing but how many rows it changed: a row that comes back
-- costs more than one that is written.
UPDATE outbox_event AS event
SET status = 'completed', processed_at = clock_at(?3), last_error = NULL, locked_at = NULL, locked_by = NULL
FROM json_each(?1) AS outcome
WHERE event.seq = CAST(outcome.key AS INTEGER) AND +event.fence = outcome.value
  AND +event.locked_by = ?2 AND +event.status = 'processing'
