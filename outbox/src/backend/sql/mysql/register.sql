-- A worker appears. id, host, pid, kinds, lease_ms, stuck_ms, now, now.
INSERT INTO outbox_worker (id, host, pid, kinds, lease_ms, stuck_ms, started_at, heartbeat_at)
VALUES (?, ?, ?, ?, ?, ?, clock_at(?), clock_at(?))
