//! PostgreSQL: its connections and the binding of its statements.

mod claimed;
mod signals;
mod tables;

use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;
use std::sync::Arc;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgRow};
use sqlx::{Pool, Postgres, Row, Transaction};

use super::data::{
    BlockedKey, Claim, Claimed, Duplicate, EventRecord, FoundRow, HeartbeatPool, Identity, LoopNeeds,
    LoopPools, NewEvent, NewEvents, NewRow, PrunePage, Reaped, Settlement, Status, TypeStats, WorkerInfo,
    WorkerRow, WriteError, count, on_dead_letter_column,
};
use super::rows::{self, PlainRow, plain_row};
use super::statements::{Place, statements};
use super::{At, Backend, Migration, sealed};
use crate::event::EventId;

/// What the statements are written with.
const PHRASES: &[(&str, &str)] = &[
    // The statement's own time: `now()` would be the start of the caller's transaction.
    ("clock_at", "coalesce(to_timestamp({}::bigint / 1000.0), clock_timestamp())"),
    ("due_at", "coalesce('epoch'::timestamptz + {} * interval '1 microsecond', '-infinity')"),
    // Scalar subqueries: an EXISTS may become a join over the whole index.
    (
        "head_of_key",
        "({}.ordering_key IS NULL OR ({}.seq = (\
             SELECT first.seq FROM outbox_event AS first \
             WHERE first.ordering_key = {}.ordering_key AND first.status <> 'completed' \
               AND (first.status <> 'dead_letter' OR first.on_dead_letter = 'block') \
             ORDER BY first.seq LIMIT 1) \
         AND (\
             SELECT running.seq FROM outbox_event AS running \
             WHERE running.ordering_key = {}.ordering_key AND running.status = 'processing' LIMIT 1) IS NULL))",
    ),
];

/// Where the tables are unless the application says otherwise. Named, since its connections may look elsewhere.
const DEFAULT_SCHEMA: &str = "public";

/// For every connection of the loop. The guards are written for READ COMMITTED, whatever the server's default is. Where a
/// scan is all there is, as over the workers' table, `enable_seqscan` makes a plan look so dear that the server would
/// compile it: a tenth of a second and more, at every reap, for a few rows.
const LOOP_SETTINGS: [(&str, &str); 3] =
    [("default_transaction_isolation", "read committed"), ("enable_seqscan", "off"), ("jit", "off")];

/// The same for one transaction; all of them at once, since nothing else runs in it.
const POOLED_SETTINGS: &str = "SET LOCAL enable_seqscan = off; SET LOCAL enable_bitmapscan = off; \
                               SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off; \
                               SET LOCAL jit = off";

statements! {
    "postgres", PHRASES, table_name;
    blocked_keys, bury_unknown, claim, claim_event, dead_letters, discard, find_duplicates, get, has_inflight,
    has_inflight_subject, heartbeat, insert, insert_all, lock_key, mark_dead, prune, prune_page, prune_workers, reap, register, release_strays, requeue, requeue_types, reread, settle,
    settle_completed, settle_delete, stats, stop_worker, workers,
}

