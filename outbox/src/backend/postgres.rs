//! PostgreSQL: binding and row mapping.

mod signals;

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions, PgRow};
use sqlx::{AssertSqlSafe, Connection, Pool, Postgres, Row, Transaction};

use super::data::{
    Claim, Claimed, Duplicate, EventRecord, FoundRow, HeartbeatPool, LoopPools, NewEvent, PrunePage, Reaped,
    Settlement, Status, TypeStats, WorkerInfo, WorkerRow, WriteError, count, from_ms, parse_column,
};
use super::statements::statements;
use super::{At, Backend, Migration, sealed};

/// The statement's own time: `now()` would be the start of the caller's transaction.
const CLOCK: &str = "coalesce(to_timestamp({}::bigint / 1000.0), clock_timestamp())";

/// Where the tables are unless the application says otherwise. Named, since its connections may look elsewhere.
const DEFAULT_SCHEMA: &str = "public";

statements! {
    "postgres", CLOCK, table_name;
    bury_unknown, claim, claim_event, dead_letters, discard, find_duplicate, get, has_inflight, heartbeat, insert,
    mark_dead, prune, prune_page, prune_workers, reap, register, release_strays, requeue, requeue_types, reread, settle,
    settle_delete, stats, stop_worker, workers,
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
    const MIGRATIONS: &'static [Migration] = &[Migration {
        version: 1,
        name: "0001_outbox.sql",
        sql: include_str!("../../migrations/postgres/0001_outbox.sql"),
    }];

    fn statements(schema: Option<&str>) -> Arc<Statements> {
        Statements::of(schema)
    }

    fn unqueryable(payload: &str) -> Option<&'static str> {
        // json stores the escape, and every ->> on it fails from then on.
        crate::payload::unqueryable(payload)
    }

    async fn connect(url: &str) -> Result<Pool<Self>> {
        PgPoolOptions::new().connect_with(PgConnectOptions::from_str(url)?).await
    }

    async fn begin(pool: &Pool<Self>) -> Result<Transaction<'static, Self>> {
        pool.begin().await
    }

    async fn loop_pools(pool: &Pool<Self>) -> Result<LoopPools<Self>> {
        // The guards are written for READ COMMITTED, whatever the server's default is.
        // A plan that was cached while the table was empty must not outlive that: every statement of the loop has an
        // index to go by, and with these off the claim has only one way to read its own. As connect options they hold
        // before anything is prepared, and leak to nobody.
        let settings = [("default_transaction_isolation", "read committed"), ("enable_seqscan", "off")];
        let connect = pool.connect_options().as_ref().clone().options(settings).application_name("outbox");
        let claims = [("enable_bitmapscan", "off"), ("enable_sort", "off")];
        let claims = connect.clone().options(claims).application_name("outbox claim");
        let settles = [("enable_hashjoin", "off"), ("enable_mergejoin", "off")];
        let settles = connect.clone().options(settles);
        // The caller's hooks come along; its sizes do not.
        let options = pool.options().clone().min_connections(0).test_before_acquire(false);
        Ok(LoopPools {
            claim: options.clone().max_connections(1).connect_lazy_with(claims),
            settle: options.clone().max_connections(2).connect_lazy_with(settles),
            heartbeat: HeartbeatPool::Own(
                options.max_connections(1),
                connect.application_name("outbox heartbeat"),
            ),
        })
    }

    async fn schema_version(at: At<'_, Self>, schema: Option<&str>) -> Result<i64> {
        schema_version(at.conn, schema).await
    }

    async fn migrate(conn: &mut PgConnection, schema: Option<&str>) -> Result<()> {
        prepare_schema(conn, schema).await?;
        let table = table_name(schema, "outbox_migration");
        for migration in Self::MIGRATIONS {
            let mut tx = conn.begin().await?;
            // Whoever comes first migrates; the others wait here and then find it done. A holder that crashes lets go.
            run(&mut tx, format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")).await?;
            if schema_version(&mut tx, schema).await? < migration.version {
                // The files name no schema, so that a team can run them with a tool of its own.
                let path = quoted(schema.unwrap_or(DEFAULT_SCHEMA));
                run(&mut tx, format!("SET LOCAL search_path TO {path}")).await?;
                sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
                let insert = format!("INSERT INTO {table} (version, name) VALUES ($1, $2)");
                let insert = sqlx::query(AssertSqlSafe(insert)).bind(migration.version).bind(migration.name);
                insert.execute(&mut *tx).await?;
            }
            tx.commit().await?;
        }
        Ok(())
    }

    async fn insert(at: At<'_, Self>, event: &NewEvent<'_>) -> Result<bool> {
        let stored = sqlx::query(at.sql.insert.safe())
            .bind(event.id.to_string())
            .bind(event.event_type)
            .bind(i64::from(event.version))
            .bind(event.payload)
            .bind(event.headers)
            .bind(i64::from(event.max_attempts))
            .bind(event.available_at)
            .bind(event.delay_ms)
            .bind(event.dedup_key)
            .bind(at.now)
            .fetch_optional(at.conn)
            .await?;
        Ok(stored.is_some())
    }

    async fn find_duplicate(at: At<'_, Self>, event: &NewEvent<'_>) -> Result<Option<Duplicate>> {
        let query = sqlx::query(at.sql.find_duplicate.safe()).bind(event.id.to_string());
        let query = query.bind(event.event_type).bind(event.dedup_key);
        let row = query.fetch_optional(at.conn).await?;
        row.map(|row| Ok(Duplicate { id: parsed(&row, 0)?, status: parsed(&row, 1)? })).transpose()
    }

    async fn claim(at: At<'_, Self>, claim: &Claim<'_>) -> Result<Vec<Claimed>> {
        let types: Vec<&str> = claim.kinds.iter().map(|kind| kind.event_type).collect();
        let versions: Vec<i64> = claim.kinds.iter().map(|kind| i64::from(kind.version)).collect();
        let rooms: Vec<i64> = claim.kinds.iter().map(|kind| count(kind.room)).collect();
        let rows = sqlx::query(at.sql.claim.safe())
            .bind(types)
            .bind(versions)
            .bind(rooms)
            .bind(count(claim.limit))
            .bind(count(claim.suspects))
            .bind(claim.worker)
            .bind(at.now)
            .bind(count((claim.limit / (2 * claim.kinds.len()).max(1)).max(1)))
            .bind(claim.kinds.iter().map(|kind| kind.after.map(|mark| mark.due)).collect::<Vec<_>>())
            .bind(claim.kinds.iter().map(|kind| kind.after.map(|mark| mark.seq)).collect::<Vec<_>>())
            .fetch_all(at.conn)
            .await?;
        rows.iter().map(claimed).collect()
    }

    async fn claim_event(at: At<'_, Self>, id: &str, worker: &str) -> Result<Option<Claimed>> {
        let query = sqlx::query(at.sql.claim_event.safe()).bind(id).bind(worker).bind(at.now);
        query.fetch_optional(at.conn).await?.as_ref().map(claimed).transpose()
    }

    async fn settle(at: At<'_, Self>, worker: &str, outcomes: &[Settlement]) -> Result<Vec<i64>> {
        let (deletes, updates): (Vec<_>, Vec<_>) = outcomes.iter().partition(|outcome| outcome.delete);
        let mut matched = Vec::with_capacity(outcomes.len());
        if !updates.is_empty() {
            let seqs: Vec<i64> = update(at.sql, worker, &updates, at.now).fetch_all(&mut *at.conn).await?;
            matched.extend(seqs);
        }
        if !deletes.is_empty() {
            let seqs: Vec<i64> = deletes.iter().map(|outcome| outcome.seq).collect();
            let fences: Vec<i64> = deletes.iter().map(|outcome| outcome.fence).collect();
            let query = sqlx::query_scalar(at.sql.settle_delete.safe()).bind(seqs).bind(fences).bind(worker);
            let seqs: Vec<i64> = query.fetch_all(&mut *at.conn).await?;
            matched.extend(seqs);
        }
        Ok(matched)
    }

    async fn reread(at: At<'_, Self>, seqs: &[i64]) -> Result<Vec<FoundRow>> {
        let rows = sqlx::query(at.sql.reread.safe()).bind(seqs).fetch_all(at.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(FoundRow {
                    seq: row.try_get(0)?,
                    fence: row.try_get(1)?,
                    status: parsed(row, 2)?,
                    owner: row.try_get(3)?,
                })
            })
            .collect()
    }

    async fn release_strays(at: At<'_, Self>, worker: &str, in_hand: &[i64]) -> Result<u64> {
        let query = sqlx::query(at.sql.release_strays.safe()).bind(worker).bind(in_hand);
        Ok(query.execute(at.conn).await?.rows_affected())
    }

    async fn register(at: At<'_, Self>, worker: &WorkerRow<'_>) -> Result<()> {
        sqlx::query(at.sql.register.safe())
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
        let query = sqlx::query(at.sql.heartbeat.safe()).bind(worker).bind(seqs).bind(fences).bind(at.now);
        let row = query.fetch_one(at.conn).await?;
        let lives: bool = row.try_get(0)?;
        lives.then(|| row.try_get(1)).transpose()
    }

    async fn stop_worker(at: At<'_, Self>, worker: &str) -> Result<()> {
        sqlx::query(at.sql.stop_worker.safe()).bind(worker).bind(at.now).execute(at.conn).await?;
        Ok(())
    }

    async fn reap(at: At<'_, Self>, page: i64) -> Result<Vec<Reaped>> {
        sqlx::query(at.sql.mark_dead.safe()).bind(at.now).execute(&mut *at.conn).await?;
        let rows = sqlx::query(at.sql.reap.safe()).bind(page).bind(at.now).fetch_all(at.conn).await?;
        rows.iter().map(|row| Ok(Reaped { event_type: row.try_get(0)?, status: parsed(row, 1)? })).collect()
    }

    async fn prune_page(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        page: i64,
    ) -> Result<PrunePage> {
        let query = sqlx::query(at.sql.prune_page.safe()).bind(status.as_str()).bind(older_than_ms);
        let row = query.bind(after).bind(page).bind(at.now).fetch_one(at.conn).await?;
        Ok(PrunePage {
            last: row.try_get(0)?,
            rows: row.try_get(1)?,
            old: row.try_get(2)?,
            all_young: row.try_get(3)?,
        })
    }

    async fn prune(
        at: At<'_, Self>,
        status: Status,
        older_than_ms: i64,
        after: i64,
        last: i64,
    ) -> Result<u64> {
        let query = sqlx::query(at.sql.prune.safe()).bind(status.as_str()).bind(older_than_ms);
        Ok(query.bind(after).bind(last).bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn prune_workers(at: At<'_, Self>) -> Result<u64> {
        Ok(sqlx::query(at.sql.prune_workers.safe()).bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn bury_unknown(
        at: At<'_, Self>,
        event_type: &str,
        after_ms: i64,
        error: &str,
        page: i64,
    ) -> Result<u64> {
        let query = sqlx::query(at.sql.bury_unknown.safe()).bind(event_type).bind(after_ms).bind(error);
        Ok(query.bind(page).bind(at.now).execute(at.conn).await?.rows_affected())
    }

    async fn has_inflight(at: At<'_, Self>, event_type: &str, key: &str, value: &str) -> Result<bool> {
        let query = sqlx::query_scalar(at.sql.has_inflight.safe()).bind(event_type).bind(key).bind(value);
        query.fetch_one(at.conn).await
    }

    async fn get(at: At<'_, Self>, id: &str) -> Result<Option<EventRecord>> {
        let row = sqlx::query(at.sql.get.safe()).bind(id).bind(at.now).fetch_optional(at.conn).await?;
        row.as_ref().map(record).transpose()
    }

    async fn dead_letters(
        at: At<'_, Self>,
        types: &[&str],
        before: Option<(i64, i64)>,
        limit: i64,
    ) -> Result<Vec<EventRecord>> {
        let rows = sqlx::query(at.sql.dead_letters.safe())
            .bind(types)
            .bind(before.map(|(processed_at, _)| processed_at))
            .bind(before.map(|(_, seq)| seq))
            .bind(limit)
            .fetch_all(at.conn)
            .await?;
        rows.iter().map(record).collect()
    }

    async fn requeue(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(sqlx::query(at.sql.requeue.safe()).bind(id).bind(at.now).execute(at.conn).await?.rows_affected()
            > 0)
    }

    async fn requeue_types(at: At<'_, Self>, types: &[&str], page: i64) -> Result<u64> {
        let query = sqlx::query(at.sql.requeue_types.safe()).bind(types).bind(page).bind(at.now);
        Ok(query.execute(at.conn).await?.rows_affected())
    }

    async fn discard(at: At<'_, Self>, id: &str) -> Result<bool> {
        Ok(sqlx::query(at.sql.discard.safe()).bind(id).execute(at.conn).await?.rows_affected() > 0)
    }

    async fn stats(at: At<'_, Self>, cap: i64) -> Result<Vec<TypeStats>> {
        let rows = sqlx::query(at.sql.stats.safe()).bind(cap).bind(at.now).fetch_all(at.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(TypeStats {
                    event_type: row.try_get(0)?,
                    due: positive(row, 1)?,
                    scheduled: positive(row, 2)?,
                    processing: positive(row, 3)?,
                    dead_letter: positive(row, 4)?,
                    oldest_due_age: row
                        .try_get::<Option<i64>, _>(5)?
                        .map(|ms| Duration::from_millis(ms.max(0).unsigned_abs())),
                    live_workers: u32::try_from(positive(row, 6)?).unwrap_or(u32::MAX),
                    handled_here: false,
                })
            })
            .collect()
    }

    async fn workers(at: At<'_, Self>) -> Result<Vec<WorkerInfo>> {
        let rows = sqlx::query(at.sql.workers.safe()).bind(at.now).fetch_all(at.conn).await?;
        rows.iter()
            .map(|row| {
                Ok(WorkerInfo {
                    id: row.try_get(0)?,
                    host: row.try_get(1)?,
                    pid: u32::try_from(positive(row, 2)?).unwrap_or(0),
                    kinds: row.try_get(3)?,
                    started_at: from_ms(row.try_get(4)?),
                    heartbeat_at: from_ms(row.try_get(5)?),
                })
            })
            .collect()
    }
}

/// Makes the schema and the table of migrations, where they are missing.
async fn prepare_schema(conn: &mut PgConnection, schema: Option<&str>) -> Result<()> {
    // IF NOT EXISTS does not hold against others that create at the same moment: they fail on the catalogue's unique
    // indexes, and the next look finds what the winner made.
    const TRIES: u32 = 20;
    let create_schema = schema.map(|schema| format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema)));
    let create_table = format!(
        "CREATE TABLE IF NOT EXISTS {} (version bigint PRIMARY KEY, name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())",
        table_name(schema, "outbox_migration")
    );
    for statement in create_schema.into_iter().chain([create_table]) {
        let mut tries = 0;
        while let Err(error) = run(conn, statement.clone()).await {
            tries += 1;
            if tries == TRIES || !is_creation_race(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

fn is_creation_race(error: &sqlx::Error) -> bool {
    // unique_violation, duplicate_table, duplicate_schema, duplicate_object
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["23505", "42P07", "42P06", "42710"].contains(&&*code))
}

async fn run(conn: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.map(drop)
}

async fn schema_version(conn: &mut PgConnection, schema: Option<&str>) -> Result<i64> {
    let table = table_name(schema, "outbox_migration");
    let exists: bool =
        sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL").bind(&table).fetch_one(&mut *conn).await?;
    if !exists {
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(version), 0) FROM {table}");
    sqlx::query_scalar(AssertSqlSafe(newest)).fetch_one(conn).await
}

type Update<'q> = sqlx::query::QueryScalar<'q, Postgres, i64, sqlx::postgres::PgArguments>;

/// The settle statement with its columns bound as arrays.
fn update<'q>(sql: &Statements, worker: &'q str, outcomes: &[&Settlement], now: Option<i64>) -> Update<'q> {
    let error = |outcome: &&Settlement| match &outcome.error {
        WriteError::Set(text) => Some(text.clone()),
        WriteError::Keep | WriteError::Clear => None,
    };
    sqlx::query_scalar(sql.settle.safe())
        .bind(outcomes.iter().map(|outcome| outcome.seq).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.fence).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.status.as_str()).collect::<Vec<&'static str>>())
        .bind(outcomes.iter().map(|outcome| i64::from(outcome.attempts)).collect::<Vec<i64>>())
        .bind(outcomes.iter().map(|outcome| outcome.delay_ms).collect::<Vec<Option<i64>>>())
        .bind(outcomes.iter().map(|outcome| outcome.error == WriteError::Keep).collect::<Vec<bool>>())
        .bind(outcomes.iter().map(error).collect::<Vec<Option<String>>>())
        .bind(worker)
        .bind(now)
}

