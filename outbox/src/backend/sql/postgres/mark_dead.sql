-- Declares dead whoever has not renewed within the lease that it asked for, on condition of the heartbeat's age. $1 now.
UPDATE outbox_worker SET stopped_at = clock_at($1)
WHERE stopped_at IS NULL AND heartbeat_at + lease_ms * interval '1 millisecond' <= clock_at($1)
