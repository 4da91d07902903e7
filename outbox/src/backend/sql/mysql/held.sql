-- What a worker holds in the table. worker.
SELECT seq, fence FROM outbox_event FORCE INDEX (by_owner) WHERE owner = ?
