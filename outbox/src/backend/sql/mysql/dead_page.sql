-- A page of the dead letters of the given types. types, page.
SELECT seq FROM outbox_event FORCE INDEX (by_death)
WHERE dead_at IS NOT NULL AND event_type IN ({list}) ORDER BY dead_at, seq LIMIT ?
