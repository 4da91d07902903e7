-- Whether an unfinished event of the type has this top-level field with this value as text. $1 type, $2 key, $3 value.
-- One branch for each index that holds unfinished events.
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT payload FROM outbox_event
        WHERE event_type = $1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
        UNION ALL
        SELECT payload FROM outbox_event
        WHERE event_type = $1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
        UNION ALL
        SELECT payload FROM outbox_event WHERE event_type = $1 AND status = 'pending' AND crashes > 0
        UNION ALL
        SELECT payload FROM outbox_event WHERE event_type = $1 AND status = 'processing') AS unfinished
    WHERE payload ->> $2 = $3)
