-- Claims a batch in one statement. $1 types, $2 versions, $3 rooms, $4 limit, $5 suspects, $6 worker, $7 now, $8 share,
-- $9 and $10 the marks: due times in microseconds, and seqs.
--
-- The array is evaluated once, so no more than the limit are taken whatever runs beside it. One LATERAL for each type:
-- nobody's backlog is read for another's events. First each type gets its share, so that no backlog fills the batch
-- alone; then what is left of the limit goes to whoever has more (rows that OFFSET passes over are those that the share
-- took). The types come in this claim's order, which the worker turns from claim to claim. The time stands in a scalar
-- subquery, since a volatile function is no index condition.
--
-- The mark keeps the scan off the index entries of what was claimed before, which stay there for as long as any
-- transaction on the server is older than they.
UPDATE outbox_event
SET status = 'processing', fence = fence + 1, locked_by = $6, locked_at = clock_at($7)
WHERE status = 'pending' AND seq = ANY (ARRAY(
    SELECT seq FROM (
        -- At most one event with which a worker died, before all others.
        (SELECT suspect.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS kind (name, version, room)
         CROSS JOIN LATERAL (
             SELECT seq FROM outbox_event
             WHERE event_type = kind.name AND status = 'pending' AND crashes > 0
               AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
             ORDER BY available_at, seq LIMIT least(kind.room, $5::bigint) FOR UPDATE SKIP LOCKED) AS suspect
         LIMIT $5::bigint)
        UNION ALL
        (SELECT due.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $9::bigint[], $10::bigint[])
                  AS kind (name, version, room, mark_due, mark_seq)
         CROSS JOIN LATERAL (
             SELECT seq FROM outbox_event
             WHERE event_type = kind.name AND status = 'pending' AND crashes = 0
               AND (available_at, seq) > (coalesce(kind.mark_due * interval '1 microsecond' + 'epoch'::timestamptz, '-infinity'),
                                          coalesce(kind.mark_seq, 0))
               AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
             ORDER BY available_at, seq LIMIT least(kind.room, $8::bigint) FOR UPDATE SKIP LOCKED) AS due
         LIMIT $4::bigint)
        UNION ALL
        (SELECT due.seq
         FROM unnest($1::text[], $2::bigint[], $3::bigint[], $9::bigint[], $10::bigint[])
                  AS kind (name, version, room, mark_due, mark_seq)
         CROSS JOIN LATERAL (
             SELECT seq FROM outbox_event
             WHERE event_type = kind.name AND status = 'pending' AND crashes = 0
               AND (available_at, seq) > (coalesce(kind.mark_due * interval '1 microsecond' + 'epoch'::timestamptz, '-infinity'),
                                          coalesce(kind.mark_seq, 0))
               AND available_at <= (SELECT clock_at($7)) AND event_version <= kind.version
             ORDER BY available_at, seq LIMIT greatest(least(kind.room, $4::bigint) - $8::bigint, 0) OFFSET $8::bigint
             FOR UPDATE SKIP LOCKED) AS due
         LIMIT $4::bigint)) AS chosen
    LIMIT $4::bigint))
RETURNING seq, id::text, fence, event_type, event_version, payload::text, headers::text, attempts, crashes, max_attempts,
       (extract(epoch FROM available_at) * 1000000)::bigint, (extract(epoch FROM created_at) * 1000)::bigint
