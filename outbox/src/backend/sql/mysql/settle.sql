-- Writes the outcomes of a batch into rows that are locked and known to be ours.
-- [[seq, status, attempts, delay_ms, keep_error, error], …], now, now, seqs. Those again, and the primary key by force: a
-- join that read a small table through would wait for every row that somebody else has locked.
UPDATE JSON_TABLE(?, '$[*]' COLUMNS (
           seq BIGINT PATH '$[0]', status VARCHAR(16) CHARACTER SET ascii PATH '$[1]', attempts INT PATH '$[2]',
           delay_ms BIGINT PATH '$[3]', keep_error INT PATH '$[4]', error LONGTEXT CHARACTER SET utf8mb4 PATH '$[5]')) AS outcome
STRAIGHT_JOIN outbox_event AS event FORCE INDEX (PRIMARY) ON event.seq = outcome.seq
SET event.status = outcome.status,
    event.attempts = outcome.attempts,
    event.available_at = CASE WHEN outcome.delay_ms IS NULL THEN event.available_at ELSE clock_at(?) + outcome.delay_ms END,
    event.processed_at = CASE WHEN outcome.status <> 'pending' THEN clock_at(?) END,
    event.last_error = CASE WHEN outcome.keep_error = 1 THEN event.last_error ELSE outcome.error END,
    event.locked_at = NULL,
    event.locked_by = NULL
WHERE event.seq IN ({list})
