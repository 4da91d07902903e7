-- Holds the keys until the caller's transaction ends, so that their events commit in the order of their seqs: each by the
-- row of its slot. A row for each key would have to be made, and where who makes it rolls back, two others that wait for
-- it meet in a deadlock. GET_LOCK would be the session's, and outlive the transaction. Slots of keys.
SELECT slot FROM outbox_key FORCE INDEX (PRIMARY) WHERE slot IN ({slots}) ORDER BY slot FOR UPDATE
