//! What producers write, in their own transactions.

use std::collections::HashMap;

use sqlx::MySql;

use super::short::Bound;
use super::{Result, is_duplicate};
use crate::backend::At;
use crate::backend::data::{Duplicate, Identity, NewEvent, NewEvents, NewRow, json, on_dead_letter_column};
use crate::backend::rows;
use crate::event::EventId;

/// Stores one event; whether it did.
pub(super) async fn one(at: At<'_, MySql>, event: &NewEvent<'_>) -> Result<bool> {
    let insert = at.sql.insert.with("{rows}", at.sql.insert_row.text());
    stored(bind(insert.query(), event, at.now).execute(at.conn).await)
}

fn bind<'q>(query: Bound<'q>, event: &NewEvent<'q>, now: Option<i64>) -> Bound<'q> {
    query
        .bind(event.id.to_string())
        .bind(event.event_type)
        .bind(event.version)
        .bind(event.payload)
        .bind(event.headers)
        .bind(event.max_attempts)
        .bind(event.available_at)
        .bind(now)
        .bind(event.delay_ms)
        .bind(event.ordering_key)
        .bind(event.ordering_key.and(on_dead_letter_column(event.on_dead_letter)))
        .bind(event.dedup_key)
        .bind(event.subject)
        .bind(now)
}

/// A row that is there already fails its statement and leaves the transaction as it was.
fn stored<T>(answer: Result<T>) -> Result<bool> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if is_duplicate(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Stores many events in one statement. Where one of them is there already none is stored, and the halves are tried, in
/// order, down to that one.
pub(super) async fn all(at: At<'_, MySql>, events: &NewEvents<'_>, rows: &[&NewRow]) -> Result<Vec<EventId>> {
    let mut ids = Vec::with_capacity(rows.len());
    let mut left = vec![rows];
    while let Some(part) = left.pop() {
        let insert =
            at.sql.insert.with("{rows}", &vec![at.sql.insert_row.text(); part.len()].join(", ")).once();
        let query = part.iter().fold(insert.query(), |query, row| bind(query, &events.event(row), at.now));
        if stored(query.execute(&mut *at.conn).await)? {
            ids.extend(part.iter().map(|row| row.id));
        } else if part.len() > 1 {
            let (first, second) = part.split_at(part.len() / 2);
            left.extend([second, first]);
        }
    }
    Ok(ids)
}

pub(super) async fn find_duplicates(
    at: At<'_, MySql>,
    event_type: &str,
    wanted: &[Identity<'_>],
) -> Result<Vec<(usize, Duplicate)>> {
    let pairs: Vec<_> = wanted.iter().map(|event| (event.id.to_string(), event.dedup_key)).collect();
    let pairs = json(&pairs)?;
    let query = at.sql.find_duplicates.query().bind(&pairs).bind(&pairs).bind(event_type);
    let mut found = HashMap::new();
    for (place, duplicate) in rows::all(&query.fetch_all(at.conn).await?, rows::duplicate)? {
        // The same id comes first.
        found.entry(place).or_insert(duplicate);
    }
    Ok(found.into_iter().collect())
}
