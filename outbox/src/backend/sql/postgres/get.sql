-- One event, whole. $1 id, $2 now.
SELECT seq, id::text, event_type, event_version::bigint, payload::text, headers::text, status, attempts::bigint, crashes::bigint, max_attempts::bigint,
       (extract(epoch FROM available_at) * 1000)::bigint, (extract(epoch FROM locked_at) * 1000)::bigint, locked_by, fence, last_error, ordering_key, dedup_key,
       subject, (extract(epoch FROM created_at) * 1000)::bigint, (extract(epoch FROM processed_at) * 1000)::bigint,
       status = 'pending' AND available_at <= clock_at($2),
       on_dead_letter, status = 'pending' AND NOT head_of_key(event)
FROM outbox_event AS event WHERE id = $1::uuid
