-- Workers that ended: after an hour where a later one handled the same kinds, else after 90 days, since the policy for
-- unknown event types asks who was seen. now, now.
SELECT ended.id FROM outbox_worker AS ended
WHERE ended.stopped_at <= clock_at(?) - 3600000
  AND (ended.stopped_at <= clock_at(?) - 7776000000
       OR EXISTS (SELECT 1 FROM outbox_worker AS later
                  WHERE later.kinds = ended.kinds
                    AND (later.heartbeat_at > ended.heartbeat_at
                         OR (later.heartbeat_at = ended.heartbeat_at AND later.id > ended.id))))
