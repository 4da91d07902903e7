-- One event, whole. now, id.
SELECT seq, id, event_type, event_version, payload, headers, status, attempts, crashes, max_attempts, available_at,
       locked_at, locked_by, fence, last_error, ordering_key, dedup_key, subject, created_at, processed_at,
       status = 'pending' AND available_at <= clock_at(?) AS is_due,
       on_dead_letter, status = 'pending' AND NOT (head_of_key(event)) AS is_blocked
FROM outbox_event AS event WHERE id = ?
