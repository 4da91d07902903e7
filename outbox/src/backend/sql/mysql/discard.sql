-- Deletes one finished event. id.
DELETE FROM outbox_event WHERE id = ? AND status IN ('completed', 'dead_letter')
