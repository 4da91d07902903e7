//! MySQL and MariaDB: their connections and the binding of their statements.

mod claim;
mod insert;
mod reap;
mod server;
mod settle;
mod short;
mod signals;
mod stats;

use std::collections::{BTreeSet, HashSet};
use std::str::FromStr;
use std::sync::Arc;

use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlDatabaseError, MySqlPoolOptions, MySqlRow};
use sqlx::{MySql, Pool, Transaction};

use self::short::{Bound, List, Short};
use super::data::{
    BlockedKey, Claim, Claimed, Duplicate, EventRecord, FoundRow, HeartbeatPool, Identity, LoopNeeds,
    LoopPools, NewEvent, NewEvents, NewRow, PrunePage, Reaped, Settlement, Status, TypeStats, WorkerInfo,
    WorkerRow, json,
};
use super::rows::{self, PlainRow};
use super::statements::{Place, Sql, statements};
use super::{At, Backend, Migration, sealed};
use crate::event::EventId;

/// What the statements are written with.
const PHRASES: &[(&str, &str)] = &[
    // Milliseconds since 1970. The statement's own time, and no affair of the session's time zone.
    ("clock_at", "COALESCE({}, TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)"),
    // Scalar subqueries: an EXISTS may become a scan of everything that runs.
    (
        "head_of_key",
        "({}.ordering_key IS NULL OR ({}.seq = (\
             SELECT head.seq FROM outbox_event AS head FORCE INDEX (by_key) \
             WHERE head.open_key = {}.ordering_key ORDER BY head.seq LIMIT 1) \
         AND (\
             SELECT running.seq FROM outbox_event AS running FORCE INDEX (key_running) \
             WHERE running.running_key = {}.ordering_key LIMIT 1) IS NULL))",
    ),
    (
        "text_at",
        "CAST(CASE JSON_TYPE(JSON_EXTRACT({})) WHEN 'NULL' THEN NULL ELSE JSON_UNQUOTE(JSON_EXTRACT({})) END AS BINARY)",
    ),
];

statements! {
    "mysql", PHRASES, table_name;
    arm_due, arm_ended, arm_keyed, arm_suspect, blocked_keys, blocked_waiting, bury, candidate_event, candidates, claim,
    claim_lock, dead_letters, dead_page, delete, discard, find_duplicates, forget_worker, get, has_inflight,
    has_inflight_subject, heartbeat, held, insert, insert_row, lock, lock_keys, mark_dead, migrate_lock, migrate_unlock,
    old_workers, orphans, overdue, prunable, prune_page, reap_lost, reap_stuck, reaped, register, release,
    requeue, requeue_types, reread, settle, slot_of_key, stats_busy, stats_next, stats_of, stop_worker, suspects, unknown, workers,
}

