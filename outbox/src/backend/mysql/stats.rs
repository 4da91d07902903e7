//! What people ask for, where it takes a statement for each type or key.

use std::collections::BTreeMap;

use sqlx::MySql;

use super::Result;
use crate::backend::At;
use crate::backend::data::{BlockedKey, TypeStats};
use crate::backend::rows::{self, PlainRow};

/// What waits, by type.
pub(super) async fn stats(mut at: At<'_, MySql>, cap: i64) -> Result<Vec<TypeStats>> {
    let types = types(&mut at, cap).await?;
    let mut stats = Vec::with_capacity(types.len());
    for (name, Busy { suspects, running, dead }) in &types {
        // The columns as every backend answers with them.
        let query = at.sql.stats_of.query().bind(name).bind(suspects);
        let query = query.bind(name).bind(at.now).bind(cap).bind(name).bind(at.now).bind(cap);
        let query = query.bind(running).bind(dead);
        let query = query.bind(at.now).bind(name).bind(at.now).bind(at.now).bind(name);
        stats.push(rows::type_stats(&query.fetch_one(&mut *at.conn).await?)?);
    }
    Ok(stats)
}

/// How many events of a type do not simply wait.
#[derive(Default)]
struct Busy {
    suspects: i64,
    running: i64,
    dead: i64,
}

/// All types of which there is anything to say.
async fn types(at: &mut At<'_, MySql>, cap: i64) -> Result<BTreeMap<String, Busy>> {
    let mut types = BTreeMap::new();
    let busy = at.sql.stats_busy.query().bind(cap.saturating_mul(10)).fetch_all(&mut *at.conn).await?;
    for row in &busy {
        let busy = Busy { suspects: row.number(1)?, running: row.number(2)?, dead: row.number(3)? };
        types.insert(row.text(0)?, busy);
    }
    for waiting in [0, 1] {
        let mut last = String::new();
        loop {
            let query = at.sql.stats_next.query().bind(waiting).bind(&last);
            let Some(row) = query.fetch_optional(&mut *at.conn).await? else { break };
            last = row.text(0)?;
            types.entry(last.clone()).or_default();
        }
    }
    Ok(types)
}

/// Ordering keys that a dead letter blocks.
pub(super) async fn blocked_keys(at: At<'_, MySql>, cap: i64, limit: i64) -> Result<Vec<BlockedKey>> {
    let blockers = at.sql.blocked_keys.query().bind(limit).fetch_all(&mut *at.conn).await?;
    let mut blocked = Vec::with_capacity(blockers.len());
    for row in &blockers {
        let query = at.sql.blocked_waiting.query().bind(row.text(0)?).bind(row.number(4)?).bind(cap);
        let waiting = query.fetch_one(&mut *at.conn).await?.count(0)?;
        blocked.push(BlockedKey { waiting, ..rows::blocked_key(row)? });
    }
    Ok(blocked)
}
