-- Ordering keys that a dead letter blocks, the longest first. limit.
SELECT ordering_key, id, event_type, processed_at, seq FROM outbox_event FORCE INDEX (by_blocking)
WHERE blocking_at IS NOT NULL ORDER BY blocking_at, seq LIMIT ?
