-- Holds the key until the caller's transaction ends, so that its events commit in the order of their seqs. GET_LOCK
-- would be the session's, and outlive the transaction. The row stays for a while: where it has to be made, and who makes
-- it rolls back, two others that wait for it meet in a deadlock. key, now, now.
INSERT INTO outbox_key (ordering_key, used_at) VALUES (?, clock_at(?)) ON DUPLICATE KEY UPDATE used_at = clock_at(?)
