//! What events are enqueued in.

use sqlx::{Database, Transaction};

use crate::backend::Backend;

/// What an event can be enqueued in: a transaction.
///
/// Also a single connection, on the caller's own responsibility: outside of a transaction the event is stored at
/// once, whatever becomes of the business data. A pool is not possible: its next statement may run on another
/// connection, outside of any transaction.
#[diagnostic::on_unimplemented(
    message = "events are enqueued in a transaction, and `{Self}` is none",
    label = "not a transaction",
    note = "begin one and pass it: `let mut tx = pool.begin().await?; outbox::enqueue::<E>(&mut tx, payload).await?; tx.commit().await?`",
    note = "a single connection works too (`&mut *connection`), but then nothing ties the event to your data"
)]
pub trait InTransaction: Send {
    /// Its database.
    type Database: Backend;

    /// The connection that it holds.
    fn connection(&mut self) -> &mut <Self::Database as Database>::Connection;
}

impl<DB: Backend> InTransaction for Transaction<'_, DB> {
    type Database = DB;

    fn connection(&mut self) -> &mut DB::Connection {
        self
    }
}

#[cfg(feature = "sqlite")]
impl InTransaction for sqlx::SqliteConnection {
    type Database = sqlx::Sqlite;

    fn connection(&mut self) -> &mut sqlx::SqliteConnection {
        self
    }
}

#[cfg(feature = "postgres")]
impl InTransaction for sqlx::PgConnection {
    type Database = sqlx::Postgres;

    fn connection(&mut self) -> &mut sqlx::PgConnection {
        self
    }
}

#[cfg(feature = "mysql")]
impl InTransaction for sqlx::MySqlConnection {
    type Database = sqlx::MySql;

    fn connection(&mut self) -> &mut sqlx::MySqlConnection {
        self
    }
}
