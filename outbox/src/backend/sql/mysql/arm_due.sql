-- Events without an ordering key. Row comparison is no range of an index here, so the mark is compared in two steps.
-- turn, room, type, mark's due, mark's due, mark's seq, now, version, limit.
(SELECT CAST(? AS SIGNED) AS turn, CAST(? AS SIGNED) AS room, 2 AS lane, available_at, seq FROM outbox_event FORCE INDEX (by_turn)
 WHERE waiting = 0 AND event_type = ? AND available_at >= ? AND (available_at > ? OR seq > ?)
   AND available_at <= clock_at(?) AND event_version <= ?
 ORDER BY available_at, seq LIMIT ?)
