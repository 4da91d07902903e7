//! The outbox's own tables: made, upgraded, checked. Recorded in `outbox_migration`, apart from the application's.

use std::time::Duration;

use tokio::time::Instant;

use crate::backend::Backend;
use crate::schema_name;
use crate::store::{Store, run};

pub(crate) async fn migrate<DB: Backend>(store: &Store<DB>) -> Result<(), MigrateError> {
    check_name(store)?;
    let store = store.clone();
    // A task of its own: one that is given up halfway would leave its lock on a connection that goes back to the pool,
    // where the lock is the session's.
    let migrated = tokio::spawn(async move {
        let until = Instant::now() + PATIENCE;
        loop {
            let mut conn = store.pool.acquire().await?;
            match DB::migrate(&mut conn, store.schema(), &store.migrations).await {
                Err(error) if DB::is_transient(&error) && Instant::now() < until => {
                    drop(conn);
                    tokio::time::sleep(PAUSE.mul_f64(fastrand::f64())).await;
                }
                answer => return answer,
            }
        }
    });
    Ok(migrated.await.unwrap_or(Err(sqlx::Error::WorkerCrashed))?)
}

/// For how long a step that meets other transactions is tried again, and the longest time in between, in which those that
/// it kept waiting go on.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_secs(1);

/// Whether the tables are as new as this release needs them. Newer ones are fine: a rolling upgrade migrates first.
pub(crate) async fn check<DB: Backend>(store: &Store<DB>) -> Result<(), MigrateError> {
    check_name(store)?;
    let found = run!(store, |at| DB::schema_version(at, store.schema()))?;
    let needed = store.migrations.last().map_or(0, |migration| migration.version);
    if found >= needed {
        return Ok(());
    }
    let missing = store.migrations.iter().filter(|migration| migration.version > found);
    let missing: Vec<&str> = missing.map(|migration| migration.name).collect();
    Err(MigrateError::Missing { missing: missing.join(", "), database: DB::DATABASE })
}

fn check_name<DB: Backend>(store: &Store<DB>) -> Result<(), MigrateError> {
    store.schema().map_or(Ok(()), schema_name::check).map_err(MigrateError::SchemaName)
}

/// Why the tables are not there.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum MigrateError {
    /// Migrations are missing.
    #[error(
        "the outbox's tables are missing or too old: {missing} is to be applied; call `Outbox::migrate()`, or start with \
         `outbox::run().migrate_on_start()`, or run the files of the folder `migrations` for {database} with a tool of your own, as its README says"
    )]
    Missing {
        /// The files that were not applied.
        missing: String,
        /// The database.
        database: &'static str,
    },
    /// A schema name that no database takes.
    #[error("the schema's {0}")]
    SchemaName(&'static str),
    /// The database refused.
    #[error("the database refused: {0}")]
    Database(#[from] sqlx::Error),
}

crate::readable::readable!(MigrateError);
