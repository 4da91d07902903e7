//! A claimed event out of its row, as the server sends it: a conversion for each column, there and here, would cost more
//! than most of what a claim does.

use sqlx::postgres::{PgRow, PgValueFormat, PgValueRef};
use sqlx::{Row, ValueRef};
use uuid::Uuid;

use crate::backend::data::Claimed;

type Result<T> = std::result::Result<T, sqlx::Error>;

/// From 1970 to 2000, where PostgreSQL begins to count, in microseconds.
const EPOCH: i64 = 946_684_800_000_000;

pub(super) fn claimed(row: &PgRow) -> Result<Claimed> {
    Ok(Claimed {
        seq: bigint(row, 0)?,
        id: Uuid::from_bytes(fixed(row, 1)?).into(),
        fence: bigint(row, 2)?,
        event_type: text(row, 3)?,
        version: integer(row, 4)?,
        payload: text(row, 5)?,
        headers: maybe_text(row, 6)?,
        attempts: integer(row, 7)?,
        crashes: integer(row, 8)?,
        max_attempts: integer(row, 9)?,
        due: micros(row, 10)?,
        created_at: micros(row, 11)?.div_euclid(1000),
        ordering_key: maybe_text(row, 12)?,
    })
}

/// A column's bytes; `None` where it is NULL.
fn bytes(row: &PgRow, index: usize) -> Result<Option<&[u8]>> {
    let value: PgValueRef<'_> = row.try_get_raw(index)?;
    if value.is_null() {
        return Ok(None);
    }
    if value.format() != PgValueFormat::Binary {
        return Err(undecodable(index, "the server sent text where bytes were asked for"));
    }
    value.as_bytes().map(Some).map_err(|error| undecodable(index, error))
}

fn undecodable(index: usize, why: impl Into<sqlx::error::BoxDynError>) -> sqlx::Error {
    sqlx::Error::ColumnDecode { index: index.to_string(), source: why.into() }
}

fn fixed<const N: usize>(row: &PgRow, index: usize) -> Result<[u8; N]> {
    let bytes = bytes(row, index)?.ok_or_else(|| undecodable(index, "NULL"))?;
    bytes.try_into().map_err(|error| undecodable(index, error))
}

fn bigint(row: &PgRow, index: usize) -> Result<i64> {
    fixed(row, index).map(i64::from_be_bytes)
}

/// One that a check of the table keeps from being negative.
fn integer(row: &PgRow, index: usize) -> Result<u32> {
    fixed(row, index).map(|bytes| i32::from_be_bytes(bytes).max(0).unsigned_abs())
}

/// A time in microseconds since 1970.
fn micros(row: &PgRow, index: usize) -> Result<i64> {
    bigint(row, index).map(|micros| micros.saturating_add(EPOCH))
}

/// `text` or `json`, which are sent alike.
fn maybe_text(row: &PgRow, index: usize) -> Result<Option<String>> {
    let Some(bytes) = bytes(row, index)? else { return Ok(None) };
    let text = std::str::from_utf8(bytes).map_err(|error| undecodable(index, error))?;
    Ok(Some(text.to_owned()))
}

fn text(row: &PgRow, index: usize) -> Result<String> {
    maybe_text(row, index)?.ok_or_else(|| undecodable(index, "NULL"))
}
