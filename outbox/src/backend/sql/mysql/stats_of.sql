-- Of one type: how many are due and how many later, each counted up to the cap, how long the oldest due one waits, and
-- how many live workers handle it. A statement for each type, since a LIMIT inside of a subquery can belong to no row of
-- another table on MariaDB.
-- type, suspects, type, now, cap, type, now, cap, running, dead, now, type, now, now, type.
SELECT ?,
       ? + (SELECT COUNT(*) FROM (
            SELECT 1 FROM outbox_event FORCE INDEX (by_turn)
            WHERE waiting IN (0, 1) AND event_type = ? AND available_at <= clock_at(?) LIMIT ?) AS due),
       (SELECT COUNT(*) FROM (
            SELECT 1 FROM outbox_event FORCE INDEX (by_turn)
            WHERE waiting IN (0, 1) AND event_type = ? AND available_at > clock_at(?) LIMIT ?) AS scheduled),
       CAST(? AS SIGNED), CAST(? AS SIGNED),
       (SELECT clock_at(?) - MIN(available_at) FROM outbox_event FORCE INDEX (by_turn)
        WHERE waiting IN (0, 1) AND event_type = ? AND available_at <= clock_at(?)),
       (SELECT COUNT(*) FROM outbox_worker AS worker
        WHERE worker.stopped_at IS NULL AND worker.heartbeat_at + worker.lease_ms > clock_at(?)
          AND JSON_CONTAINS(worker.kinds, JSON_ARRAY(JSON_OBJECT('type', ?))))
