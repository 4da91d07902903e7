-- Whoever has not renewed within the lease that it asked for. now.
SELECT id FROM outbox_worker WHERE stopped_at IS NULL AND heartbeat_at + lease_ms <= clock_at(?)
