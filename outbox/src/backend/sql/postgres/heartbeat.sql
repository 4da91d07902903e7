-- A worker lives: whether its row was there and not declared dead, and which of what it has in hand is not its own any
-- more. One round trip. (The || '' are explained at settle.sql.) $1 worker, $2 seqs, $3 fences, $4 now.
WITH beat AS (
    UPDATE outbox_worker SET heartbeat_at = clock_at($4) WHERE id = $1 AND stopped_at IS NULL RETURNING id)
SELECT EXISTS (SELECT 1 FROM beat),
       ARRAY(SELECT held.seq FROM unnest($2::bigint[], $3::bigint[]) AS held (seq, fence)
             WHERE NOT EXISTS (
                 SELECT 1 FROM outbox_event AS event
                 WHERE event.seq = held.seq AND event.fence = held.fence
                   AND event.locked_by || '' = $1 AND event.status || '' = 'processing'))
