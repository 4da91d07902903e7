-- A worker lives. now, id.
UPDATE outbox_worker SET heartbeat_at = clock_at(?) WHERE id = ? AND stopped_at IS NULL
