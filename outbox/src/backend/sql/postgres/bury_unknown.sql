-- A page of waiting events of a type that no worker seen lately handles become dead letters.
-- $1 type, $2 after_ms, $3 error, $4 page, $5 now.
UPDATE outbox_event SET status = 'dead_letter', last_error = $3, processed_at = clock_at($5)
WHERE status = 'pending' AND seq = ANY (ARRAY(
    SELECT seq FROM outbox_event
    WHERE event_type = $1 AND status = 'pending'
      AND greatest(available_at, created_at) <= (SELECT clock_at($5)) - $2::bigint * interval '1 millisecond'
      AND NOT EXISTS (
          SELECT 1 FROM outbox_worker AS worker, json_array_elements(worker.kinds) AS kind
          WHERE worker.heartbeat_at >= clock_at($5) - $2::bigint * interval '1 millisecond' AND kind ->> 'type' = $1)
    LIMIT $4 FOR UPDATE SKIP LOCKED))