/// A schema is a database; without one it is that of the connection.
fn table_name(schema: Option<&str>, identifier: &str) -> String {
    match schema {
        None => quoted(identifier),
        Some(schema) => format!("{}.{}", quoted(schema), quoted(identifier)),
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

type Result<T> = std::result::Result<T, sqlx::Error>;

impl sealed::Sealed for MySql {}

impl Backend for MySql {
    type Statements = Statements;
    type Signals = signals::NoSignals;

    const DATABASE: &'static str = "MySQL";
    const SCHEMES: &'static [&'static str] = &["mysql", "mariadb"];
    const WRITES_ALONE: bool = false;
    const MIGRATIONS: &'static [Migration] = &[Migration {
        version: 1,
        name: "0001_outbox.sql",
        sql: include_str!("../../migrations/mysql/0001_outbox.sql"),
    }];

    fn statements(place: &Place) -> Arc<Statements> {
        Statements::of(place)
    }

    fn unqueryable(payload: &str) -> Option<&'static str> {
        // MariaDB's JSON functions stop at the thirty-second level and call the text invalid; MySQL's at the hundredth.
        const DEEPEST: usize = 31;
        if crate::payload::depth_exceeds(payload, DEEPEST) {
            return Some("nesting deeper than 31 levels");
        }
        crate::payload::unqueryable(payload)
    }

    fn is_transient(error: &sqlx::Error) -> bool {
        // ER_CHECKREAD, which is a serialization failure, ER_LOCK_WAIT_TIMEOUT, ER_LOCK_DEADLOCK. And a claim that another
        // one beat to an ordering key: it fails as a whole, and the next look sees what it ran into.
        matches!(number_of(error), Some(1020 | 1205 | 1213)) || is_key_taken(error)
    }

    async fn connect(url: &str) -> Result<Pool<Self>> {
        MySqlPoolOptions::new().connect_with(MySqlConnectOptions::from_str(url)?).await
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        pool.begin().await
    }

    async fn commits_by_itself(conn: &mut MySqlConnection) -> Result<bool> {
        let query = sqlx::query_scalar("SELECT CAST(@@SESSION.autocommit AS SIGNED)");
        query.persistent(false).fetch_one(conn).await.map(|on: i64| on != 0)
    }

    async fn begin_pooled(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        pool.begin_with(short::BEGIN).await
    }

    async fn loop_pools(pool: &Pool<Self>, place: &Place, needs: LoopNeeds) -> Result<LoopPools<Self>> {
        // That the server is new enough has been found with the tables' version.
        let application = pool.connect_options().as_ref().clone();
        let own = match place.pooled {
            true => application.clone().statement_cache_capacity(0),
            false => application.clone(),
        };
        // The caller's hooks come along; its sizes do not.
        let options = pool.options().clone().min_connections(0).test_before_acquire(needs.lie_idle);
        Ok(LoopPools {
            transactions: options.clone().max_connections(needs.transactions).connect_lazy_with(application),
            claim: options.clone().max_connections(1).connect_lazy_with(own.clone()),
            settle: options.clone().max_connections(3).connect_lazy_with(own.clone()),
            heartbeat: HeartbeatPool::Own(options.max_connections(1), own),
        })
    }

    async fn schema_version(at: At<'_, Self>, schema: Option<&str>) -> Result<i64> {
        server::check(at.conn).await?;
        server::schema_version(at.conn, schema).await
    }

    async fn migrate(
        conn: &mut MySqlConnection,
        schema: Option<&str>,
        migrations: &[Migration],
    ) -> Result<()> {
        let place = Place { schema: schema.map(Into::into), pooled: false };
        server::migrate(conn, &Statements::of(&place), schema, migrations).await
    }

    async fn insert(at: At<'_, Self>, event: &NewEvent<'_>) -> Result<bool> {
        insert::one(at, event).await
    }

    async fn find_duplicates(
        at: At<'_, Self>,
        event_type: &str,
        wanted: &[Identity<'_>],
    ) -> Result<Vec<(usize, Duplicate)>> {
        insert::find_duplicates(at, event_type, wanted).await
    }

    async fn insert_all(at: At<'_, Self>, events: &NewEvents<'_>, rows: &[&NewRow]) -> Result<Vec<EventId>> {
        insert::all(at, events, rows).await
    }

    async fn lock_keys(at: At<'_, Self>, _schema: Option<&str>, keys: &BTreeSet<&str>) -> Result<()> {
        let slots = vec![at.sql.slot_of_key.text(); keys.len()].join(", ");
        let lock = at.sql.lock_keys.with("{slots}", &slots);
        let lock = if keys.len() > 1 { lock.once() } else { lock };
        let query = keys.iter().fold(lock.query(), |query, key| query.bind(*key));
        query.execute(at.conn).await.map(drop)
    }

    async fn claim(at: At<'_, Self>, claim: &Claim<'_>) -> Result<Vec<Claimed>> {
        claim::batch(at, claim).await
    }

    async fn claim_event(mut at: At<'_, Self>, id: &str, worker: &str) -> Result<Option<Claimed>> {
        let found = at.sql.candidate_event.scalar().bind(id).bind(at.now);
        let found: Option<i64> = found.fetch_optional(&mut *at.conn).await?;
        Ok(claim::take(&mut at, worker, &found.into_iter().collect()).await?.pop())
    }

    async fn settle(at: At<'_, Self>, worker: &str, outcomes: &[Settlement]) -> Result<Vec<i64>> {
        settle::settle(at, worker, outcomes).await
    }

    async fn reread(at: At<'_, Self>, seqs: &[i64]) -> Result<Vec<FoundRow>> {
        Short::Callers(at.conn).read(&at.sql.reread, seqs, |query| query, rows::found).await
    }

    async fn release_strays(at: At<'_, Self>, worker: &str, in_hand: &[i64]) -> Result<u64> {
        let held = held(at.sql, &mut *at.conn, worker).await?;
        let in_hand: HashSet<i64> = in_hand.iter().copied().collect();
        let strays = held.into_iter().map(|(seq, _)| seq).filter(|seq| !in_hand.contains(seq)).collect();
        change(at, strays, |row| row.owner.as_deref() == Some(worker), |sql| &sql.release, |query| query)
            .await
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
            .bind(at.now)
            .execute(at.conn)
            .await?;
        Ok(())
    }

    async fn heartbeat(at: At<'_, Self>, worker: &str, in_hand: &[(i64, i64)]) -> Result<Option<Vec<i64>>> {
        let beat = at.sql.heartbeat.query().bind(at.now).bind(worker).execute(&mut *at.conn).await?;
        if beat.rows_affected() == 0 {
            return Ok(None);
        }
        if in_hand.is_empty() {
            return Ok(Some(Vec::new()));
        }
        let held: HashSet<(i64, i64)> = held(at.sql, at.conn, worker).await?.into_iter().collect();
        Ok(Some(in_hand.iter().filter(|row| !held.contains(row)).map(|(seq, _)| *seq).collect()))
    }

    async fn stop_worker(at: At<'_, Self>, worker: &str) -> Result<()> {
        at.sql.stop_worker.query().bind(at.now).bind(worker).execute(at.conn).await?;
        Ok(())
    }

    async fn reap(mut at: At<'_, Self>, page: i64) -> Result<Vec<Reaped>> {
        reap::mark_dead(&mut at).await?;
        reap::free(at, page).await
    }

    async fn prune_page(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        page: i64,
    ) -> Result<PrunePage> {
        let query = at.sql.prune_page.query().bind(status.as_str());
        let query = query.bind(at.now).bind(older_than_ms).bind(at.now).bind(older_than_ms);
        rows::prune_page(&query.bind(after).bind(page).fetch_one(at.conn).await?)
    }

    async fn prune(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        last: i64,
    ) -> Result<u64> {
        let query = at.sql.prunable.scalar().bind(after).bind(last).bind(status.as_str());
        let old: Vec<i64> = query.bind(at.now).bind(older_than_ms).fetch_all(&mut *at.conn).await?;
        change(at, old.into_iter().collect(), |row| row.status == status, |sql| &sql.delete, |query| query)
            .await
    }

    async fn prune_workers(at: At<'_, Self>) -> Result<u64> {
        reap::forget_workers(at).await
    }

    async fn bury_unknown(
        at: At<'_, Self>,
        event_type: &str,
        after_ms: i64,
        error: &str,
        page: i64,
    ) -> Result<u64> {
        let query = at.sql.unknown.scalar().bind(event_type).bind(at.now).bind(after_ms);
        let query = query.bind(at.now).bind(after_ms).bind(event_type).bind(page);
        let waiting: BTreeSet<i64> = query.fetch_all(&mut *at.conn).await?.into_iter().collect();
        let (now, is_right) = (at.now, |row: &FoundRow| row.status == Status::Pending);
        change(at, waiting, is_right, |sql| &sql.bury, |query| query.bind(error.to_owned()).bind(now)).await
    }

    async fn has_inflight(at: At<'_, Self>, event_type: &str, key: &str, value: &str) -> Result<bool> {
        let path = format!("$.{}", json(key)?);
        let mut query = at.sql.has_inflight.query();
        for _ in 0..2 {
            query = query.bind(event_type).bind(&path).bind(&path).bind(value);
        }
        query.fetch_one(at.conn).await?.flag(0)
    }

    async fn has_inflight_subject(at: At<'_, Self>, event_type: &str, subject: &str) -> Result<bool> {
        let query = at.sql.has_inflight_subject.query().bind(event_type).bind(subject);
        query.fetch_one(at.conn).await?.flag(0)
    }

    async fn blocked_keys(at: At<'_, Self>, cap: i64, limit: i64) -> Result<Vec<BlockedKey>> {
        stats::blocked_keys(at, cap, limit).await
    }

    async fn get(at: At<'_, Self>, id: &str) -> Result<Option<EventRecord>> {
        let row = at.sql.get.query().bind(at.now).bind(id).fetch_optional(at.conn).await?;
        row.as_ref().map(rows::record).transpose()
    }

    async fn dead_letters(
        at: At<'_, Self>,
        types: &[&str],
        before: Option<(i64, i64)>,
        limit: i64,
    ) -> Result<Vec<EventRecord>> {
        if types.is_empty() {
            return Ok(Vec::new());
        }
        let (processed_at, seq) = before.unwrap_or((i64::MAX, i64::MAX));
        let list = List::new(&at.sql.dead_letters, types);
        let query = list.bind(list.sql.query()).bind(processed_at).bind(processed_at).bind(seq).bind(limit);
        rows::all(&query.fetch_all(at.conn).await?, rows::record)
    }

    async fn requeue(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(at.sql.requeue.query().bind(at.now).bind(id).execute(at.conn).await?.rows_affected() > 0)
    }

    async fn requeue_types(at: At<'_, Self>, types: &[&str], page: i64) -> Result<u64> {
        if types.is_empty() {
            return Ok(0);
        }
        let list = List::new(&at.sql.dead_page, types);
        let dead = list.bind(list.sql.query()).bind(page).fetch_all(&mut *at.conn).await?;
        let dead = rows::all(&dead, rows::seq)?.into_iter().collect();
        let (now, is_right) = (at.now, |row: &FoundRow| row.status == Status::DeadLetter);
        change(at, dead, is_right, |sql| &sql.requeue_types, |query| query.bind(now)).await
    }

    async fn discard(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(at.sql.discard.query().bind(id).execute(at.conn).await?.rows_affected() > 0)
    }

    async fn stats(at: At<'_, Self>, cap: i64) -> Result<Vec<TypeStats>> {
        stats::stats(at, cap).await
    }

    async fn workers(at: At<'_, Self>) -> Result<Vec<WorkerInfo>> {
        let rows = at.sql.workers.query().bind(at.now).fetch_all(at.conn).await?;
        rows::all(&rows, rows::worker_info)
    }
}

