-- Whoever comes first migrates; the others wait here and then find it done. The session's lock, since statements that
-- make tables end every transaction; a holder that crashes lets go. Names have 64 characters at most. schema.
SELECT GET_LOCK(CONCAT('outbox ', MD5(COALESCE(?, DATABASE(), ''))), 60)
