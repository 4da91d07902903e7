-- Whether an unfinished event of the type has this top-level field with this value as text. ?1 type, ?2 path, ?3 value.
-- One branch for each index that holds unfinished events.
-- ->> gives a string's own text, -> the JSON text as it was written, which keeps long numbers whole.
SELECT EXISTS (
    SELECT 1 FROM (
        SELECT payload FROM outbox_event INDEXED BY outbox_event_due
        WHERE event_type = ?1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
        UNION ALL
        SELECT payload FROM outbox_event INDEXED BY outbox_event_keyed
        WHERE event_type = ?1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
        UNION ALL
        SELECT payload FROM outbox_event INDEXED BY outbox_event_suspect
        WHERE event_type = ?1 AND status = 'pending' AND crashes > 0
        UNION ALL
        SELECT payload FROM outbox_event INDEXED BY outbox_event_processing
        WHERE event_type = ?1 AND status = 'processing')
    WHERE CASE json_type(payload, ?2) WHEN 'text' THEN payload ->> ?2 WHEN 'null' THEN NULL ELSE payload -> ?2 END = ?3)
