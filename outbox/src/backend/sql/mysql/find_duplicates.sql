-- The events because of which inserts stored nothing, each with its place among the arguments; by id before by key.
-- [[id, dedup_key], …], type, the list again. A locking read: a caller's transaction may have a snapshot from before
-- those rows came, and the insert that met them has locked them already.
(SELECT wanted.place - 1, found.id, found.status
 FROM JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, id CHAR(36) CHARACTER SET utf8mb4 PATH '$[0]')) AS wanted
 STRAIGHT_JOIN outbox_event AS found FORCE INDEX (by_id) ON found.id = CONVERT(wanted.id USING ascii)
 LOCK IN SHARE MODE)
UNION ALL
(SELECT wanted.place - 1, found.id, found.status
 FROM JSON_TABLE(?, '$[*]' COLUMNS (place FOR ORDINALITY, dedup_key VARCHAR(255) CHARACTER SET utf8mb4 PATH '$[1]')) AS wanted
 STRAIGHT_JOIN outbox_event AS found FORCE INDEX (by_dedup)
     ON found.event_type = CAST(? AS BINARY) AND found.dedup_key = CAST(wanted.dedup_key AS BINARY)
 LOCK IN SHARE MODE)
