-- What freed events have become. seqs.
SELECT event_type, status FROM outbox_event FORCE INDEX (PRIMARY) WHERE seq IN ({list})
