-- The events because of which inserts stored nothing, each with its place among the arguments. $1 ids, $2 type, $3 keys.
SELECT wanted.place - 1, found.id::text, found.status
FROM unnest($1::text[], $3::text[]) WITH ORDINALITY AS wanted (id, dedup_key, place)
CROSS JOIN LATERAL (
    SELECT id, status FROM outbox_event
    WHERE id = wanted.id::uuid OR (event_type = $2 AND dedup_key = wanted.dedup_key)
    ORDER BY id = wanted.id::uuid DESC LIMIT 1) AS found
