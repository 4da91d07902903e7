-- The outbox: one row an event, one row a worker. For MySQL from 8.0.22 and MariaDB from 10.6.
-- Times are milliseconds since 1970 in UTC, whatever the session's time zone is: the zones of TIMESTAMP and DATETIME are
-- the session's affair. Types and keys compare by bytes, so they are VARBINARY: every collation that both servers have
-- finds 'a' and 'a ' equal. Their columns are a byte longer than what may stand there, so that a session that is not
-- strict fails at the check instead of cutting.
-- There are no partial indexes here. A column that is NULL outside of a set stands in for one: `waiting`, `owner`,
-- `open_key`, `running_key`, `open_subject`, `dead_at`, `blocking_at`; each is derived, and takes no room in the row.
-- Statements of this kind commit by themselves, so each may be there already when a migration is gone on with.
CREATE TABLE IF NOT EXISTS outbox_event (
    seq            BIGINT       NOT NULL AUTO_INCREMENT PRIMARY KEY,
    id             CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL
                                CHECK (id REGEXP '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$'),
    event_type     VARBINARY(256) NOT NULL CHECK (LENGTH(event_type) BETWEEN 1 AND 255),
    event_version  INT          NOT NULL DEFAULT 1 CHECK (event_version >= 1),
    payload        LONGTEXT     NOT NULL CHECK (JSON_VALID(payload)),
    headers        LONGTEXT     CHECK (JSON_VALID(headers)),
    status         VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT 'pending'
                                CHECK (status IN ('pending', 'processing', 'completed', 'dead_letter')),
    attempts       INT          NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    crashes        INT          NOT NULL DEFAULT 0 CHECK (crashes >= 0),
    max_attempts   INT          NOT NULL DEFAULT 10 CHECK (max_attempts >= 1),
    available_at   BIGINT       NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
    locked_at      BIGINT,
    locked_by      VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin,
    fence          BIGINT       NOT NULL DEFAULT 0,
    last_error     LONGTEXT,
    ordering_key   VARBINARY(256) CHECK (LENGTH(ordering_key) <= 255),
    -- Whether a dead letter blocks its key. NULL: the next event of the key goes on.
    on_dead_letter VARCHAR(16)  CHARACTER SET ascii COLLATE ascii_bin CHECK (on_dead_letter = 'block'),
    dedup_key      VARBINARY(256) CHECK (LENGTH(dedup_key) <= 255),
    subject        VARBINARY(256) CHECK (LENGTH(subject) <= 255),
    created_at     BIGINT       NOT NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
    processed_at   BIGINT,

    -- Of what waits: 0 for most; 1 with an ordering key, since most of those may be waiting for others; 2 for those that
    -- a worker died with, which are claimed one at a time.
    waiting        TINYINT      GENERATED ALWAYS AS (CASE WHEN status = 'pending' THEN
                                    CASE WHEN crashes > 0 THEN 2 WHEN ordering_key IS NOT NULL THEN 1 ELSE 0 END END) VIRTUAL,
    -- Of what is processed: who does it. Empty where nobody is named.
    owner          VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin
                                GENERATED ALWAYS AS (CASE WHEN status = 'processing' THEN COALESCE(locked_by, '') END) VIRTUAL,
    open_key       VARBINARY(256) GENERATED ALWAYS AS (CASE WHEN status <> 'completed'
                                    AND (status <> 'dead_letter' OR on_dead_letter = 'block') THEN ordering_key END) VIRTUAL,
    running_key    VARBINARY(256) GENERATED ALWAYS AS (CASE WHEN status = 'processing' THEN ordering_key END) VIRTUAL,
    open_subject   VARBINARY(256) GENERATED ALWAYS AS (CASE WHEN status IN ('pending', 'processing') THEN subject END) VIRTUAL,
    dead_at        BIGINT       GENERATED ALWAYS AS (CASE WHEN status = 'dead_letter' THEN processed_at END) VIRTUAL,
    blocking_at    BIGINT       GENERATED ALWAYS AS (CASE WHEN status = 'dead_letter' AND on_dead_letter = 'block'
                                    AND ordering_key IS NOT NULL THEN processed_at END) VIRTUAL,

    UNIQUE KEY by_id (id),
    -- What can be claimed, in the order in which it is. The version stands last so that an older binary passes over newer
    -- events inside the index.
    KEY by_turn (waiting, event_type, available_at, seq, event_version),
    -- What a key has to get through, in order: its first entry is the one that may run.
    KEY by_key (open_key, seq),
    -- One at a time for each key, whatever commits late or is requeued.
    UNIQUE KEY key_running (running_key),
    -- What the reaper looks through.
    KEY by_owner (owner),
    -- Dead letters, newest first, for the people who look after them; and those that block their key.
    KEY by_death (dead_at, seq),
    KEY by_blocking (blocking_at, seq),
    -- One stored event for each key of a type.
    UNIQUE KEY by_dedup (event_type, dedup_key),
    -- Whether something is under way for a subject.
    KEY by_subject (open_subject, event_type)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- kinds: [{"type": "billing.invoice", "version": 1}, …], what the worker handles, up to that version.
CREATE TABLE IF NOT EXISTS outbox_worker (
    id           VARCHAR(64)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL PRIMARY KEY,
    host         VARCHAR(255) NOT NULL,
    pid          BIGINT       NOT NULL,
    kinds        LONGTEXT     NOT NULL CHECK (JSON_VALID(kinds)),
    lease_ms     BIGINT       NOT NULL,
    stuck_ms     BIGINT       NOT NULL,
    started_at   BIGINT       NOT NULL,
    heartbeat_at BIGINT       NOT NULL,
    stopped_at   BIGINT
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Rows to lock: whoever enqueues in strict order holds that of its key's slot until it commits. They are all there from
-- the start.
CREATE TABLE IF NOT EXISTS outbox_key (slot INT NOT NULL PRIMARY KEY) ENGINE = InnoDB;
INSERT IGNORE INTO outbox_key (slot)
WITH digit (n) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3)
SELECT ((((((a.n * 4 + b.n) * 4 + c.n) * 4 + d.n) * 4 + e.n) * 4 + f.n) * 4) + g.n
FROM digit AS a, digit AS b, digit AS c, digit AS d, digit AS e, digit AS f, digit AS g;
