-- How many events of each type are suspect, running, dead (up to ten caps over all types). ten caps.
SELECT name, CAST(SUM(suspects) AS SIGNED), CAST(SUM(running) AS SIGNED), CAST(SUM(dead) AS SIGNED) FROM (
    SELECT event_type AS name, COUNT(*) AS suspects, 0 AS running, 0 AS dead
    FROM outbox_event FORCE INDEX (by_turn) WHERE waiting = 2 GROUP BY event_type
    UNION ALL
    SELECT event_type, 0, COUNT(*), 0 FROM outbox_event FORCE INDEX (by_owner) WHERE owner IS NOT NULL GROUP BY event_type
    UNION ALL
    SELECT event_type, 0, 0, COUNT(*) FROM (
        SELECT event_type FROM outbox_event FORCE INDEX (by_death) WHERE dead_at IS NOT NULL LIMIT ?) AS counted
    GROUP BY event_type) AS found
GROUP BY name
