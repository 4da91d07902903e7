//! The outcomes of a batch.

use std::collections::HashSet;

use serde::Serialize;
use sqlx::MySql;

use super::short::{LIST, Short};
use super::{Result, Statements};
use crate::backend::At;
use crate::backend::data::{Settlement, Status, WriteError, json};

/// Writes outcomes, guarded by fence, owner and status: whoever lost the lease changes nothing. A row that somebody else
/// has locked is passed over, and comes again with the next batch.
pub(super) async fn settle(at: At<'_, MySql>, worker: &str, outcomes: &[Settlement]) -> Result<Vec<i64>> {
    let mut short = Short::begin(at.conn).await?;
    let settled = settle_in(&mut short, at.sql, worker, outcomes, at.now).await;
    short.end(settled).await
}

async fn settle_in(
    short: &mut Short<'_>,
    sql: &Statements,
    worker: &str,
    outcomes: &[Settlement],
    now: Option<i64>,
) -> Result<Vec<i64>> {
    let rows = short.lock(sql, &outcomes.iter().map(|outcome| outcome.seq).collect()).await?;
    let ours: HashSet<(i64, i64)> = rows
        .into_iter()
        .filter(|row| row.status == Status::Processing && row.owner.as_deref() == Some(worker))
        .map(|row| (row.seq, row.fence))
        .collect();
    let matched: Vec<_> =
        outcomes.iter().filter(|outcome| ours.contains(&(outcome.seq, outcome.fence))).collect();
    let (deletes, updates): (Vec<&Settlement>, Vec<_>) = matched.iter().partition(|outcome| outcome.delete);
    for part in updates.chunks(LIST) {
        let (seqs, list): (Vec<i64>, Vec<_>) = part.iter().map(|outcome| (outcome.seq, row(outcome))).unzip();
        let list = json(&list)?;
        short.write(&sql.settle, &seqs, |query| query.bind(list.clone()).bind(now).bind(now)).await?;
    }
    let deletes: Vec<i64> = deletes.into_iter().map(|outcome| outcome.seq).collect();
    short.write(&sql.delete, &deletes, |query| query).await?;
    Ok(matched.into_iter().map(|outcome| outcome.seq).collect())
}

fn row(outcome: &Settlement) -> impl Serialize + use<'_> {
    let keep = u8::from(outcome.error == WriteError::Keep);
    (outcome.seq, outcome.status.as_str(), outcome.attempts, outcome.delay_ms, keep, outcome.error.text())
}
