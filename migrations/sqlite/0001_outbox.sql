-- The outbox: one row an event, one row a worker.
-- Times are milliseconds since 1970 in UTC. julianday() keeps milliseconds and is there in every SQLite that has
-- STRICT tables (3.37), unixepoch('subsec') only from 3.42 on: a producer may use its system's old library.
-- AUTOINCREMENT, so that seq never comes again after the newest rows are deleted.
CREATE TABLE outbox_event (
    seq           INTEGER PRIMARY KEY AUTOINCREMENT,
    id            TEXT    NOT NULL UNIQUE CHECK (id GLOB
        '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]-[0-9a-f][0-9a-f][0-9a-f][0-9a-f]-'
        || '[0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f]'),
    event_type    TEXT    NOT NULL CHECK (length(CAST(event_type AS BLOB)) BETWEEN 1 AND 255),
    event_version INTEGER NOT NULL DEFAULT 1 CHECK (event_version BETWEEN 1 AND 2147483647),
    payload       TEXT    NOT NULL CHECK (json_valid(payload)),
    -- Older SQLite finds that NULL is no JSON, and such a client may insert here.
    headers       TEXT    CHECK (headers IS NULL OR json_valid(headers)),
    status        TEXT    NOT NULL DEFAULT 'pending'
                          CHECK (status IN ('pending', 'processing', 'completed', 'dead_letter')),
    attempts      INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN 0 AND 2147483647),
    crashes       INTEGER NOT NULL DEFAULT 0 CHECK (crashes BETWEEN 0 AND 2147483647),
    max_attempts  INTEGER NOT NULL DEFAULT 10 CHECK (max_attempts BETWEEN 1 AND 2147483647),
    available_at  INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    locked_at     INTEGER,
    locked_by     TEXT,
    fence         INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT,
    ordering_key  TEXT    CHECK (length(CAST(ordering_key AS BLOB)) <= 255),
    -- Whether a dead letter blocks its key. NULL: the next event of the key goes on.
    on_dead_letter TEXT   CHECK (on_dead_letter = 'block'),
    dedup_key     TEXT    CHECK (length(CAST(dedup_key AS BLOB)) <= 255),
    subject       TEXT    CHECK (length(CAST(subject AS BLOB)) <= 255),
    created_at    INTEGER NOT NULL DEFAULT (CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER)),
    processed_at  INTEGER
) STRICT;

-- What can be claimed, in the order in which it is. The version stands last so that an older binary passes over
-- newer events inside the index. Events with an ordering key stand apart: most of them may be waiting for others.
CREATE INDEX outbox_event_due ON outbox_event (event_type, available_at, seq, event_version)
    WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NULL;
CREATE INDEX outbox_event_keyed ON outbox_event (event_type, available_at, seq, event_version)
    WHERE status = 'pending' AND crashes = 0 AND ordering_key IS NOT NULL;

-- What a key has to get through, in order: its first entry is the one that may run.
CREATE INDEX outbox_event_key ON outbox_event (ordering_key, seq)
    WHERE ordering_key IS NOT NULL AND status <> 'completed' AND (status <> 'dead_letter' OR on_dead_letter = 'block');

-- One at a time for each key, whatever is requeued.
CREATE UNIQUE INDEX outbox_event_key_running ON outbox_event (ordering_key)
    WHERE ordering_key IS NOT NULL AND status = 'processing';

-- Events that a worker died with: claimed one at a time, so they have an index of their own, nearly always empty.
CREATE INDEX outbox_event_suspect ON outbox_event (event_type, available_at, seq, event_version)
    WHERE status = 'pending' AND crashes > 0;

-- What the reaper looks through.
CREATE INDEX outbox_event_processing ON outbox_event (locked_by) WHERE status = 'processing';

-- Dead letters, newest first, for the people who look after them.
CREATE INDEX outbox_event_dead ON outbox_event (processed_at, seq) WHERE status = 'dead_letter';

-- One stored event for each key of a type.
CREATE UNIQUE INDEX outbox_event_dedup ON outbox_event (event_type, dedup_key) WHERE dedup_key IS NOT NULL;

-- Whether something is under way for a subject.
CREATE INDEX outbox_event_subject ON outbox_event (event_type, subject)
    WHERE subject IS NOT NULL AND status <> 'completed' AND status <> 'dead_letter';

-- Dead letters that block their key.
CREATE INDEX outbox_event_blocking ON outbox_event (processed_at, seq)
    WHERE status = 'dead_letter' AND on_dead_letter = 'block' AND ordering_key IS NOT NULL;

-- kinds: [{"type": "billing.invoice", "version": 1}, …], what the worker handles, up to that version.
CREATE TABLE outbox_worker (
    id           TEXT    PRIMARY KEY NOT NULL,
    host         TEXT    NOT NULL,
    pid          INTEGER NOT NULL,
    kinds        TEXT    NOT NULL CHECK (json_valid(kinds)),
    lease_ms     INTEGER NOT NULL,
    stuck_ms     INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    stopped_at   INTEGER
) STRICT;
