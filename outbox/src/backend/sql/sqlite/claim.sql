-- Claims what was found, as far as nobody was faster. ?1 [seq, …], ?2 worker, ?3 now.
UPDATE outbox_event AS event
SET status = 'processing', fence = fence + 1, locked_by = ?2, locked_at = clock_at(?3)
WHERE event.seq IN (SELECT value FROM json_each(?1)) AND +event.status = 'pending'
  -- The look may be old by now: this had to wait for the write lock.
  AND +event.available_at <= clock_at(?3) AND head_of_key(event)
RETURNING seq, id, fence, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at,
          created_at, ordering_key
