-- One event by its id, if it is due and no other of its key comes first. id, now.
SELECT seq FROM outbox_event AS event
WHERE id = ? AND status = 'pending' AND available_at <= clock_at(?) AND head_of_key(event)