/// A bigint that is never negative.
fn positive(row: &PgRow, index: usize) -> Result<u64> {
    row.try_get::<i64, _>(index).map(|number| number.max(0).unsigned_abs())
}

/// An integer that a check keeps from being negative.
fn small(row: &PgRow, index: usize) -> Result<u32> {
    row.try_get::<i32, _>(index).map(|number| number.max(0).unsigned_abs())
}

fn parsed<T: FromStr<Err: std::error::Error + Send + Sync + 'static>>(
    row: &PgRow,
    index: usize,
) -> Result<T> {
    parse_column(row.try_get(index)?, index)
}

fn claimed(row: &PgRow) -> Result<Claimed> {
    Ok(Claimed {
        seq: row.try_get(0)?,
        id: parsed(row, 1)?,
        fence: row.try_get(2)?,
        event_type: row.try_get(3)?,
        version: small(row, 4)?,
        payload: row.try_get(5)?,
        headers: row.try_get(6)?,
        attempts: small(row, 7)?,
        crashes: small(row, 8)?,
        max_attempts: small(row, 9)?,
        due: row.try_get(10)?,
        created_at: row.try_get(11)?,
    })
}

fn record(row: &PgRow) -> Result<EventRecord> {
    let time = |index| row.try_get::<Option<i64>, usize>(index).map(|ms| ms.map(from_ms));
    Ok(EventRecord {
        seq: row.try_get(0)?,
        id: parsed(row, 1)?,
        event_type: row.try_get(2)?,
        event_version: small(row, 3)?,
        payload: row.try_get(4)?,
        headers: row.try_get(5)?,
        status: parsed(row, 6)?,
        attempts: small(row, 7)?,
        crashes: small(row, 8)?,
        max_attempts: small(row, 9)?,
        available_at: from_ms(row.try_get(10)?),
        locked_at: time(11)?,
        locked_by: row.try_get(12)?,
        fence: row.try_get(13)?,
        last_error: row.try_get(14)?,
        ordering_key: row.try_get(15)?,
        dedup_key: row.try_get(16)?,
        subject: row.try_get(17)?,
        created_at: from_ms(row.try_get(18)?),
        processed_at: time(19)?,
        is_due: row.try_get(20)?,
    })
}
