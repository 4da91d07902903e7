-- A page of waiting events of a type that no worker seen lately handles. type, now, after_ms, now, after_ms, type, page.
SELECT seq FROM outbox_event FORCE INDEX (by_turn)
WHERE waiting IN (0, 1, 2) AND event_type = ? AND GREATEST(available_at, created_at) <= clock_at(?) - ?
  AND NOT EXISTS (SELECT 1 FROM outbox_worker AS worker
                  WHERE worker.heartbeat_at >= clock_at(?) - ?
                    AND JSON_CONTAINS(worker.kinds, JSON_ARRAY(JSON_OBJECT('type', ?))))
LIMIT ?
