//! From rows to plain data: every backend's statements answer with the same columns.

use std::time::Duration;

#[cfg(any(feature = "mysql", feature = "sqlite"))]
use super::data::Claimed;
use super::data::{
    BlockedKey, Duplicate, EventRecord, FoundRow, PrunePage, Reaped, TypeStats, WorkerInfo, from_ms,
    on_dead_letter,
};

type Result<T> = std::result::Result<T, sqlx::Error>;

/// The kinds of values that the statements answer with.
pub(super) trait PlainRow {
    fn number(&self, index: usize) -> Result<i64>;
    fn maybe_number(&self, index: usize) -> Result<Option<i64>>;
    fn text(&self, index: usize) -> Result<String>;
    fn maybe_text(&self, index: usize) -> Result<Option<String>>;
    fn flag(&self, index: usize) -> Result<bool>;

    /// A number that cannot be negative.
    fn count(&self, index: usize) -> Result<u64> {
        self.number(index).map(|number| number.max(0).unsigned_abs())
    }

    /// A number that a check of the table keeps between 0 and 2147483647.
    fn small(&self, index: usize) -> Result<u32> {
        self.count(index).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
    }

    /// What a column holds as text.
    fn parsed<T: std::str::FromStr<Err: std::error::Error + Send + Sync + 'static>>(
        &self,
        index: usize,
    ) -> Result<T> {
        self.text(index)?.parse().map_err(|error: T::Err| sqlx::Error::ColumnDecode {
            index: index.to_string(),
            source: error.into(),
        })
    }
}

/// Implements it for a backend's rows.
#[cfg(any(feature = "postgres", feature = "sqlite"))]
macro_rules! plain_row {
    ($row:ty) => {
        impl crate::backend::rows::PlainRow for $row {
            fn number(&self, index: usize) -> Result<i64> {
                sqlx::Row::try_get(self, index)
            }

            fn maybe_number(&self, index: usize) -> Result<Option<i64>> {
                sqlx::Row::try_get(self, index)
            }

            fn text(&self, index: usize) -> Result<String> {
                sqlx::Row::try_get(self, index)
            }

            fn maybe_text(&self, index: usize) -> Result<Option<String>> {
                sqlx::Row::try_get(self, index)
            }

            fn flag(&self, index: usize) -> Result<bool> {
                sqlx::Row::try_get(self, index)
            }
        }
    };
}
#[cfg(any(feature = "postgres", feature = "sqlite"))]
pub(super) use plain_row;

/// Every row by the same function.
pub(super) fn all<R, T>(rows: &[R], read: fn(&R) -> Result<T>) -> Result<Vec<T>> {
    rows.iter().map(read).collect()
}

/// A sequence number alone.
#[cfg(feature = "mysql")]
pub(super) fn seq(row: &impl PlainRow) -> Result<i64> {
    row.number(0)
}

/// A sequence number with another number.
#[cfg(feature = "mysql")]
pub(super) fn two_numbers(row: &impl PlainRow) -> Result<(i64, i64)> {
    Ok((row.number(0)?, row.number(1)?))
}

/// With its place among the arguments, counted from 0.
pub(super) fn duplicate(row: &impl PlainRow) -> Result<(usize, Duplicate)> {
    let place = usize::try_from(row.number(0)?).map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok((place, Duplicate { id: row.parsed(1)?, status: row.parsed(2)? }))
}

/// PostgreSQL reads its own as they are sent.
#[cfg(any(feature = "mysql", feature = "sqlite"))]
pub(super) fn claimed(row: &impl PlainRow) -> Result<Claimed> {
    Ok(Claimed {
        seq: row.number(0)?,
        id: row.parsed(1)?,
        fence: row.number(2)?,
        event_type: row.text(3)?,
        version: row.small(4)?,
        payload: row.text(5)?,
        headers: row.maybe_text(6)?,
        attempts: row.small(7)?,
        crashes: row.small(8)?,
        max_attempts: row.small(9)?,
        due: row.number(10)?,
        created_at: row.number(11)?,
        ordering_key: row.maybe_text(12)?,
    })
}

pub(super) fn found(row: &impl PlainRow) -> Result<FoundRow> {
    Ok(FoundRow {
        seq: row.number(0)?,
        fence: row.number(1)?,
        status: row.parsed(2)?,
        owner: row.maybe_text(3)?,
    })
}

pub(super) fn reaped(row: &impl PlainRow) -> Result<Reaped> {
    Ok(Reaped { event_type: row.text(0)?, status: row.parsed(1)? })
}

pub(super) fn prune_page(row: &impl PlainRow) -> Result<PrunePage> {
    Ok(PrunePage {
        last: row.maybe_number(0)?,
        rows: row.number(1)?,
        old: row.number(2)?,
        all_young: row.flag(3)?,
    })
}

pub(super) fn record(row: &impl PlainRow) -> Result<EventRecord> {
    let maybe_time = |index| row.maybe_number(index).map(|ms| ms.map(from_ms));
    Ok(EventRecord {
        seq: row.number(0)?,
        id: row.parsed(1)?,
        event_type: row.text(2)?,
        event_version: row.small(3)?,
        payload: row.text(4)?,
        headers: row.maybe_text(5)?,
        status: row.parsed(6)?,
        attempts: row.small(7)?,
        crashes: row.small(8)?,
        max_attempts: row.small(9)?,
        available_at: from_ms(row.number(10)?),
        locked_at: maybe_time(11)?,
        locked_by: row.maybe_text(12)?,
        fence: row.number(13)?,
        last_error: row.maybe_text(14)?,
        ordering_key: row.maybe_text(15)?,
        dedup_key: row.maybe_text(16)?,
        subject: row.maybe_text(17)?,
        created_at: from_ms(row.number(18)?),
        processed_at: maybe_time(19)?,
        is_due: row.flag(20)?,
        on_dead_letter: on_dead_letter(row.maybe_text(21)?.as_deref()),
        is_blocked: row.flag(22)?,
    })
}

pub(super) fn blocked_key(row: &impl PlainRow) -> Result<BlockedKey> {
    Ok(BlockedKey {
        ordering_key: row.text(0)?,
        id: row.parsed(1)?,
        event_type: row.text(2)?,
        since: from_ms(row.number(3)?),
        waiting: row.count(4)?,
    })
}

pub(super) fn type_stats(row: &impl PlainRow) -> Result<TypeStats> {
    let age = row.maybe_number(5)?.map(|ms| Duration::from_millis(ms.max(0).unsigned_abs()));
    Ok(TypeStats {
        event_type: row.text(0)?,
        due: row.count(1)?,
        scheduled: row.count(2)?,
        processing: row.count(3)?,
        dead_letter: row.count(4)?,
        oldest_due_age: age,
        live_workers: row.small(6)?,
        handled_here: false,
    })
}

pub(super) fn worker_info(row: &impl PlainRow) -> Result<WorkerInfo> {
    Ok(WorkerInfo {
        id: row.text(0)?,
        host: row.text(1)?,
        pid: row.small(2)?,
        kinds: row.text(3)?,
        started_at: from_ms(row.number(4)?),
        heartbeat_at: from_ms(row.number(5)?),
    })
}
