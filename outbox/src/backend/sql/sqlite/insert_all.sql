-- Stores many events of one type, in their order. A row that is there already stays; the ids of the others come back.
-- ?1 [[id, payload, ordering_key, dedup_key, subject], …], ?2 type, ?3 version, ?4 headers, ?5 max_attempts,
-- ?6 available_at, ?7 delay in ms, ?8 on_dead_letter, ?9 now.
INSERT INTO outbox_event
    (id, event_type, event_version, payload, headers, max_attempts, available_at, ordering_key, on_dead_letter, dedup_key,
     subject, created_at)
SELECT event.value ->> 0, ?2, ?3, event.value ->> 1, ?4, ?5, coalesce(?6, clock.now) + ?7, event.value ->> 2,
       CASE WHEN event.value ->> 2 IS NOT NULL THEN ?8 END, event.value ->> 3, event.value ->> 4, clock.now
FROM (SELECT clock_at(?9) AS now) AS clock, json_each(?1) AS event
WHERE true
ORDER BY event.key
ON CONFLICT DO NOTHING
RETURNING id
