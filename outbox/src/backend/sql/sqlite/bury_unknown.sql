-- A page of waiting events of a type that no worker seen lately handles become dead letters.
-- ?1 type, ?2 after_ms, ?3 error, ?4 page, ?5 now.
UPDATE outbox_event SET status = 'dead_letter', last_error = ?3, processed_at = clock_at(?5)
WHERE status = 'pending' AND seq IN (
    SELECT seq FROM (
        SELECT seq, available_at, created_at FROM outbox_event INDEXED BY outbox_event_due
        WHERE event_type = ?1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
        UNION ALL
        SELECT seq, available_at, created_at FROM outbox_event INDEXED BY outbox_event_keyed
        WHERE event_type = ?1 AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
        UNION ALL
        SELECT seq, available_at, created_at FROM outbox_event INDEXED BY outbox_event_suspect
        WHERE event_type = ?1 AND status = 'pending' AND crashes > 0)
    WHERE max(available_at, created_at) <= clock_at(?5) - ?2
      AND NOT EXISTS (
          SELECT 1 FROM outbox_worker AS worker, json_each(worker.kinds) AS kind
          WHERE worker.heartbeat_at >= clock_at(?5) - ?2 AND kind.value ->> 'type' = ?1)
    LIMIT ?4)
