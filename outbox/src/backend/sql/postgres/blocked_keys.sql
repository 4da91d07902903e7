-- Ordering keys that a dead letter blocks, the longest first, and how many events wait behind it, up to the cap.
-- $1 cap, $2 limit.
SELECT blocker.ordering_key, blocker.id::text, blocker.event_type, (extract(epoch FROM blocker.processed_at) * 1000)::bigint,
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event AS waiting
            WHERE waiting.ordering_key = blocker.ordering_key AND waiting.status <> 'completed'
              AND (waiting.status <> 'dead_letter' OR waiting.on_dead_letter = 'block') AND waiting.seq > blocker.seq
            LIMIT $1) AS counted)
FROM outbox_event AS blocker
WHERE blocker.status = 'dead_letter' AND blocker.on_dead_letter = 'block' AND blocker.ordering_key IS NOT NULL
ORDER BY blocker.processed_at, blocker.seq LIMIT $2
