-- What is finished and old enough within a page. after, last, status, now, older_than_ms.
SELECT seq FROM outbox_event FORCE INDEX (PRIMARY)
WHERE seq > ? AND seq <= ? AND status = ? AND status IN ('completed', 'dead_letter') AND processed_at <= clock_at(?) - ?
