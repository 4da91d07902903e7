-- How many events wait behind a dead letter, up to the cap. key, seq, cap.
SELECT COUNT(*) FROM (
    SELECT 1 FROM outbox_event FORCE INDEX (by_key) WHERE open_key = ? AND seq > ? LIMIT ?) AS waiting
