-- Stores one event. A row that is there already (same id, or same key of the type) stays, and nothing comes back.
INSERT INTO outbox_event
    (id, event_type, event_version, payload, headers, max_attempts, available_at, ordering_key, on_dead_letter, dedup_key,
     subject, created_at)
SELECT $1::uuid, $2, $3::bigint, $4::text::json, $5::text::json, $6::bigint,
       coalesce(to_timestamp($7::bigint / 1000.0), clock.now) + $8::bigint * interval '1 millisecond', $9, $10, $11, $12,
       clock.now
FROM (SELECT clock_at($13) AS now) AS clock
ON CONFLICT DO NOTHING
RETURNING seq
