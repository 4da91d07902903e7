-- A worker has ended, with nothing in hand. now, id.
UPDATE outbox_worker SET stopped_at = clock_at(?) WHERE id = ? AND stopped_at IS NULL
