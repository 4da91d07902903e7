-- Ordering keys that a dead letter blocks, the longest first, and how many events wait behind it, up to the cap.
-- ?1 cap, ?2 limit.
SELECT blocker.ordering_key, blocker.id, blocker.event_type, blocker.processed_at,
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event AS waiting INDEXED BY outbox_event_key
            WHERE waiting.ordering_key = blocker.ordering_key AND waiting.status <> 'completed'
              AND (waiting.status <> 'dead_letter' OR waiting.on_dead_letter = 'block') AND waiting.seq > blocker.seq
            LIMIT ?1))
FROM outbox_event AS blocker INDEXED BY outbox_event_blocking
WHERE blocker.status = 'dead_letter' AND blocker.on_dead_letter = 'block' AND blocker.ordering_key IS NOT NULL
ORDER BY blocker.processed_at, blocker.seq LIMIT ?2
