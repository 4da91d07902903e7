-- The next page of the table in order of seq: its last row, how many rows, how many may go, and the age of its youngest.
-- ?1 status, ?2 older_than_ms, ?3 after, ?4 page, ?5 now.
SELECT max(seq), count(*),
       coalesce(sum(status = ?1 AND processed_at <= now - ?2), 0),
       coalesce(min(created_at) > now - ?2, 0)
FROM (SELECT seq, status, processed_at, created_at, clock_at(?5) AS now
      FROM outbox_event WHERE seq > ?3 ORDER BY seq LIMIT ?4)
