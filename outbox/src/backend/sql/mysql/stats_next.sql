-- The next type of which something waits. MariaDB reads the whole index for a GROUP BY; these are jumps through it.
-- waiting, type before it.
SELECT event_type FROM outbox_event FORCE INDEX (by_turn)
WHERE waiting = ? AND event_type > CAST(? AS BINARY) ORDER BY event_type LIMIT 1
