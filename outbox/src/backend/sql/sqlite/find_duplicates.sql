-- The events because of which inserts stored nothing, each with its place among the arguments.
-- ?1 [[id, dedup_key], …], ?2 type.
SELECT wanted.key, found.id, found.status
FROM json_each(?1) AS wanted
JOIN outbox_event AS found ON found.seq = coalesce(
    (SELECT seq FROM outbox_event WHERE id = wanted.value ->> 0),
    (SELECT seq FROM outbox_event WHERE event_type = ?2 AND dedup_key = wanted.value ->> 1))
