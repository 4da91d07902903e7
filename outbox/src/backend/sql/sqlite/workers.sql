-- The live workers. ?1 now.
SELECT id, host, pid, kinds, started_at, heartbeat_at
FROM outbox_worker WHERE stopped_at IS NULL AND heartbeat_at + lease_ms > clock_at(?1) ORDER BY started_at, id
