-- Frees a page of events without a live owner, or held past their owner's stuck threshold. $1 page, $2 now.
-- lost:  the owner is dead. crashes + 1; an attempt only of an event that was a suspect already.
-- stuck: the owner lives, its handler does not end. An attempt is spent.
-- A row without owner or time was edited by hand: nothing is spent. A row that somebody has locked waits for the next
-- round.
WITH orphan AS (
    SELECT held.seq, held.locked_by AS owner, clock.now,
           CASE WHEN held.locked_by IS NULL OR held.locked_at IS NULL THEN 'edited'
                WHEN worker.id IS NULL THEN 'lost' ELSE 'stuck' END AS cause,
           held.locked_by IS NOT NULL AND held.locked_at IS NOT NULL
               AND (worker.id IS NOT NULL OR held.crashes > 0) AS spent
    FROM (SELECT clock_at($2) AS now) AS clock
    CROSS JOIN outbox_event AS held
    LEFT JOIN outbox_worker AS worker ON worker.id = held.locked_by AND worker.stopped_at IS NULL
    WHERE held.status = 'processing'
      AND (held.locked_at IS NULL OR worker.id IS NULL
           OR held.locked_at + worker.stuck_ms * interval '1 millisecond' <= clock.now)
    ORDER BY held.seq LIMIT $1 FOR UPDATE OF held SKIP LOCKED)
UPDATE outbox_event AS event
SET attempts = event.attempts + orphan.spent::integer,
    crashes = event.crashes + (orphan.cause = 'lost')::integer,
    status = CASE WHEN orphan.spent AND event.attempts + 1 >= event.max_attempts THEN 'dead_letter' ELSE 'pending' END,
    processed_at = CASE WHEN orphan.spent AND event.attempts + 1 >= event.max_attempts THEN orphan.now END,
    last_error = CASE orphan.cause
        WHEN 'lost' THEN 'worker lost'
        WHEN 'stuck' THEN 'held past the stuck threshold: the handler did not end'
        ELSE event.last_error END,
    locked_at = NULL,
    locked_by = NULL
FROM orphan
WHERE event.seq = orphan.seq AND event.status = 'processing' AND event.locked_by IS NOT DISTINCT FROM orphan.owner
RETURNING event.event_type, event.status
