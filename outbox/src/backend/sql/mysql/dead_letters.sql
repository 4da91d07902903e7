-- Dead letters of the given types, newest first, from the cursor on.
-- types, processed_at, processed_at, processed_at, seq, limit.
SELECT seq, id, event_type, event_version, payload, headers, status, attempts, crashes, max_attempts, available_at,
       locked_at, locked_by, fence, last_error, ordering_key, dedup_key, subject, created_at, processed_at,
       0 AS is_due, on_dead_letter, 0 AS is_blocked
FROM outbox_event FORCE INDEX (by_death)
WHERE dead_at IS NOT NULL AND event_type IN ({list}) AND (dead_at <= ? AND (dead_at < ? OR seq < ?))
ORDER BY dead_at DESC, seq DESC LIMIT ?
