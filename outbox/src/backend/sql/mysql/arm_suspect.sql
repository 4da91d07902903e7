-- An event with which a worker died: before all others.
-- turn, room, type, now, version, suspects.
(SELECT CAST(? AS SIGNED) AS turn, CAST(? AS SIGNED) AS room, 0 AS lane, available_at, seq FROM outbox_event AS event FORCE INDEX (by_turn)
 WHERE waiting = 2 AND event_type = ? AND available_at <= clock_at(?) AND event_version <= ? AND head_of_key(event)
 ORDER BY available_at, seq LIMIT ?)
