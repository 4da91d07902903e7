-- Claims a batch in one statement. $1 types, $2 versions, $3 rooms, $4 limit, $5 suspects, $6 worker, $7 now, $8 share,
-- $9 and $10 the marks of events without a key: due times in microseconds, and seqs; $11 and $12 those of events with
-- one; $13 how many of those are looked at for each type (NULL: all), $14 keys of which an event has just ended.
--
-- The array is evaluated once, so no more than the limit are taken whatever runs beside it. One LATERAL for each type:
-- nobody's backlog is read for another's events. The types come in this claim's order, which the worker turns from claim
-- to claim. The time stands in a scalar subquery, since a volatile function is no index condition.
--
-- The marks keep the scans off the index entries of what was claimed before, which stay there for as long as any
-- transaction on the server is older than they, and off events that wait for others of their key.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = $6, locked_at = clock_at($7)
WHERE status = 'pending' AND seq = ANY (ARRAY(
    SELECT seq FROM (
        -- At most one event with which a worker died, before all others.
        (SELECT suspect.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS kind (name, version, room)
         CROSS JOIN LATERAL (
             SELECT event.seq FROM outbox_event AS event
             WHERE event.event_type = kind.name AND event.status = 'pending' AND event.crashes > 0
               AND event.available_at <= (SELECT clock_at($7)) AND event.event_version <= kind.version
               AND head_of_key(event)
             ORDER BY event.available_at, event.seq LIMIT least(kind.room, $5::bigint) FOR UPDATE SKIP LOCKED) AS suspect
         LIMIT $5::bigint)
        UNION ALL
        -- Each type its share, so that no backlog fills the batch alone.
        (SELECT due.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $9::bigint[], $10::bigint[])
                  AS kind (name, version, room, mark_due, mark_seq)
         CROSS JOIN LATERAL (
             SELECT seq FROM outbox_event
             WHERE event_type = kind.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
               AND (available_at, seq) > (due_at(kind.mark_due), coalesce(kind.mark_seq, 0))
               AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
             ORDER BY available_at, seq LIMIT least(kind.room, $8::bigint) FOR UPDATE SKIP LOCKED) AS due
         LIMIT $4::bigint)
        UNION ALL
        -- The next of a key goes on where its last one ended, however many others wait before it.
        (SELECT next.seq
         FROM (SELECT event.seq
               FROM unnest($14::text[]) AS ended (key)
               CROSS JOIN LATERAL (
                   SELECT first.seq, first.event_type FROM outbox_event AS first
                   WHERE first.ordering_key = ended.key AND first.status <> 'completed'
                     AND (first.status <> 'dead_letter' OR first.on_dead_letter = 'block')
                   ORDER BY first.seq LIMIT 1) AS head
               JOIN unnest($1::text[], $2::bigint[], $3::bigint[]) AS kind (name, version, room) ON kind.name = head.event_type
               JOIN outbox_event AS event ON event.seq = head.seq
               WHERE event.status = 'pending' AND event.crashes = 0 AND event.available_at <= (SELECT clock_at($7))
                 AND event.event_version <= kind.version AND head_of_key(event)
               LIMIT $4::bigint FOR UPDATE OF event SKIP LOCKED) AS next)
        UNION ALL
        (SELECT keyed.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $11::bigint[], $12::bigint[])
                  AS kind (name, version, room, mark_due, mark_seq)
         CROSS JOIN LATERAL (
             SELECT event.seq
             FROM (SELECT seq FROM outbox_event
                   WHERE event_type = kind.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
                     AND (available_at, seq) > (due_at(kind.mark_due), coalesce(kind.mark_seq, 0))
                     AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
                   ORDER BY available_at, seq LIMIT $13::bigint) AS candidate
             JOIN outbox_event AS event ON event.seq = candidate.seq
             WHERE event.status = 'pending' AND event.available_at <= (SELECT clock_at($7)) AND head_of_key(event)
             LIMIT least(kind.room, $4::bigint) FOR UPDATE OF event SKIP LOCKED) AS keyed
         LIMIT $4::bigint)
        UNION ALL
        -- What is left of the limit goes to whoever has more (OFFSET passes over what the share took).
        (SELECT due.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $9::bigint[], $10::bigint[])
                  AS kind (name, version, room, mark_due, mark_seq)
         CROSS JOIN LATERAL (
             SELECT seq FROM outbox_event
             WHERE event_type = kind.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
               AND (available_at, seq) > (due_at(kind.mark_due), coalesce(kind.mark_seq, 0))
               AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
             ORDER BY available_at, seq LIMIT greatest(least(kind.room, $4::bigint) - $8::bigint, 0) OFFSET $8::bigint
             FOR UPDATE SKIP LOCKED) AS due
         LIMIT $4::bigint)) AS chosen
    LIMIT $4::bigint))
RETURNING seq, id, fence, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at,
          created_at, ordering_key
