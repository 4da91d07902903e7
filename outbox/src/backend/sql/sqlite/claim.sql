-- Claims a batch in one statement. ?1 kinds [{type, version, room}], ?2 limit, ?3 suspects, ?4 worker, ?5 now.
--
-- json_each(kinds) beside json_each(the first due rows of that kind) is SQLite's LATERAL: each type gets a scan of
-- its own, of at most the batch, so nobody's backlog is read for another's events. The places are then dealt
-- round the types: first of each, second of each, …, which is the fairness.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = ?4, locked_at = clock_at(?5)
WHERE status = 'pending' AND seq IN (
    SELECT seq FROM (
        SELECT seq, turn, room, row_number() OVER (PARTITION BY turn ORDER BY rank) AS place
        FROM (
            SELECT due.value AS seq, kind.key AS turn, due.key AS rank, kind.value ->> 'room' AS room
            FROM json_each(?1) AS kind, json_each((
                SELECT json_group_array(seq) FROM (
                    SELECT seq FROM outbox_event INDEXED BY outbox_event_due
                    WHERE event_type = kind.value ->> 'type' AND status = 'pending' AND crashes = 0
                      AND available_at <= clock_at(?5) AND event_version <= kind.value ->> 'version'
                    ORDER BY available_at, seq LIMIT ?2))) AS due
            WHERE due.key < kind.value ->> 'room'
            UNION ALL
            -- At most one event with which a worker died, before all others.
            SELECT * FROM (
                SELECT event.seq, kind.key, -1, kind.value ->> 'room'
                FROM json_each(?1) AS kind CROSS JOIN outbox_event AS event INDEXED BY outbox_event_suspect
                WHERE event.event_type = kind.value ->> 'type' AND event.status = 'pending' AND event.crashes > 0
                  AND event.available_at <= clock_at(?5)
                  AND event.event_version <= kind.value ->> 'version' AND kind.value ->> 'room' > 0
                ORDER BY event.available_at, event.seq LIMIT ?3)))
    WHERE place <= room
    ORDER BY place, turn LIMIT ?2)
RETURNING seq, id, fence, event_type, event_version, payload, headers, attempts, crashes, max_attempts, available_at, created_at
