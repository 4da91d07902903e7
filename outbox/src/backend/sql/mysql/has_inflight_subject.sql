-- Whether an unfinished event of the type has this subject: one probe of an index. type, subject.
SELECT EXISTS (SELECT 1 FROM outbox_event FORCE INDEX (by_subject) WHERE event_type = ? AND open_subject = ?)
