-- Stores many events of one type, in their order. A row that is there already stays; the ids of the others come back.
-- $1 ids, $2 type, $3 version, $4 payloads, $5 headers, $6 max_attempts, $7 available_at in ms, $8 delay in ms,
-- $9 ordering keys, $10 on_dead_letter, $11 dedup keys, $12 subjects, $13 now.
INSERT INTO outbox_event
    (id, event_type, event_version, payload, headers, max_attempts, available_at, ordering_key, on_dead_letter, dedup_key,
     subject, created_at)
SELECT event.id::uuid, $2, $3::bigint, event.payload::json, $5::text::json, $6::bigint,
       coalesce(to_timestamp($7::bigint / 1000.0), clock.now) + $8::bigint * interval '1 millisecond',
       event.ordering_key, CASE WHEN event.ordering_key IS NOT NULL THEN $10 END, event.dedup_key, event.subject, clock.now
FROM (SELECT clock_at($13) AS now) AS clock,
     unnest($1::text[], $4::text[], $9::text[], $11::text[], $12::text[]) WITH ORDINALITY
         AS event (id, payload, ordering_key, dedup_key, subject, place)
ORDER BY event.place
ON CONFLICT DO NOTHING
RETURNING id::text
