-- Whether an unfinished event of the type has this subject: one probe of an index. ?1 type, ?2 subject.
SELECT EXISTS (
    SELECT 1 FROM outbox_event INDEXED BY outbox_event_subject
    WHERE event_type = ?1 AND subject = ?2 AND status <> 'completed' AND status <> 'dead_letter')
