-- Gives back what this worker claimed without knowing it (the claim's answer was lost). ?1 worker, ?2 [seq, …] in hand.
UPDATE outbox_event INDEXED BY outbox_event_processing
SET status = 'pending', locked_at = NULL, locked_by = NULL
WHERE locked_by = ?1 AND status = 'processing' AND seq NOT IN (SELECT value FROM json_each(?2))
