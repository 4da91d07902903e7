-- What waits, by type: due, scheduled, running, dead, each counted up to the cap, and how long the oldest due one
-- waits. ?1 cap, ?2 now. The types are found by jumps through the index, not by reading all rows.
WITH RECURSIVE clock(now) AS (SELECT clock_at(?2)),
waiting(name) AS (
    SELECT min(event_type) FROM outbox_event INDEXED BY outbox_event_due
    WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NULL
    UNION
    SELECT (SELECT min(event_type) FROM outbox_event INDEXED BY outbox_event_due
            WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NULL AND event_type > waiting.name)
    FROM waiting WHERE waiting.name IS NOT NULL),
keyed(name) AS (
    SELECT min(event_type) FROM outbox_event INDEXED BY outbox_event_keyed
    WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
    UNION
    SELECT (SELECT min(event_type) FROM outbox_event INDEXED BY outbox_event_keyed
            WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL AND event_type > keyed.name)
    FROM keyed WHERE keyed.name IS NOT NULL),
running(name, number) AS (
    SELECT event_type, count(*) FROM outbox_event INDEXED BY outbox_event_processing
    WHERE status = 'processing' GROUP BY event_type),
suspects(name, number) AS (
    SELECT event_type, count(*) FROM outbox_event INDEXED BY outbox_event_suspect
    WHERE status = 'pending' AND crashes > 0 GROUP BY event_type),
dead(name, number) AS (
    SELECT event_type, count(*) FROM (
        SELECT event_type FROM outbox_event INDEXED BY outbox_event_dead WHERE status = 'dead_letter' LIMIT ?1 * 10)
    GROUP BY event_type),
types(name) AS (
    SELECT name FROM waiting WHERE name IS NOT NULL UNION SELECT name FROM keyed WHERE name IS NOT NULL
    UNION SELECT name FROM running
    UNION SELECT name FROM suspects UNION SELECT name FROM dead)
SELECT types.name,
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event INDEXED BY outbox_event_due
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
              AND available_at <= now
            UNION ALL
            SELECT 1 FROM outbox_event INDEXED BY outbox_event_keyed
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
              AND available_at <= now
            LIMIT ?1))
           + coalesce((SELECT number FROM suspects WHERE suspects.name = types.name), 0),
       (SELECT count(*) FROM (
            SELECT 1 FROM outbox_event INDEXED BY outbox_event_due
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
              AND available_at > now
            UNION ALL
            SELECT 1 FROM outbox_event INDEXED BY outbox_event_keyed
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
              AND available_at > now
            LIMIT ?1)),
       coalesce((SELECT number FROM running WHERE running.name = types.name), 0),
       coalesce((SELECT number FROM dead WHERE dead.name = types.name), 0),
       (SELECT now - min(oldest) FROM (
            SELECT min(available_at) AS oldest FROM outbox_event INDEXED BY outbox_event_due
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
              AND available_at <= now
            UNION ALL
            SELECT min(available_at) FROM outbox_event INDEXED BY outbox_event_keyed
            WHERE event_type = types.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
              AND available_at <= now)),
       (SELECT count(*) FROM outbox_worker AS worker
            WHERE worker.stopped_at IS NULL AND worker.heartbeat_at + worker.lease_ms > now
              AND EXISTS (SELECT 1 FROM json_each(worker.kinds) AS kind WHERE kind.value ->> 'type' = types.name))
FROM types, clock ORDER BY types.name
