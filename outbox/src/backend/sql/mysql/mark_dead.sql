-- Declares one of them dead, on condition of the heartbeat's age. now, id, now.
UPDATE outbox_worker SET stopped_at = clock_at(?)
WHERE id = ? AND stopped_at IS NULL AND heartbeat_at + lease_ms <= clock_at(?)
