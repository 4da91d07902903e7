-- A worker lives. No row: it was declared dead. ?1 id, ?2 now.
UPDATE outbox_worker SET heartbeat_at = clock_at(?2) WHERE id = ?1 AND stopped_at IS NULL
