-- The next page of the table in order of seq: its last row, how many rows, how many may go, and the age of its youngest.
-- status, now, older_than_ms, now, older_than_ms, after, page.
SELECT MAX(seq), COUNT(*),
       CAST(COALESCE(SUM(status = ? AND processed_at <= clock_at(?) - ?), 0) AS SIGNED),
       COALESCE(MIN(created_at) > clock_at(?) - ?, 0)
FROM (SELECT seq, status, processed_at, created_at FROM outbox_event FORCE INDEX (PRIMARY)
      WHERE seq > ? ORDER BY seq LIMIT ?) AS page
