//! SQLite: its connections and the binding of its statements.

mod signals;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteJournalMode, SqlitePoolOptions, SqliteRow};
use sqlx::{AssertSqlSafe, Connection, Pool, Sqlite, Transaction};

use super::data::{
    BlockedKey, Claim, Claimed, Duplicate, EventRecord, FoundRow, HeartbeatPool, Identity, Kind, LoopNeeds,
    LoopPools, NewEvent, NewEvents, NewRow, PrunePage, Reaped, Settlement, Status, TypeStats, WorkerInfo,
    WorkerRow, WriteError, count, json, on_dead_letter_column,
};
use super::rows::{self, PlainRow, plain_row};
use super::statements::{Place, qualify, statements};
use super::{At, Backend, Migration, sealed};
use crate::event::EventId;

/// What the statements are written with.
const PHRASES: &[(&str, &str)] = &[
    // Milliseconds since 1970, from functions that every supported SQLite has; see the migration.
    ("clock_at", "coalesce({}, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER))"),
    (
        "head_of_key",
        "({}.ordering_key IS NULL OR ({}.seq = (\
             SELECT first.seq FROM outbox_event AS first INDEXED BY outbox_event_key \
             WHERE first.ordering_key = {}.ordering_key AND first.status <> 'completed' \
               AND (first.status <> 'dead_letter' OR first.on_dead_letter = 'block') \
             ORDER BY first.seq LIMIT 1) \
         AND NOT EXISTS (\
             SELECT 1 FROM outbox_event AS running INDEXED BY outbox_event_key_running \
             WHERE running.ordering_key = {}.ordering_key AND running.status = 'processing')))",
    ),
];

/// How long a statement waits for another writer.
const BUSY_TIMEOUT: Duration = Duration::from_secs(10);

statements! {
    "sqlite", PHRASES, table_name;
    blocked_keys, bury_unknown, candidates, claim, claim_event, dead_letters, discard, find_duplicates, get, has_inflight, has_inflight_subject, heartbeat, insert, insert_all, lost,
    mark_dead, prune, prune_page, prune_workers, reap, register, release_strays, requeue, requeue_types, reread,
    settle, settle_completed, settle_delete, stats, stop_worker, workers,
}

/// SQLite has no schemas, and transactions over attached files are not atomic in WAL mode: a schema is a prefix.
fn table_name(schema: Option<&str>, identifier: &str) -> String {
    match schema {
        None => identifier.to_owned(),
        Some(schema) => format!("\"{}.{identifier}\"", schema.replace('"', "\"\"")),
    }
}

type Result<T> = std::result::Result<T, sqlx::Error>;

impl sealed::Sealed for Sqlite {}

impl Backend for Sqlite {
    type Statements = Statements;
    type Signals = signals::SqliteSignals;

