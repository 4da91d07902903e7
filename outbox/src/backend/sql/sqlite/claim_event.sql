-- Claims one event by its id, if it is due. ?1 id, ?2 worker, ?3 now.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = ?2, locked_at = clock_at(?3)
WHERE id = ?1 AND status = 'pending' AND available_at <= clock_at(?3)
RETURNING seq, id, fence, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at, created_at
