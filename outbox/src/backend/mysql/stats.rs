//! What people ask for, where it takes a statement for each type or key.

use sqlx::MySql;

use super::Result;
use crate::backend::At;
use crate::backend::data::{BlockedKey, TypeStats};
use crate::backend::rows::{self, PlainRow};

/// What waits, by type.
pub(super) async fn stats(at: At<'_, MySql>, cap: i64) -> Result<Vec<TypeStats>> {
    let types = at.sql.stats_types.query().bind(cap.saturating_mul(10)).fetch_all(&mut *at.conn).await?;
    let mut stats = Vec::with_capacity(types.len());
    for row in &types {
        let name = row.text(0)?;
        // The columns as every backend answers with them.
        let query = at.sql.stats_of.query().bind(&name).bind(row.number(1)?);
        let query = query.bind(&name).bind(at.now).bind(cap).bind(&name).bind(at.now).bind(cap);
        let query = query.bind(row.number(2)?).bind(row.number(3)?);
        let query = query.bind(at.now).bind(&name).bind(at.now).bind(at.now).bind(&name);
        stats.push(rows::type_stats(&query.fetch_one(&mut *at.conn).await?)?);
    }
    Ok(stats)
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
