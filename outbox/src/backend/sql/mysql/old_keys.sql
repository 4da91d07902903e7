-- A page of keys that nobody has enqueued for in strict order for an hour. now.
SELECT ordering_key FROM outbox_key WHERE used_at <= clock_at(?) - 3600000 LIMIT 1000
