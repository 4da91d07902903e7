-- A worker appears. $1 id, $2 host, $3 pid, $4 kinds, $5 lease_ms, $6 stuck_ms, $7 now.
INSERT INTO outbox_worker (id, host, pid, kinds, lease_ms, stuck_ms, started_at, heartbeat_at)
SELECT $1, $2, $3, $4::text::json, $5, $6, clock.now, clock.now FROM (SELECT clock_at($7) AS now) AS clock
