-- Forgets one of them. Whoever waits for its row makes it anew. key, now.
DELETE FROM outbox_key WHERE ordering_key = ? AND used_at <= clock_at(?) - 2592000000
