-- Events with an ordering key, as far as they stand first and none of theirs runs. At most so many are looked at.
-- turn, room, type, mark's due, mark's due, mark's seq, now, version, looks, limit.
(SELECT CAST(? AS SIGNED) AS turn, CAST(? AS SIGNED) AS room, 2 AS lane, available_at, seq FROM (
     SELECT seq, ordering_key, available_at FROM outbox_event FORCE INDEX (by_turn)
     WHERE waiting = 1 AND event_type = ? AND available_at >= ? AND (available_at > ? OR seq > ?)
       AND available_at <= clock_at(?) AND event_version <= ?
     ORDER BY available_at, seq LIMIT ?) AS event
 WHERE head_of_key(event)
 ORDER BY available_at, seq LIMIT ?)
