-- Gives back what this worker claimed without knowing it (the claim's answer was lost). $1 worker, $2 seqs in hand.
UPDATE outbox_event SET status = 'pending', locked_at = NULL, locked_by = NULL
WHERE locked_by = $1 AND status = 'processing' AND seq <> ALL ($2::bigint[])
