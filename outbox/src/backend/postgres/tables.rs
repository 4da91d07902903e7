//! The tables: made, upgraded, and which version they have.

use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::{DEFAULT_SCHEMA, Result, quoted, table_name};
use crate::backend::Migration;

/// Applies what is missing.
pub(super) async fn migrate(
    conn: &mut PgConnection,
    schema: Option<&str>,
    migrations: &[Migration],
) -> Result<()> {
    prepare_schema(conn, schema).await?;
    let table = table_name(schema, "outbox_migration");
    for migration in migrations {
        let mut tx = conn.begin().await?;
        // Whoever comes first migrates; the others wait here and then find it done. A holder that crashes lets go.
        run(&mut tx, format!("LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")).await?;
        if version(&mut tx, schema).await? < migration.version {
            // The files name no schema, so that a team can run them with a tool of its own. And whoever comes after a step
            // that waits for a table waits behind it: so it does not wait for long.
            let path = quoted(schema.unwrap_or(DEFAULT_SCHEMA));
            run(&mut tx, format!("SET LOCAL search_path TO {path}; SET LOCAL lock_timeout = '1s'")).await?;
            sqlx::raw_sql(migration.sql).execute(&mut *tx).await?;
            let insert = format!("INSERT INTO {table} (version, name) VALUES ($1, $2)");
            let insert = sqlx::query(AssertSqlSafe(insert))
                .persistent(false)
                .bind(migration.version)
                .bind(migration.name);
            insert.execute(&mut *tx).await?;
        }
        tx.commit().await?;
    }
    Ok(())
}

/// Makes the schema and the table of migrations, where they are missing.
async fn prepare_schema(conn: &mut PgConnection, schema: Option<&str>) -> Result<()> {
    // IF NOT EXISTS does not hold against others that create at the same moment: they fail on the catalogue's unique
    // indexes, and the next look finds what the winner made.
    const TRIES: u32 = 20;
    let create_schema = schema.map(|schema| format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema)));
    let create_table = format!(
        "CREATE TABLE IF NOT EXISTS {} (version bigint PRIMARY KEY, name text NOT NULL, \
         applied_at timestamptz NOT NULL DEFAULT clock_timestamp())",
        table_name(schema, "outbox_migration")
    );
    for statement in create_schema.into_iter().chain([create_table]) {
        let mut tries = 0;
        while let Err(error) = run(conn, statement.clone()).await {
            tries += 1;
            if tries == TRIES || !is_creation_race(&error) {
                return Err(error);
            }
        }
    }
    Ok(())
}

fn is_creation_race(error: &sqlx::Error) -> bool {
    // unique_violation, duplicate_table, duplicate_schema, duplicate_object
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["23505", "42P07", "42P06", "42710"].contains(&&*code))
}

async fn run(conn: &mut PgConnection, statement: String) -> Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(conn).await.map(drop)
}

pub(super) async fn version(conn: &mut PgConnection, schema: Option<&str>) -> Result<i64> {
    let table = table_name(schema, "outbox_migration");
    let exists: bool = sqlx::query_scalar("SELECT to_regclass($1) IS NOT NULL")
        .bind(&table)
        .persistent(false)
        .fetch_one(&mut *conn)
        .await?;
    if !exists {
        return Ok(0);
    }
    let newest = format!("SELECT coalesce(max(version), 0) FROM {table}");
    sqlx::query_scalar(AssertSqlSafe(newest)).persistent(false).fetch_one(conn).await
}
