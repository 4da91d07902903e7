-- The live workers. ?1 now.
SELECT id, host, pid, kinds, started_at, heartbeat_at
FROM outbox_worker WHERE stopped_at IS NULL AND heartbeat_at + lease_ms > coalesce(?1, clock_ms()) ORDER BY started_at, id
