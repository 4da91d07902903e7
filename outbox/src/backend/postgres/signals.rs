//! LISTEN and NOTIFY: on one connection, outside of every business transaction.

use sqlx::postgres::PgListener;
use sqlx::{Pool, Postgres};

use super::Result;
use crate::backend::signals::{Sign, Signals};

/// One channel for all schemas: its payload is the word and the schema, far below the 8,000 bytes of a NOTIFY.
const CHANNEL: &str = "outbox";

/// Gives signs by NOTIFY, and hears those of other processes.
#[derive(Debug)]
pub struct PgSignals {
    listener: PgListener,
    /// Whose own signs are passed over.
    backend: i32,
    soon: String,
    now: String,
}

impl Signals<Postgres> for PgSignals {
    async fn open(pool: &Pool<Postgres>, schema: Option<&str>) -> Result<Self> {
        let connect = pool.connect_options().as_ref().clone().application_name("outbox listen");
        let options = pool.options().clone().min_connections(0).max_connections(1).test_before_acquire(false);
        let own = options.max_lifetime(None).idle_timeout(None).connect_lazy_with(connect);
        let mut listener = PgListener::connect_with(&own).await?;
        // A lost connection is an answer here: whoever opens the next looks at the table as well.
        listener.eager_reconnect(false);
        listener.listen(CHANNEL).await?;
        let backend = sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut listener).await?;
        let schema = schema.unwrap_or_default();
        Ok(Self { listener, backend, soon: format!("soon {schema}"), now: format!("now {schema}") })
    }

    async fn next(&mut self) -> Result<Sign> {
        loop {
            let Some(notification) = self.listener.try_recv().await? else {
                return Err(sqlx::Error::Io(std::io::ErrorKind::ConnectionReset.into()));
            };
            match notification.payload() {
                _ if notification.process_id() == self.backend.cast_unsigned() => {}
                payload if payload == self.now => return Ok(Sign::Now),
                payload if payload == self.soon => return Ok(Sign::Soon),
                // Another schema's.
                _ => {}
            }
        }
    }

    async fn send(&mut self, sign: Sign) -> Result<()> {
        let payload = match sign {
            Sign::Soon => &self.soon,
            Sign::Now => &self.now,
        };
        let notify = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(payload);
        notify.execute(&mut self.listener).await.map(drop)
    }

    async fn check(&mut self) -> Result<()> {
        sqlx::query("SELECT 1").execute(&mut self.listener).await.map(drop)
    }
}
