//! Accounts between which transfers are booked, and a note of each event that booked one.
#![allow(clippy::missing_errors_doc, missing_docs, reason = "names say it")]

use std::future::Future;

use outbox::{Backend, EventId};
use sqlx::{MySql, MySqlConnection, PgConnection, Postgres, Sqlite, SqliteConnection};

pub const TABLES: [&str; 2] = [
    "CREATE TABLE account (id BIGINT PRIMARY KEY, cents BIGINT NOT NULL)",
    "CREATE TABLE booked (event_id TEXT NOT NULL)",
];

const ADD: &str = "UPDATE account SET cents = cents + $1 WHERE id = $2";
const NOTE: &str = "INSERT INTO booked (event_id) VALUES ($1)";

type Done = Result<(), sqlx::Error>;

/// A database that a handler books on.
pub trait Ledger: Backend {
    fn add(connection: &mut Self::Connection, account: i64, cents: i64) -> impl Future<Output = Done> + Send;
    fn note(connection: &mut Self::Connection, event: EventId) -> impl Future<Output = Done> + Send;
}

impl Ledger for Sqlite {
    async fn add(connection: &mut SqliteConnection, account: i64, cents: i64) -> Done {
        sqlx::query(ADD).bind(cents).bind(account).execute(connection).await.map(drop)
    }

    async fn note(connection: &mut SqliteConnection, event: EventId) -> Done {
        sqlx::query(NOTE).bind(event.to_string()).execute(connection).await.map(drop)
    }
}

impl Ledger for Postgres {
    async fn add(connection: &mut PgConnection, account: i64, cents: i64) -> Done {
        sqlx::query(ADD).bind(cents).bind(account).execute(connection).await.map(drop)
    }

    async fn note(connection: &mut PgConnection, event: EventId) -> Done {
        sqlx::query(NOTE).bind(event.to_string()).execute(connection).await.map(drop)
    }
}

impl Ledger for MySql {
    async fn add(connection: &mut MySqlConnection, account: i64, cents: i64) -> Done {
        let add = "UPDATE account SET cents = cents + ? WHERE id = ?";
        sqlx::query(add).bind(cents).bind(account).execute(connection).await.map(drop)
    }

    async fn note(connection: &mut MySqlConnection, event: EventId) -> Done {
        let note = "INSERT INTO booked (event_id) VALUES (?)";
        sqlx::query(note).bind(event.to_string()).execute(connection).await.map(drop)
    }
}
