-- Locks what was found, as far as nobody was faster (who may have failed it since, so that it is due later), and reads it
-- whole, as it is going to be. now, seqs.
SELECT seq, id, fence + 1, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at,
       created_at, ordering_key
FROM outbox_event FORCE INDEX (PRIMARY)
WHERE status = 'pending' AND available_at <= clock_at(?) AND seq IN ({list})
ORDER BY seq FOR UPDATE SKIP LOCKED
