-- The live workers. now.
SELECT id, host, pid, kinds, started_at, heartbeat_at
FROM outbox_worker WHERE stopped_at IS NULL AND heartbeat_at + lease_ms > clock_at(?) ORDER BY started_at, id