    const DATABASE: &'static str = "SQLite";
    const SCHEMES: &'static [&'static str] = &["sqlite"];
    const WRITES_ALONE: bool = true;
    const MIGRATIONS: &'static [Migration] = &[Migration {
        version: 1,
        name: "0001_outbox.sql",
        sql: include_str!("../../migrations/sqlite/0001_outbox.sql"),
    }];

    fn statements(place: &Place) -> Arc<Statements> {
        Statements::of(place)
    }

    fn unqueryable(_payload: &str) -> Option<&'static str> {
        // The text is stored as it is, and SQLite's JSON functions read every escape.
        None
    }

    fn is_transient(error: &sqlx::Error) -> bool {
        // SQLITE_BUSY_RECOVERY, SQLITE_LOCKED_SHAREDCACHE, SQLITE_BUSY_SNAPSHOT. Not SQLITE_BUSY: the busy timeout is over.
        let code = error.as_database_error().and_then(|error| error.code());
        code.is_some_and(|code| ["261", "262", "517"].contains(&&*code))
    }

    async fn connect(url: &str) -> Result<Pool<Self>> {
        let options = SqliteConnectOptions::from_str(url)?.create_if_missing(true).busy_timeout(BUSY_TIMEOUT);
        let memory = url.contains(":memory:") || url.contains("mode=memory");
        // A private in-memory database lives as long as its one connection.
        if memory {
            let pool = SqlitePoolOptions::new().max_connections(1).idle_timeout(None).max_lifetime(None);
            return pool.connect_with(options).await;
        }
        SqlitePoolOptions::new().connect_with(options.journal_mode(SqliteJournalMode::Wal)).await
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        // A deferred transaction that reads first and writes then fails "locked" whatever the busy timeout.
        pool.begin_with("BEGIN IMMEDIATE").await
    }

    async fn begin_pooled(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        // Nobody pools files; it is the same here.
        Self::begin(pool).await
    }

    async fn loop_pools(pool: &Pool<Self>, _place: &Place, needs: LoopNeeds) -> Result<LoopPools<Self>> {
        if is_in_memory(pool).await? {
            // In memory: what the caller's pool holds is all there is.
            let heartbeat = HeartbeatPool::Shared(pool.clone());
            let transactions = pool.clone();
            return Ok(LoopPools { claim: pool.clone(), settle: pool.clone(), heartbeat, transactions });
        }
        let connect = pool.connect_options().as_ref().clone();
        let connect = connect.journal_mode(SqliteJournalMode::Wal).busy_timeout(BUSY_TIMEOUT);
        // The caller's hooks come along (a key, an extension); its sizes do not.
        let options = pool.options().clone().min_connections(0).test_before_acquire(needs.lie_idle);
        // One writer: two would only wait for each other, by polling.
        let writer = options.clone().max_connections(1).connect_lazy_with(connect.clone());
        let transactions = options.clone().max_connections(1).connect_lazy_with(connect.clone());
        let heartbeat = HeartbeatPool::Own(options.max_connections(1), connect);
        Ok(LoopPools { claim: writer.clone(), settle: writer, heartbeat, transactions })
    }

    async fn schema_version(at: At<'_, Self>, schema: Option<&str>) -> Result<i64> {
        schema_version(at.conn, schema).await
    }

    async fn migrate(
        conn: &mut SqliteConnection,
        schema: Option<&str>,
        migrations: &[Migration],
    ) -> Result<()> {
        // The setting is the file's; it cannot change inside a transaction.
        sqlx::query("PRAGMA journal_mode = WAL").execute(&mut *conn).await?;
        for migration in migrations {
            // Whoever comes first migrates; the others wait here for the lock and then find it done.
            let mut tx = conn.begin_with("BEGIN IMMEDIATE").await?;
            if schema_version(&mut tx, schema).await? < migration.version {
                let sql = qualify(migration.sql, schema, table_name);
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *tx).await?;
                record_migration(&mut tx, schema, migration).await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    async fn insert(at: At<'_, Self>, event: &NewEvent<'_>) -> Result<bool> {
        let stored = at
            .sql
            .insert
            .query()
            .bind(event.id.to_string())
            .bind(event.event_type)
            .bind(event.version)
            .bind(event.payload)
            .bind(event.headers)
            .bind(event.max_attempts)
            .bind(event.available_at)
            .bind(event.delay_ms)
            .bind(event.ordering_key)
            .bind(event.ordering_key.and(on_dead_letter_column(event.on_dead_letter)))
            .bind(event.dedup_key)
            .bind(event.subject)
            .bind(at.now)
            .fetch_optional(at.conn)
            .await?;
        Ok(stored.is_some())
    }

    async fn find_duplicates(
        at: At<'_, Self>,
        event_type: &str,
        wanted: &[Identity<'_>],
    ) -> Result<Vec<(usize, Duplicate)>> {
        let pairs: Vec<_> = wanted.iter().map(|event| (event.id.to_string(), event.dedup_key)).collect();
        let query = at.sql.find_duplicates.query().bind(json(&pairs)?).bind(event_type);
        rows::all(&query.fetch_all(at.conn).await?, rows::duplicate)
    }

    async fn insert_all(at: At<'_, Self>, events: &NewEvents<'_>, rows: &[&NewRow]) -> Result<Vec<EventId>> {
        let row = |row: &NewRow| {
            let NewRow { id, payload, ordering_key, dedup_key, subject } = row.clone();
            (id.to_string(), payload, ordering_key, dedup_key, subject)
        };
        let stored = at
            .sql
            .insert_all
            .query()
            .bind(json(&rows.iter().copied().map(row).collect::<Vec<_>>())?)
            .bind(events.event_type)
            .bind(events.version)
            .bind(events.headers)
            .bind(events.max_attempts)
            .bind(events.available_at)
            .bind(events.delay_ms)
            .bind(on_dead_letter_column(events.on_dead_letter))
            .bind(at.now)
            .fetch_all(at.conn)
            .await?;
        rows::all(&stored, |row| row.parsed(0))
    }

    async fn lock_keys(_at: At<'_, Self>, _schema: Option<&str>, _keys: &BTreeSet<&str>) -> Result<()> {
        // One transaction writes at a time: seqs commit in their order.
        Ok(())
    }

    async fn claim(at: At<'_, Self>, claim: &Claim<'_>) -> Result<Vec<Claimed>> {
        let kinds: Vec<_> = claim.kinds.iter().map(kind_row).collect();
        // As text, which the claim takes as it is.
        let found: String = at
            .sql
            .candidates
            .scalar()
            .bind(json(&kinds)?)
            .bind(count(claim.limit))
            .bind(count(claim.suspects))
            .bind(at.now)
            .bind(claim.keyed_looks.map_or(-1, count))
            .bind(json(claim.ended_keys)?)
            .fetch_one(&mut *at.conn)
            .await?;
        if found == "[]" {
            return Ok(Vec::new());
        }
        let query = at.sql.claim.query().bind(found).bind(claim.worker).bind(at.now);
        rows::all(&query.fetch_all(at.conn).await?, rows::claimed)
    }

    async fn claim_event(at: At<'_, Self>, id: &str, worker: &str) -> Result<Option<Claimed>> {
        let row =
            at.sql.claim_event.query().bind(id).bind(worker).bind(at.now).fetch_optional(at.conn).await?;
        row.as_ref().map(rows::claimed).transpose()
    }

    async fn settle(at: At<'_, Self>, worker: &str, outcomes: &[Settlement]) -> Result<Vec<i64>> {
        let (deletes, kept): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.delete);
        let (completions, mut updates): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|outcome| outcome.is_plain_completion());
        let mut matched = Vec::with_capacity(outcomes.len());
        if complete(at.conn, at.sql, worker, &completions, at.now).await? {
            matched.extend(completions.into_iter().map(|outcome| outcome.seq));
        } else {
            updates.extend(completions);
        }
        if !updates.is_empty() {
            let rows: Vec<_> = updates.into_iter().map(settlement_row).collect();
            let query = at.sql.settle.scalar().bind(json(&rows)?).bind(worker).bind(at.now);
            let seqs: Vec<i64> = query.fetch_all(&mut *at.conn).await?;
            matched.extend(seqs);
        }
        if !deletes.is_empty() {
            let rows: Vec<_> = deletes.into_iter().map(|outcome| (outcome.seq, outcome.fence)).collect();
            let query = at.sql.settle_delete.scalar().bind(json(&rows)?).bind(worker);
            let seqs: Vec<i64> = query.fetch_all(&mut *at.conn).await?;
            matched.extend(seqs);
        }
        Ok(matched)
    }

    async fn reread(at: At<'_, Self>, seqs: &[i64]) -> Result<Vec<FoundRow>> {
        let rows = at.sql.reread.query().bind(json(seqs)?).fetch_all(at.conn).await?;
        rows::all(&rows, rows::found)
    }

    async fn release_strays(at: At<'_, Self>, worker: &str, in_hand: &[i64]) -> Result<u64> {
        let query = at.sql.release_strays.query().bind(worker).bind(json(in_hand)?);
        Ok(query.execute(at.conn).await?.rows_affected())
    }

    async fn register(at: At<'_, Self>, worker: &WorkerRow<'_>) -> Result<()> {
        at.sql
            .register
            .query()
            .bind(worker.id)
            .bind(worker.host)
            .bind(worker.pid)
            .bind(worker.kinds)
            .bind(worker.lease_ms)
            .bind(worker.stuck_ms)
            .bind(at.now)
            .execute(at.conn)
            .await?;
        Ok(())
    }

    async fn heartbeat(at: At<'_, Self>, worker: &str, in_hand: &[(i64, i64)]) -> Result<Option<Vec<i64>>> {
        let beat = at.sql.heartbeat.query().bind(worker).bind(at.now).execute(&mut *at.conn).await?;
        if beat.rows_affected() == 0 {
            return Ok(None);
        }
        if in_hand.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let query = at.sql.lost.scalar().bind(worker).bind(json(in_hand)?);
        query.fetch_all(at.conn).await.map(Some)
    }

    async fn stop_worker(at: At<'_, Self>, worker: &str) -> Result<()> {
        at.sql.stop_worker.query().bind(worker).bind(at.now).execute(at.conn).await?;
        Ok(())
    }

    async fn reap(at: At<'_, Self>, page: i64) -> Result<Vec<Reaped>> {
        at.sql.mark_dead.query().bind(at.now).fetch_all(&mut *at.conn).await?;
        let rows = at.sql.reap.query().bind(page).bind(at.now).fetch_all(at.conn).await?;
        rows::all(&rows, rows::reaped)
    }

    async fn prune_page(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        page: i64,
    ) -> Result<PrunePage> {
        let query = at.sql.prune_page.query().bind(status.as_str()).bind(older_than_ms);
        let row = query.bind(after).bind(page).bind(at.now).fetch_one(at.conn).await?;
        rows::prune_page(&row)
    }

    async fn prune(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        last: i64,
    ) -> Result<u64> {
        let query = at.sql.prune.query().bind(status.as_str()).bind(older_than_ms);
        Ok(query.bind(after).bind(last).bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn prune_workers(at: At<'_, Self>) -> Result<u64> {
        Ok(at.sql.prune_workers.query().bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn bury_unknown(
        at: At<'_, Self>,
        event_type: &str,
        after_ms: i64,
        error: &str,
        page: i64,
    ) -> Result<u64> {
        let query = at.sql.bury_unknown.query().bind(event_type).bind(after_ms).bind(error);
        Ok(query.bind(page).bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn has_inflight(at: At<'_, Self>, event_type: &str, key: &str, value: &str) -> Result<bool> {
        let path = format!("$.{}", json(key)?);
        at.sql.has_inflight.scalar().bind(event_type).bind(path).bind(value).fetch_one(at.conn).await
    }

    async fn has_inflight_subject(at: At<'_, Self>, event_type: &str, subject: &str) -> Result<bool> {
        let query = at.sql.has_inflight_subject.scalar().bind(event_type).bind(subject);
        query.fetch_one(at.conn).await
    }

    async fn blocked_keys(at: At<'_, Self>, cap: i64, limit: i64) -> Result<Vec<BlockedKey>> {
        let query = at.sql.blocked_keys.query().bind(cap).bind(limit);
        rows::all(&query.fetch_all(at.conn).await?, rows::blocked_key)
    }

    async fn get(at: At<'_, Self>, id: &str) -> Result<Option<EventRecord>> {
        let row = at.sql.get.query().bind(id).bind(at.now).fetch_optional(at.conn).await?;
        row.as_ref().map(rows::record).transpose()
    }

    async fn dead_letters(
        at: At<'_, Self>,
        types: &[&str],
        before: Option<(i64, i64)>,
        limit: i64,
    ) -> Result<Vec<EventRecord>> {
        let rows = at
            .sql
            .dead_letters
            .query()
            .bind(json(types)?)
            .bind(before.map(|(processed_at, _)| processed_at))
            .bind(before.map(|(_, seq)| seq))
            .bind(limit)
            .fetch_all(at.conn)
            .await?;
        rows::all(&rows, rows::record)
    }

    async fn requeue(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(at.sql.requeue.query().bind(id).bind(at.now).execute(at.conn).await?.rows_affected() > 0)
    }

    async fn requeue_types(at: At<'_, Self>, types: &[&str], page: i64) -> Result<u64> {
        let query = at.sql.requeue_types.query().bind(json(types)?).bind(page).bind(at.now);
        Ok(query.execute(at.conn).await?.rows_affected())
    }

    async fn discard(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(at.sql.discard.query().bind(id).execute(at.conn).await?.rows_affected() > 0)
    }

    async fn stats(at: At<'_, Self>, cap: i64) -> Result<Vec<TypeStats>> {
        let rows = at.sql.stats.query().bind(cap).bind(at.now).fetch_all(at.conn).await?;
        rows::all(&rows, rows::type_stats)
    }

    async fn workers(at: At<'_, Self>) -> Result<Vec<WorkerInfo>> {
        let rows = at.sql.workers.query().bind(at.now).fetch_all(at.conn).await?;
        rows::all(&rows, rows::worker_info)
    }
}

/// Whether there is no file that another connection could open.
async fn is_in_memory(pool: &Pool<Sqlite>) -> Result<bool> {
    let file = sqlx::query_scalar("SELECT file FROM pragma_database_list WHERE name = 'main'");
    let file: Option<String> = file.fetch_one(pool).await?;
    Ok(file.is_none_or(|file| file.is_empty()))
}

async fn schema_version(conn: &mut SqliteConnection, schema: Option<&str>) -> Result<i64> {
    let table = table_name(schema, "outbox_migration");
    let plain =
        schema.map_or_else(|| "outbox_migration".to_owned(), |schema| format!("{schema}.outbox_migration"));
    let exists: bool =
        sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1)")
            .bind(plain)
            .fetch_one(&mut *conn)
            .await?;
    if !exists {
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(version), 0) FROM {table}");
    sqlx::query_scalar(AssertSqlSafe(newest)).fetch_one(conn).await
}

async fn record_migration(
    conn: &mut SqliteConnection,
    schema: Option<&str>,
    migration: &Migration,
) -> Result<()> {
    let table = table_name(schema, "outbox_migration");
    let create = format!(
        "CREATE TABLE IF NOT EXISTS {table} \
         (version INTEGER PRIMARY KEY NOT NULL, name TEXT NOT NULL, applied_at TEXT NOT NULL DEFAULT (datetime('now'))) STRICT"
    );
    sqlx::raw_sql(AssertSqlSafe(create)).execute(&mut *conn).await?;
    let insert = format!("INSERT INTO {table} (version, name) VALUES (?1, ?2)");
    sqlx::query(AssertSqlSafe(insert)).bind(migration.version).bind(migration.name).execute(conn).await?;
    Ok(())
}

/// Completes all of these, or none; whether it did.
async fn complete(
    conn: &mut SqliteConnection,
    sql: &Statements,
    worker: &str,
    outcomes: &[&Settlement],
    now: Option<i64>,
) -> Result<bool> {
    if outcomes.is_empty() {
        return Ok(true);
    }
    let fences: BTreeMap<i64, i64> = outcomes.iter().map(|outcome| (outcome.seq, outcome.fence)).collect();
    let mut tx = conn.begin().await?;
    let query = sql.settle_completed.query().bind(json(&fences)?).bind(worker).bind(now);
    let matched = query.execute(&mut *tx).await?.rows_affected();
    // Which ones were not ours any more is for the statement to say that names them.
    let all = matched == outcomes.len() as u64;
    if all {
        tx.commit().await?
    } else {
        tx.rollback().await?
    }
    Ok(all)
}

fn settlement_row(outcome: &Settlement) -> impl Serialize + use<'_> {
    let keep = u8::from(outcome.error == WriteError::Keep);
    (
        outcome.seq,
        outcome.fence,
        outcome.status.as_str(),
        outcome.attempts,
        outcome.delay_ms,
        keep,
        outcome.error.text(),
    )
}

/// A kind as the statement reads it.
#[derive(Serialize)]
struct KindRow<'a> {
    r#type: &'a str,
    version: u32,
    room: usize,
    mark_due: Option<i64>,
    mark_seq: Option<i64>,
    keyed_due: Option<i64>,
    keyed_seq: Option<i64>,
}

fn kind_row<'a>(kind: &Kind<'a>) -> KindRow<'a> {
    KindRow {
        r#type: kind.event_type,
        version: kind.version,
        room: kind.room,
        mark_due: kind.after.map(|mark| mark.due),
        mark_seq: kind.after.map(|mark| mark.seq),
        keyed_due: kind.keyed_after.map(|mark| mark.due),
        keyed_seq: kind.keyed_after.map(|mark| mark.seq),
    }
}

plain_row!(SqliteRow);
