-- The next of a key goes on where its last one ended, however many others wait before it.
-- turn, room, type, [key of which one has just ended, …], now, version.
(SELECT CAST(? AS SIGNED) AS turn, CAST(? AS SIGNED) AS room, 1 AS lane, event.available_at, event.seq
 FROM JSON_TABLE(?, '$[*]' COLUMNS (ordering_key VARCHAR(255) CHARACTER SET utf8mb4 PATH '$')) AS ended
 STRAIGHT_JOIN outbox_event AS event FORCE INDEX (by_key) ON event.open_key = CAST(ended.ordering_key AS BINARY)
 WHERE event.waiting = 1 AND event.event_type = ? AND event.available_at <= clock_at(?) AND event.event_version <= ?
   AND head_of_key(event))
