-- Deletes one finished event. $1 id.
DELETE FROM outbox_event WHERE id = $1::uuid AND status IN ('completed', 'dead_letter')
