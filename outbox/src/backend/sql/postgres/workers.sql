-- The live workers. $1 now.
SELECT id, host, pid, kinds::text, (extract(epoch FROM started_at) * 1000)::bigint, (extract(epoch FROM heartbeat_at) * 1000)::bigint
FROM outbox_worker
WHERE stopped_at IS NULL AND heartbeat_at + lease_ms * interval '1 millisecond' > clock_at($1)
ORDER BY started_at, id
