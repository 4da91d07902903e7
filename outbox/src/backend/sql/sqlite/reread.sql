-- The rows that an outcome did not match, as they are. ?1 [seq, …].
SELECT seq, fence, status, locked_by FROM outbox_event WHERE seq IN (SELECT value FROM json_each(?1))
