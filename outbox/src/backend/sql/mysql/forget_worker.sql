-- Forgets one of them. id.
DELETE FROM outbox_worker WHERE id = ? AND stopped_at IS NOT NULL
