-- Stores one event. A row that is there already (same id, or same key of the type) stays, and nothing comes back.
INSERT INTO outbox_event
    (id, event_type, event_version, payload, headers, max_attempts, available_at, ordering_key, on_dead_letter, dedup_key,
     subject, created_at)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, coalesce(?7, clock.now) + ?8, ?9, ?10, ?11, ?12, clock.now
FROM (SELECT clock_at(?13) AS now) AS clock
WHERE true
ON CONFLICT DO NOTHING
RETURNING seq
