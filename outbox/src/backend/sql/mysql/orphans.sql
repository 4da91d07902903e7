-- A page of events without a live owner, or held past their owner's stuck threshold, each with its fence and its cause.
-- A read: locking it would lock the workers' rows, and pass over those that renew at this moment as if they were dead.
-- lost:  the owner is dead. stuck: the owner lives, its handler does not end. edited: no owner or no time, by hand.
-- now, page.
SELECT held.seq, held.fence,
       CASE WHEN held.locked_by IS NULL OR held.locked_at IS NULL THEN 'edited'
            WHEN worker.id IS NULL THEN 'lost' ELSE 'stuck' END
FROM outbox_event AS held FORCE INDEX (by_owner)
LEFT JOIN outbox_worker AS worker ON worker.id = held.locked_by AND worker.stopped_at IS NULL
WHERE held.owner IS NOT NULL
  AND (held.locked_at IS NULL OR worker.id IS NULL OR held.locked_at + worker.stuck_ms <= clock_at(?))
LIMIT ?
