-- Forgets workers that ended: after an hour where a later one handled the same kinds, else after 90 days, since
-- the policy for unknown event types asks who was seen. $1 now.
DELETE FROM outbox_worker AS worker
WHERE stopped_at <= clock_at($1) - interval '1 hour'
  AND (stopped_at <= clock_at($1) - interval '90 days'
       OR EXISTS (SELECT 1 FROM outbox_worker AS later
                  WHERE later.kinds::text = worker.kinds::text
                    AND (later.heartbeat_at, later.id) > (worker.heartbeat_at, worker.id)))
