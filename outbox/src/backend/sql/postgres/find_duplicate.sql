-- The event because of which an insert stored nothing.
SELECT id::text, status FROM outbox_event WHERE id = $1::uuid OR (event_type = $2 AND dedup_key = $3)
ORDER BY id = $1::uuid DESC LIMIT 1