/// The server's number of an error.
fn number_of(error: &sqlx::Error) -> Option<u16> {
    let error = error.as_database_error()?.try_downcast_ref::<MySqlDatabaseError>()?;
    Some(error.number())
}

/// Whether a row is there already.
fn is_duplicate(error: &sqlx::Error) -> bool {
    number_of(error) == Some(1062)
}

/// Whether another event of the same ordering key is being processed.
fn is_key_taken(error: &sqlx::Error) -> bool {
    // The key's name ends the message, after what somebody's key may say: MariaDB writes it alone, MySQL with the table.
    is_duplicate(error)
        && error.as_database_error().is_some_and(|error| error.message().ends_with("key_running'"))
}

/// What a worker holds in the table: seqs and fences.
async fn held(sql: &Statements, conn: &mut MySqlConnection, worker: &str) -> Result<Vec<(i64, i64)>> {
    rows::all(&sql.held.query().bind(worker).fetch_all(conn).await?, rows::two_numbers)
}

/// Locks rows, and runs a statement on those that are what the caller takes them for; `before` binds what stands before
/// their seqs. How many it changed.
async fn change(
    at: At<'_, MySql>,
    seqs: BTreeSet<i64>,
    is_right: impl Fn(&FoundRow) -> bool + Send,
    statement: fn(&Statements) -> &Sql,
    before: impl for<'q> Fn(Bound<'q>) -> Bound<'q> + Send,
) -> Result<u64> {
    if seqs.is_empty() {
        return Ok(0);
    }
    let mut short = Short::begin(at.conn).await?;
    let changed = match short.lock(at.sql, &seqs).await {
        Ok(rows) => {
            let seqs: Vec<i64> = rows.iter().filter(|row| is_right(row)).map(|row| row.seq).collect();
            short.write(statement(at.sql), &seqs, before).await
        }
        Err(error) => Err(error),
    };
    short.end(changed).await
}

/// Types and keys are compared by bytes and come as such; every text here is UTF-8. Numbers come in the width of what they
/// were computed from, and a comparison is a number.
impl PlainRow for MySqlRow {
    fn number(&self, index: usize) -> Result<i64> {
        sqlx::Row::try_get_unchecked(self, index)
    }

    fn maybe_number(&self, index: usize) -> Result<Option<i64>> {
        sqlx::Row::try_get_unchecked(self, index)
    }

    fn text(&self, index: usize) -> Result<String> {
        sqlx::Row::try_get_unchecked(self, index)
    }

    fn maybe_text(&self, index: usize) -> Result<Option<String>> {
        sqlx::Row::try_get_unchecked(self, index)
    }

    fn flag(&self, index: usize) -> Result<bool> {
        self.number(index).map(|number| number != 0)
    }
}
