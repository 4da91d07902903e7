-- Stores one event. A row that is there already (same id, or same key of the type) is an error, which the caller tells
-- apart by its number: IGNORE would hide all others with it.
-- id, type, version, payload, headers, max_attempts, available_at, now, delay in ms, ordering_key, on_dead_letter,
-- dedup_key, subject, now.
INSERT INTO outbox_event
    (id, event_type, event_version, payload, headers, max_attempts, available_at, ordering_key, on_dead_letter, dedup_key,
     subject, created_at)
VALUES {rows}
