-- Whether an unfinished event of the type has this top-level field with this value as text: a string's own text, of
-- everything else the JSON as it is written (MySQL, which parses it, writes numbers beyond 64 bits in its own way).
-- type, path, path, value, and all again.
SELECT EXISTS (
    SELECT 1 FROM outbox_event FORCE INDEX (by_turn)
    WHERE waiting IN (0, 1, 2) AND event_type = ? AND text_at(payload, ?) = CAST(? AS BINARY))
OR EXISTS (
    SELECT 1 FROM outbox_event FORCE INDEX (by_owner)
    WHERE owner IS NOT NULL AND event_type = ? AND text_at(payload, ?) = CAST(? AS BINARY))
