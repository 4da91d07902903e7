-- Of what is in hand, that which is not ours any more. ?1 worker, ?2 [[seq, fence], …].
SELECT held.value ->> 0 FROM json_each(?2) AS held
WHERE NOT EXISTS (
    SELECT 1 FROM outbox_event AS event
    WHERE event.seq = held.value ->> 0 AND event.fence = held.value ->> 1
      AND event.locked_by = ?1 AND event.status = 'processing')
