-- Whether an unfinished event of the type has this top-level field with this value as text. $1 type, $2 key, $3 value.
SELECT EXISTS (
    SELECT 1 FROM outbox_event
    WHERE event_type = $1 AND status IN ('pending', 'processing') AND payload ->> $2 = $3)
