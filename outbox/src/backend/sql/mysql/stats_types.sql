-- The types of which something waits, runs or is dead, and how many of each are suspect, running, dead (up to ten caps
-- over all types). ten caps. The types that wait are found by jumps through the index, not by reading all rows.
SELECT name, CAST(SUM(suspects) AS SIGNED), CAST(SUM(running) AS SIGNED), CAST(SUM(dead) AS SIGNED) FROM (
    SELECT event_type AS name, 0 AS suspects, 0 AS running, 0 AS dead
    FROM outbox_event FORCE INDEX (by_turn) WHERE waiting IN (0, 1) GROUP BY waiting, event_type
    UNION ALL
    SELECT event_type, COUNT(*), 0, 0 FROM outbox_event FORCE INDEX (by_turn) WHERE waiting = 2 GROUP BY event_type
    UNION ALL
    SELECT event_type, 0, COUNT(*), 0 FROM outbox_event FORCE INDEX (by_owner) WHERE owner IS NOT NULL GROUP BY event_type
    UNION ALL
    SELECT event_type, 0, 0, COUNT(*) FROM (
        SELECT event_type FROM outbox_event FORCE INDEX (by_death) WHERE dead_at IS NOT NULL LIMIT ?) AS counted
    GROUP BY event_type) AS found
GROUP BY name ORDER BY name
