//! What workers leave behind: events, and rows of their own.

use std::collections::HashMap;

use sqlx::MySql;

use super::short::Short;
use super::{Result, Statements};
use crate::backend::At;
use crate::backend::data::{Reaped, Status};
use crate::backend::rows::{self, PlainRow};

/// Declares workers dead. One by one, by the primary key: a statement over all of them would lock those that live, too.
pub(super) async fn mark_dead(at: &mut At<'_, MySql>) -> Result<()> {
    let overdue = at.sql.overdue.query().bind(at.now).fetch_all(&mut *at.conn).await?;
    for row in overdue {
        let query = at.sql.mark_dead.query().bind(at.now).bind(row.text(0)?).bind(at.now);
        query.execute(&mut *at.conn).await?;
    }
    Ok(())
}

/// Why an event is freed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Cause {
    Edited,
    Lost,
    Stuck,
}

/// An event to free, as it was when it was looked at.
struct Orphan {
    seq: i64,
    fence: i64,
    cause: Cause,
}

fn orphan(row: &sqlx::mysql::MySqlRow) -> Result<Orphan> {
    let cause = match row.text(2)?.as_str() {
        "lost" => Cause::Lost,
        "stuck" => Cause::Stuck,
        _ => Cause::Edited,
    };
    Ok(Orphan { seq: row.number(0)?, fence: row.number(1)?, cause })
}

/// Frees a page of events.
pub(super) async fn free(at: At<'_, MySql>, page: i64) -> Result<Vec<Reaped>> {
    let found = at.sql.orphans.query().bind(at.now).bind(page).fetch_all(&mut *at.conn).await?;
    let orphans = rows::all(&found, orphan)?;
    if orphans.is_empty() {
        return Ok(Vec::new());
    }
    let mut short = Short::begin(at.conn).await?;
    let reaped = free_in(&mut short, at.sql, &orphans, at.now).await;
    short.end(reaped).await
}

async fn free_in(
    short: &mut Short<'_>,
    sql: &Statements,
    orphans: &[Orphan],
    now: Option<i64>,
) -> Result<Vec<Reaped>> {
    let locked = short.lock(sql, &orphans.iter().map(|orphan| orphan.seq).collect()).await?;
    // The same claim still: whoever was declared dead does not come back under its name.
    let held: HashMap<i64, i64> = locked
        .into_iter()
        .filter(|row| row.status == Status::Processing)
        .map(|row| (row.seq, row.fence))
        .collect();
    let of = |cause| -> Vec<i64> {
        let is_it = |orphan: &&Orphan| orphan.cause == cause && held.get(&orphan.seq) == Some(&orphan.fence);
        orphans.iter().filter(is_it).map(|orphan| orphan.seq).collect()
    };
    let (edited, lost, stuck) = (of(Cause::Edited), of(Cause::Lost), of(Cause::Stuck));
    short.write(&sql.release, &edited, |query| query).await?;
    short.write(&sql.reap_lost, &lost, |query| query.bind(now)).await?;
    short.write(&sql.reap_stuck, &stuck, |query| query.bind(now)).await?;
    let freed = [edited, lost, stuck].concat();
    short.read(&sql.reaped, &freed, |query| query, rows::reaped).await
}

/// Forgets workers that ended long ago.
pub(super) async fn forget_workers(at: At<'_, MySql>) -> Result<u64> {
    let old = at.sql.old_workers.query().bind(at.now).bind(at.now).fetch_all(&mut *at.conn).await?;
    let mut forgotten = 0;
    for row in old {
        let query = at.sql.forget_worker.query().bind(row.text(0)?);
        forgotten += query.execute(&mut *at.conn).await?.rows_affected();
    }
    Ok(forgotten)
}
