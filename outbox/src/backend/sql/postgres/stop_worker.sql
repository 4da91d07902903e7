-- A worker has ended, with nothing in hand. $1 id, $2 now.
UPDATE outbox_worker SET stopped_at = clock_at($2) WHERE id = $1 AND stopped_at IS NULL
