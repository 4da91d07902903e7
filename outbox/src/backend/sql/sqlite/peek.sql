-- Whether a claim would find anything. A read takes no lock: an idle worker never holds up a writer.
SELECT EXISTS (
    SELECT 1 FROM json_each(?1) AS kind
    WHERE EXISTS (
        SELECT 1 FROM outbox_event INDEXED BY outbox_event_due
        WHERE event_type = kind.value ->> 'type' AND status = 'pending' AND crashes = 0
          AND available_at <= clock_at(?3) AND event_version <= kind.value ->> 'version')
    OR (?2 > 0 AND EXISTS (
        SELECT 1 FROM outbox_event INDEXED BY outbox_event_suspect
        WHERE event_type = kind.value ->> 'type' AND status = 'pending' AND crashes > 0
          AND available_at <= clock_at(?3) AND event_version <= kind.value ->> 'version')))
