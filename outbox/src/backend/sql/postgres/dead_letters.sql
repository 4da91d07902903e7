-- Dead letters of the given types, newest first, from the cursor on. $1 types, $2 processed_at in ms, $3 seq, $4 limit.
-- The cursor is to the millisecond, and so is the order.
SELECT seq, id::text, event_type, event_version::bigint, payload::text, headers::text, status, attempts::bigint, crashes::bigint, max_attempts::bigint,
       (extract(epoch FROM available_at) * 1000)::bigint, (extract(epoch FROM locked_at) * 1000)::bigint, locked_by, fence, last_error, ordering_key, dedup_key,
       subject, (extract(epoch FROM created_at) * 1000)::bigint, (extract(epoch FROM processed_at) * 1000)::bigint, false,
       on_dead_letter, false
FROM outbox_event
WHERE status = 'dead_letter' AND event_type = ANY ($1::text[])
  AND ($2::bigint IS NULL OR (date_trunc('milliseconds', processed_at), seq) < (to_timestamp($2::bigint / 1000.0), $3))
ORDER BY date_trunc('milliseconds', processed_at) DESC, seq DESC LIMIT $4
