-- What waits, by type: due, scheduled, running, dead, each counted up to the cap, and how long the oldest due one
-- waits. $1 cap, $2 now. The types are found by jumps through the index, not by reading all rows.
WITH RECURSIVE clock (now) AS (SELECT clock_at($2)),
waiting (name) AS (
    (SELECT event_type FROM outbox_event
     WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NULL ORDER BY event_type LIMIT 1)
    UNION ALL
    SELECT (SELECT event_type FROM outbox_event
            WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NULL AND event_type > waiting.name
            ORDER BY event_type LIMIT 1)
    FROM waiting WHERE waiting.name IS NOT NULL),
keyed (name) AS (
    (SELECT event_type FROM outbox_event
     WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL ORDER BY event_type LIMIT 1)
    UNION ALL
    SELECT (SELECT event_type FROM outbox_event
            WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL AND event_type > keyed.name
            ORDER BY event_type LIMIT 1)
    FROM keyed WHERE keyed.name IS NOT NULL),
running (name, number) AS (
    SELECT event_type, count(*) FROM outbox_event WHERE status = 'processing' GROUP BY event_type),
suspects (name, number) AS (
    SELECT event_type, count(*) FROM outbox_event WHERE status = 'pending' AND crashes > 0 GROUP BY event_type),
dead (name, number) AS (
    SELECT event_type, count(*) FROM (
        SELECT event_type FROM outbox_event WHERE status = 'dead_letter' LIMIT $1 * 10) AS counted GROUP BY event_type),
types (name) AS (
    SELECT name FROM waiting WHERE name IS NOT NULL UNION SELECT name FROM keyed WHERE name IS NOT NULL
    UNION SELECT name FROM running
    UNION SELECT name FROM suspects UNION SELECT name FROM dead)
SELECT types.name,
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
              AND available_at <= (SELECT now FROM clock)
            UNION ALL
            SELECT 1 FROM outbox_event
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
              AND available_at <= (SELECT now FROM clock)
            LIMIT $1) AS counted)
           + coalesce((SELECT number FROM suspects WHERE suspects.name = types.name), 0),
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
              AND available_at > (SELECT now FROM clock)
            UNION ALL
            SELECT 1 FROM outbox_event
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
              AND available_at > (SELECT now FROM clock)
            LIMIT $1) AS counted),
       coalesce((SELECT number FROM running WHERE running.name = types.name), 0),
       coalesce((SELECT number FROM dead WHERE dead.name = types.name), 0),
       (extract(epoch FROM clock.now - least(
            (SELECT min(available_at) FROM outbox_event
             WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
               AND available_at <= (SELECT now FROM clock)),
            (SELECT min(available_at) FROM outbox_event
             WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
               AND available_at <= (SELECT now FROM clock)))) * 1000)::bigint,
       (SELECT count(*) FROM outbox_worker AS worker
            WHERE worker.stopped_at IS NULL AND worker.heartbeat_at + worker.lease_ms * interval '1 millisecond' > clock.now
              AND EXISTS (SELECT 1 FROM json_array_elements(worker.kinds) AS kind WHERE kind ->> 'type' = types.name))
FROM types, clock ORDER BY types.name
