-- Forgets workers that ended: after an hour where a later one handled the same kinds, else after 90 days, since
-- the policy for unknown event types asks who was seen. ?1 now.
DELETE FROM outbox_worker
WHERE stopped_at <= clock_at(?1) - 3600000
  AND (stopped_at <= clock_at(?1) - 7776000000
       OR EXISTS (SELECT 1 FROM outbox_worker AS later
                  WHERE later.kinds = outbox_worker.kinds
                    AND (later.heartbeat_at, later.id) > (outbox_worker.heartbeat_at, outbox_worker.id)))
