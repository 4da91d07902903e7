-- Dead letters of the given types, newest first, from the cursor on. ?1 [type, …], ?2 processed_at, ?3 seq, ?4 limit.
SELECT seq, id, event_type, event_version, payload, headers, status, attempts, crashes, max_attempts, available_at,
       locked_at, locked_by, fence, last_error, ordering_key, dedup_key, subject, created_at, processed_at,
       false AS is_due, on_dead_letter, false AS is_blocked
FROM outbox_event INDEXED BY outbox_event_dead
WHERE status = 'dead_letter' AND event_type IN (SELECT value FROM json_each(?1))
  AND (?2 IS NULL OR (processed_at, seq) < (?2, ?3))
ORDER BY processed_at DESC, seq DESC LIMIT ?4
