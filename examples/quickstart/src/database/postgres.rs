//! The PostgreSQL of `DATABASE_URL`: a schema of its own there, made anew by every run, and yours to look into
//! afterwards.

use std::env;
use std::error::Error;

use outbox::Outbox;
use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;

pub(crate) type Db = sqlx::Postgres;

const SCHEMA: &str = "outbox_quickstart";

/// How to look into it.
pub(crate) const LOOK: &str = "psql $DATABASE_URL -c 'SELECT status, attempts, payload, last_error FROM outbox_quickstart.outbox_event'";

pub(crate) async fn open() -> Result<Outbox<Db>, Box<dyn Error>> {
    let url =
        env::var("DATABASE_URL").map_err(|_| "set DATABASE_URL, such as postgres://localhost/postgres")?;
    let options: PgConnectOptions = url.parse()?;
    let pool = PgPool::connect_with(options.options([("search_path", SCHEMA)])).await?;
    sqlx::raw_sql("DROP SCHEMA IF EXISTS outbox_quickstart CASCADE").execute(&pool).await?;
    println!("database of DATABASE_URL, schema {SCHEMA}");
    Ok(Outbox::new(pool).schema(SCHEMA))
}
