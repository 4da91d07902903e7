-- Holds the key until the caller's transaction ends, so that its events commit in the order of their seqs. $1 schema and
-- key. Two keys with one hash only wait for each other.
SELECT pg_advisory_xact_lock(hashtextextended($1, 7023))
