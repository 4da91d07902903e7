-- Deletes one finished event. ?1 id.
DELETE FROM outbox_event WHERE id = ?1 AND status IN ('completed', 'dead_letter')
