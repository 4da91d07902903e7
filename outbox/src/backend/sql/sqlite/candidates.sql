-- What a claim would take, [seq, …]: a read, which takes no lock, so an idle worker never holds up a writer.
-- ?1 kinds [{type, version, room, mark_due, mark_seq, keyed_due, keyed_seq}], ?2 limit, ?3 suspects, ?4 now,
-- ?5 how many events with an ordering key are looked at for each type (-1: all), ?6 [key of which one has just ended, …].
--
-- json_each(kinds) beside json_each(the first due rows of that kind) is SQLite's LATERAL: each type gets a scan of
-- its own, of at most the batch, so nobody's backlog is read for another's events. The places are then dealt
-- round the types: first of each, second of each, …, which is the fairness.
WITH kind AS MATERIALIZED (
    SELECT key AS turn, value ->> 'type' AS name, value ->> 'version' AS version, value ->> 'room' AS room,
           coalesce(value ->> 'mark_due', -9223372036854775808) AS mark_due, coalesce(value ->> 'mark_seq', 0) AS mark_seq,
           coalesce(value ->> 'keyed_due', -9223372036854775808) AS keyed_due, coalesce(value ->> 'keyed_seq', 0) AS keyed_seq
    FROM json_each(?1))
SELECT json_group_array(seq) FROM (SELECT seq FROM (
    SELECT seq, turn, room, row_number() OVER (PARTITION BY turn ORDER BY rank) AS place
    FROM (
        SELECT due.value AS seq, kind.turn, due.key AS rank, kind.room
        FROM kind, json_each((
            SELECT json_group_array(seq) FROM (
                SELECT seq FROM outbox_event INDEXED BY outbox_event_due
                WHERE event_type = kind.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NULL
                  AND (available_at, seq) > (kind.mark_due, kind.mark_seq)
                  AND available_at <= clock_at(?4) AND event_version <= kind.version
                ORDER BY available_at, seq LIMIT ?2))) AS due
        WHERE due.key < kind.room
        UNION ALL
        -- The next of a key goes on where its last one ended, however many others wait before it.
        SELECT event.seq, kind.turn, ended.key, kind.room
        FROM json_each(?6) AS ended
        CROSS JOIN outbox_event AS event ON event.seq = (
            SELECT first.seq FROM outbox_event AS first INDEXED BY outbox_event_key
            WHERE first.ordering_key = ended.value AND first.status <> 'completed'
              AND (first.status <> 'dead_letter' OR first.on_dead_letter = 'block')
            ORDER BY first.seq LIMIT 1)
        JOIN kind ON kind.name = event.event_type
        WHERE event.status = 'pending' AND event.crashes = 0 AND event.available_at <= clock_at(?4)
          AND event.event_version <= kind.version AND head_of_key(event)
        UNION ALL
        SELECT due.value, kind.turn, due.key, kind.room
        FROM kind, json_each((
            SELECT json_group_array(seq) FROM (
                SELECT event.seq FROM (
                    SELECT seq, ordering_key FROM outbox_event INDEXED BY outbox_event_keyed
                    WHERE event_type = kind.name AND status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL
                      AND (available_at, seq) > (kind.keyed_due, kind.keyed_seq)
                      AND available_at <= clock_at(?4) AND event_version <= kind.version
                    ORDER BY available_at, seq LIMIT ?5) AS event
                WHERE head_of_key(event)
                LIMIT ?2))) AS due
        WHERE due.key < kind.room
        UNION ALL
        -- At most one event with which a worker died, before all others.
        SELECT * FROM (
            SELECT event.seq, kind.turn, -1, kind.room
            FROM kind CROSS JOIN outbox_event AS event INDEXED BY outbox_event_suspect
            WHERE event.event_type = kind.name AND event.status = 'pending' AND event.crashes > 0
              AND event.available_at <= clock_at(?4) AND event.event_version <= kind.version AND kind.room > 0
              AND head_of_key(event)
            ORDER BY event.available_at, event.seq LIMIT ?3)))
WHERE place <= room
ORDER BY place, turn LIMIT ?2)
