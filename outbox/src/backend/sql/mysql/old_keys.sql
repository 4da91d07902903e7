-- A page of keys that nobody has enqueued for in strict order for thirty days. now.
SELECT ordering_key FROM outbox_key WHERE used_at <= clock_at(?) - 2592000000 LIMIT 1000