fn table_name(schema: Option<&str>, identifier: &str) -> String {
    format!("{}.{}", quoted(schema.unwrap_or(DEFAULT_SCHEMA)), quoted(identifier))
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

type Result<T> = std::result::Result<T, sqlx::Error>;

impl sealed::Sealed for Postgres {}

impl Backend for Postgres {
    type Statements = Statements;
    type Signals = signals::PgSignals;

    const DATABASE: &'static str = "PostgreSQL";
    const SCHEMES: &'static [&'static str] = &["postgres", "postgresql"];
    const WRITES_ALONE: bool = false;
    const MIGRATIONS: &'static [Migration] = &[Migration {
        version: 1,
        name: "0001_outbox.sql",
        sql: include_str!("../../migrations/postgres/0001_outbox.sql"),
    }];

    fn statements(place: &Place) -> Arc<Statements> {
        Statements::of(place)
    }

    fn unqueryable(payload: &str) -> Option<&'static str> {
        // json stores the escape, and every ->> on it fails from then on.
        crate::payload::unqueryable(payload)
    }

    fn is_transient(error: &sqlx::Error) -> bool {
        // serialization_failure, deadlock_detected, lock_not_available
        let code = error.as_database_error().and_then(|error| error.code());
        // And a claim that another one beat to an ordering key: it fails as a whole, and sees in its next snapshot what it
        // ran into.
        code.is_some_and(|code| ["40001", "40P01", "55P03"].contains(&&*code)) || is_key_taken(error)
    }

    async fn connect(url: &str) -> Result<Pool<Self>> {
        PgPoolOptions::new().connect_with(PgConnectOptions::from_str(url)?).await
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        pool.begin().await
    }

    async fn begin_pooled(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        let mut tx = pool.begin_with("BEGIN ISOLATION LEVEL READ COMMITTED").await?;
        sqlx::raw_sql(POOLED_SETTINGS).execute(&mut *tx).await?;
        Ok(tx)
    }

    async fn loop_pools(pool: &Pool<Self>, place: &Place, needs: LoopNeeds) -> Result<LoopPools<Self>> {
        let application = pool.connect_options().as_ref().clone();
        // A plan that was cached while the table was empty must not outlive that: every statement of the loop has an
        // index to go by, and with these off the claim has only one way to read its own. As connect options they hold
        // before anything is prepared, and leak to nobody. A pooler refuses them, and keeps nothing prepared.
        let with = |settings: &[(&str, &str)], name: &str| {
            let connect = application.clone().application_name(name);
            if place.pooled {
                return connect.statement_cache_capacity(0).extra_float_digits(None);
            }
            connect.options(LOOP_SETTINGS.iter().chain(settings).copied())
        };
        let claims = with(&[("enable_bitmapscan", "off"), ("enable_sort", "off")], "outbox claim");
        let settles = with(&[("enable_hashjoin", "off"), ("enable_mergejoin", "off")], "outbox");
        let heartbeats = with(&[], "outbox heartbeat");
        // Handlers get what the application's own sessions get.
        let handlers = application.clone().application_name("outbox handler");
        // The caller's hooks come along; its sizes do not.
        let options = pool.options().clone().min_connections(0).test_before_acquire(needs.lie_idle);
        Ok(LoopPools {
            transactions: options.clone().max_connections(needs.transactions).connect_lazy_with(handlers),
            claim: options.clone().max_connections(1).connect_lazy_with(claims),
            settle: options.clone().max_connections(3).connect_lazy_with(settles),
            heartbeat: HeartbeatPool::Own(options.max_connections(1), heartbeats),
        })
    }

    async fn schema_version(at: At<'_, Self>, schema: Option<&str>) -> Result<i64> {
        tables::version(at.conn, schema).await
    }

    async fn migrate(conn: &mut PgConnection, schema: Option<&str>, migrations: &[Migration]) -> Result<()> {
        tables::migrate(conn, schema, migrations).await
    }

    async fn insert(at: At<'_, Self>, event: &NewEvent<'_>) -> Result<bool> {
        let stored = at
            .sql
            .insert
            .query()
            .bind(event.id.to_string())
            .bind(event.event_type)
            .bind(i64::from(event.version))
            .bind(event.payload)
            .bind(event.headers)
            .bind(i64::from(event.max_attempts))
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

    async fn insert_all(at: At<'_, Self>, events: &NewEvents<'_>, rows: &[&NewRow]) -> Result<Vec<EventId>> {
        let stored = at
            .sql
            .insert_all
            .query()
            .bind(rows.iter().map(|row| row.id.to_string()).collect::<Vec<_>>())
            .bind(events.event_type)
            .bind(i64::from(events.version))
            .bind(rows.iter().map(|row| row.payload.as_str()).collect::<Vec<_>>())
            .bind(events.headers)
            .bind(i64::from(events.max_attempts))
            .bind(events.available_at)
            .bind(events.delay_ms)
            .bind(rows.iter().map(|row| row.ordering_key.as_deref()).collect::<Vec<_>>())
            .bind(on_dead_letter_column(events.on_dead_letter))
            .bind(rows.iter().map(|row| row.dedup_key.as_deref()).collect::<Vec<_>>())
            .bind(rows.iter().map(|row| row.subject.as_deref()).collect::<Vec<_>>())
            .bind(at.now)
            .fetch_all(at.conn)
            .await?;
        rows::all(&stored, |row| row.parsed(0))
    }

    async fn lock_keys(at: At<'_, Self>, schema: Option<&str>, keys: &BTreeSet<&str>) -> Result<()> {
        for key in keys {
            let name = format!("{} {key}", schema.unwrap_or(DEFAULT_SCHEMA));
            at.sql.lock_key.query().bind(name).execute(&mut *at.conn).await?;
        }
        Ok(())
    }

    async fn find_duplicates(
        at: At<'_, Self>,
        event_type: &str,
        wanted: &[Identity<'_>],
    ) -> Result<Vec<(usize, Duplicate)>> {
        let query = at
            .sql
            .find_duplicates
            .query()
            .bind(wanted.iter().map(|event| event.id.to_string()).collect::<Vec<_>>())
            .bind(event_type)
            .bind(wanted.iter().map(|event| event.dedup_key).collect::<Vec<_>>());
        rows::all(&query.fetch_all(at.conn).await?, rows::duplicate)
    }

    async fn claim(at: At<'_, Self>, claim: &Claim<'_>) -> Result<Vec<Claimed>> {
        let kinds = claim.kinds;
        let rows = at
            .sql
            .claim
            .query()
            .bind(kinds.iter().map(|kind| kind.event_type).collect::<Vec<_>>())
            .bind(kinds.iter().map(|kind| i64::from(kind.version)).collect::<Vec<_>>())
            .bind(kinds.iter().map(|kind| count(kind.room)).collect::<Vec<_>>())
            .bind(count(claim.limit))
            .bind(count(claim.suspects))
            .bind(claim.worker)
            .bind(at.now)
            .bind(share(claim))
            .bind(kinds.iter().map(|kind| kind.after.map(|mark| mark.due)).collect::<Vec<_>>())
            .bind(kinds.iter().map(|kind| kind.after.map(|mark| mark.seq)).collect::<Vec<_>>())
            .bind(kinds.iter().map(|kind| kind.keyed_after.map(|mark| mark.due)).collect::<Vec<_>>())
            .bind(kinds.iter().map(|kind| kind.keyed_after.map(|mark| mark.seq)).collect::<Vec<_>>())
            .bind(claim.keyed_looks.map(count))
            .bind(claim.ended_keys)
            .fetch_all(at.conn)
            .await?;
        rows::all(&rows, claimed::claimed)
    }

    async fn claim_event(at: At<'_, Self>, id: &str, worker: &str) -> Result<Option<Claimed>> {
        let query = at.sql.claim_event.query().bind(id).bind(worker).bind(at.now);
        query.fetch_optional(at.conn).await?.as_ref().map(claimed::claimed).transpose()
    }

    async fn settle(at: At<'_, Self>, worker: &str, outcomes: &[Settlement]) -> Result<Vec<i64>> {
        let (deletes, kept): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.delete);
        let (completions, updates): (Vec<_>, Vec<_>) =
            kept.into_iter().partition(|outcome| outcome.is_plain_completion());
        let mut matched = Vec::with_capacity(outcomes.len());
        for (fence, seqs) in by_fence(&completions) {
            let query = at.sql.settle_completed.scalar().bind(seqs).bind(fence).bind(worker).bind(at.now);
            matched.append(&mut query.fetch_all(&mut *at.conn).await?);
        }
        for (fence, seqs) in by_fence(&deletes) {
            let query = at.sql.settle_delete.scalar().bind(seqs).bind(fence).bind(worker);
            matched.append(&mut query.fetch_all(&mut *at.conn).await?);
        }
        if !updates.is_empty() {
            let query = update(at.sql, worker, &updates, at.now);
            matched.append(&mut query.fetch_all(&mut *at.conn).await?);
        }
        Ok(matched)
    }

    async fn reread(at: At<'_, Self>, seqs: &[i64]) -> Result<Vec<FoundRow>> {
        let rows = at.sql.reread.query().bind(seqs).fetch_all(at.conn).await?;
        rows::all(&rows, rows::found)
    }

    async fn release_strays(at: At<'_, Self>, worker: &str, in_hand: &[i64]) -> Result<u64> {
        let query = at.sql.release_strays.query().bind(worker).bind(in_hand);
        Ok(query.execute(at.conn).await?.rows_affected())
    }

    async fn register(at: At<'_, Self>, worker: &WorkerRow<'_>) -> Result<()> {
        at.sql
            .register
            .query()
            .bind(worker.id)
            .bind(worker.host)
            .bind(i64::from(worker.pid))
            .bind(worker.kinds)
            .bind(worker.lease_ms)
            .bind(worker.stuck_ms)
            .bind(at.now)
            .execute(at.conn)
            .await?;
        Ok(())
    }

    async fn heartbeat(at: At<'_, Self>, worker: &str, in_hand: &[(i64, i64)]) -> Result<Option<Vec<i64>>> {
        let (seqs, fences): (Vec<i64>, Vec<i64>) = in_hand.iter().copied().unzip();
        let query = at.sql.heartbeat.query().bind(worker).bind(seqs).bind(fences).bind(at.now);
        let row = query.fetch_one(at.conn).await?;
        let lives: bool = row.try_get(0)?;
        lives.then(|| row.try_get(1)).transpose()
    }

    async fn stop_worker(at: At<'_, Self>, worker: &str) -> Result<()> {
        at.sql.stop_worker.query().bind(worker).bind(at.now).execute(at.conn).await?;
        Ok(())
    }

    async fn reap(at: At<'_, Self>, page: i64) -> Result<Vec<Reaped>> {
        at.sql.mark_dead.query().bind(at.now).execute(&mut *at.conn).await?;
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
        let query = at.sql.has_inflight.scalar().bind(event_type).bind(key).bind(value);
        query.fetch_one(at.conn).await
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
            .bind(types)
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
        let query = at.sql.requeue_types.query().bind(types).bind(page).bind(at.now);
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

/// How many events of each type a claim takes before it looks who has more. What it took is passed over then, row by row,
/// so half of the limit is left for that, and all of it taken where there is one type only.
fn share(claim: &Claim<'_>) -> i64 {
    match claim.kinds.len() {
        0 | 1 => count(claim.limit),
        kinds => count((claim.limit / (2 * kinds)).max(1)),
    }
}

/// Whether another event of the same ordering key is being processed.
fn is_key_taken(error: &sqlx::Error) -> bool {
    let constraint = error.as_database_error().and_then(|error| error.constraint());
    constraint == Some("outbox_event_key_running")
}

type Seqs<'q> = sqlx::query::QueryScalar<'q, Postgres, i64, sqlx::postgres::PgArguments>;

/// The seqs of each fence. A fence counts the claims of an event, so there are few of them, and mostly one.
fn by_fence(outcomes: &[&Settlement]) -> BTreeMap<i64, Vec<i64>> {
    let mut seqs: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for outcome in outcomes {
        seqs.entry(outcome.fence).or_default().push(outcome.seq);
    }
    seqs
}

/// The settle statement with its columns bound as arrays.
fn update<'q>(sql: &Statements, worker: &'q str, outcomes: &[&Settlement], now: Option<i64>) -> Seqs<'q> {
    sql.settle
        .scalar()
        .bind(outcomes.iter().map(|outcome| outcome.seq).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.fence).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.status.as_str()).collect::<Vec<&'static str>>())
        .bind(outcomes.iter().map(|outcome| i64::from(outcome.attempts)).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.delay_ms).collect::<Vec<Option<i64>>>())
        .bind(outcomes.iter().map(|outcome| outcome.error == WriteError::Keep).collect::<Vec<bool>>())
        .bind(
            outcomes
                .iter()
                .map(|outcome| outcome.error.text().map(str::to_owned))
                .collect::<Vec<Option<String>>>(),
        )
        .bind(worker)
        .bind(now)
}

plain_row!(PgRow);
