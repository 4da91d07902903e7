-- Deletes completed events at once, where completed rows are not kept. ?1 [[seq, fence], …], ?2 worker.
DELETE FROM outbox_event
WHERE seq IN (
    SELECT event.seq FROM json_each(?1) AS outcome CROSS JOIN outbox_event AS event ON event.seq = outcome.value ->> 0
    WHERE event.fence = outcome.value ->> 1 AND event.locked_by = ?2 AND event.status = 'processing')
RETURNING seq
