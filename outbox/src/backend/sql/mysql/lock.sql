-- Locks rows and says what they are: whether they are still what their caller takes them for is compared there. In
-- order of the primary key, as all that locks several rows. What somebody else has locked is passed over. seqs.
SELECT seq, fence, status, locked_by FROM outbox_event FORCE INDEX (PRIMARY) WHERE seq IN ({list})
ORDER BY seq FOR UPDATE SKIP LOCKED
