-- Locks what was found, as far as nobody was faster, and reads it whole, as it is going to be. seqs.
SELECT seq, id, fence + 1, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at,
       created_at, ordering_key
FROM outbox_event FORCE INDEX (PRIMARY) WHERE seq IN ({list}) AND status = 'pending'
ORDER BY seq FOR UPDATE SKIP LOCKED
