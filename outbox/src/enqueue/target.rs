//! A caller's connection without its database in the type, so that `enqueue::<InvoiceEvent>` needs that one argument.

use std::collections::{BTreeSet, HashSet};
use std::future::Future;
use std::pin::Pin;

use super::{InTransaction, Receipt};
use crate::backend::data::{Duplicate, Identity, NewEvent, NewEvents, NewRow};
use crate::backend::{At, Backend, Place};
use crate::event::EventId;

type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, sqlx::Error>> + Send + 'a>>;

/// Where the tables are, and the time if a test has moved it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Where<'a> {
    pub(super) place: &'a Place,
    pub(super) now: Option<i64>,
}

pub(super) trait Target: Send {
    fn unqueryable(&self, payload: &str) -> Option<&'static str>;

    fn insert<'a>(&'a mut self, at: Where<'a>, event: &'a NewEvent<'a>) -> Answer<'a, Receipt>;

    fn insert_all<'a>(&'a mut self, at: Where<'a>, events: &'a NewEvents<'a>) -> Answer<'a, Vec<Receipt>>;

    fn lock_keys<'a>(&'a mut self, at: Where<'a>, keys: &'a BTreeSet<&'a str>) -> Answer<'a, ()>;
}

struct Connection<'t, DB: Backend>(&'t mut DB::Connection);

pub(super) fn connection_of<'t, T: InTransaction + ?Sized>(tx: &'t mut T) -> Box<dyn Target + 't> {
    Box::new(Connection::<'t, T::Database>(tx.connection()))
}

impl<DB: Backend> Target for Connection<'_, DB> {
    fn unqueryable(&self, payload: &str) -> Option<&'static str> {
        DB::unqueryable(payload)
    }

    fn insert<'a>(&'a mut self, at: Where<'a>, event: &'a NewEvent<'a>) -> Answer<'a, Receipt> {
        Box::pin(async move {
            let sql = &*DB::statements(at.place);
            loop {
                if DB::insert(At { conn: &mut *self.0, sql, now: at.now }, event).await? {
                    return Ok(Receipt::Enqueued(event.id));
                }
                // In a statement of its own: one that inserts and reads sees neither row when the other transaction
                // commits in between.
                let identity = Identity { id: event.id, dedup_key: event.dedup_key };
                let on = At { conn: &mut *self.0, sql, now: at.now };
                let found = DB::find_duplicates(on, event.event_type, &[identity]).await?;
                if let Some((_, Duplicate { id, status })) = found.into_iter().next() {
                    return Ok(Receipt::Duplicate { id, status });
                }
                // It went in between, and the insert has its chance again.
            }
        })
    }

    fn insert_all<'a>(&'a mut self, at: Where<'a>, events: &'a NewEvents<'a>) -> Answer<'a, Vec<Receipt>> {
        Box::pin(async move {
            let sql = &*DB::statements(at.place);
            let mut receipts: Vec<Option<Receipt>> = vec![None; events.rows.len()];
            let mut left: Vec<usize> = (0..events.rows.len()).collect();
            while !left.is_empty() {
                let rows: Vec<&NewRow> = left.iter().map(|index| &events.rows[*index]).collect();
                let on = At { conn: &mut *self.0, sql, now: at.now };
                let stored: HashSet<EventId> = DB::insert_all(on, events, &rows).await?.into_iter().collect();
                left.retain(|index| {
                    let id = events.rows[*index].id;
                    let is_new = stored.contains(&id);
                    if is_new {
                        receipts[*index] = Some(Receipt::Enqueued(id));
                    }
                    !is_new
                });
                if left.is_empty() {
                    break;
                }
                let identities: Vec<Identity<'_>> =
                    left.iter().map(|index| events.rows[*index].identity()).collect();
                let on = At { conn: &mut *self.0, sql, now: at.now };
                for (position, Duplicate { id, status }) in
                    DB::find_duplicates(on, events.event_type, &identities).await?
                {
                    receipts[left[position]] = Some(Receipt::Duplicate { id, status });
                }
                // What is neither stored nor there went in between, and has its chance again.
                left.retain(|index| receipts[*index].is_none());
            }
            Ok(receipts.into_iter().flatten().collect())
        })
    }

    fn lock_keys<'a>(&'a mut self, at: Where<'a>, keys: &'a BTreeSet<&'a str>) -> Answer<'a, ()> {
        Box::pin(async move {
            let sql = &*DB::statements(at.place);
            DB::lock_keys(At { conn: &mut *self.0, sql, now: at.now }, at.place.schema.as_deref(), keys).await
        })
    }
}
