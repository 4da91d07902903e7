//! Which server it is, and the history of the tables on it.

use sqlx::mysql::MySqlConnection;
use sqlx::{AssertSqlSafe, Connection};

use super::{Result, Statements, number_of, quoted, table_name};
use crate::backend::Migration;
use crate::backend::statements::{qualify, without_comments};

/// A server that lacks what the statements need.
#[derive(Debug, thiserror::Error)]
#[error(
    "the outbox needs MySQL 8.0.22 or MariaDB 10.6 or newer (they pass over locked rows, check what is stored and read \
     lists of JSON), and the server is {0}"
)]
pub(super) struct TooOld(String);

/// Says so where a server is too old.
pub(super) async fn check(conn: &mut MySqlConnection) -> Result<()> {
    let version: String = sqlx::query_scalar("SELECT VERSION()").fetch_one(conn).await?;
    if is_new_enough(&version) { Ok(()) } else { Err(sqlx::Error::Configuration(TooOld(version).into())) }
}

/// `8.0.36-0ubuntu0.22.04.1`, `10.11.6-MariaDB-log`
fn is_new_enough(version: &str) -> bool {
    let number = version.split('-').next().unwrap_or_default();
    let numbers: Vec<u32> = number.split('.').map_while(|part| part.parse().ok()).collect();
    let needed: &[u32] = if version.contains("MariaDB") { &[10, 6] } else { &[8, 0, 22] };
    numbers.as_slice() >= needed
}

pub(super) async fn schema_version(conn: &mut MySqlConnection, schema: Option<&str>) -> Result<i64> {
    let newest = format!("SELECT COALESCE(MAX(version), 0) FROM {}", table_name(schema, "outbox_migration"));
    match sqlx::query_scalar(AssertSqlSafe(newest)).persistent(false).fetch_one(conn).await {
        // No such table, no such database.
        Err(error) if matches!(number_of(&error), Some(1146 | 1049)) => Ok(0),
        answer => answer,
    }
}

/// Applies what is missing, step by step: what makes tables ends every transaction, so a step that was cut in the middle
/// is begun again, and finds some of what it makes there.
pub(super) async fn migrate(
    conn: &mut MySqlConnection,
    sql: &Statements,
    schema: Option<&str>,
    migrations: &[Migration],
) -> Result<()> {
    check(conn).await?;
    let lock = sql.migrate_lock.scalar().bind(schema);
    let locked: Option<i64> = lock.fetch_one(&mut *conn).await?;
    if locked != Some(1) {
        return Err(sqlx::Error::Protocol("somebody else has been migrating for a minute".to_owned()));
    }
    // Whoever comes after a step that waits for a table waits behind it: so it does not wait for long.
    // And where a session does not commit by itself, whatever was read last has begun a transaction.
    const PATIENT: &str =
        "ROLLBACK; SET @outbox_patience = @@SESSION.lock_wait_timeout, SESSION lock_wait_timeout = 1";
    const AS_BEFORE: &str = "ROLLBACK; SET SESSION lock_wait_timeout = @outbox_patience";
    sqlx::raw_sql(PATIENT).execute(&mut *conn).await?;
    let migrated = migrate_locked(conn, schema, migrations).await;
    sqlx::raw_sql(AS_BEFORE).execute(&mut *conn).await?;
    let unlock = sql.migrate_unlock.query().bind(schema);
    unlock.execute(conn).await?;
    migrated
}

async fn migrate_locked(
    conn: &mut MySqlConnection,
    schema: Option<&str>,
    migrations: &[Migration],
) -> Result<()> {
    let table = table_name(schema, "outbox_migration");
    let make_schema = schema.map(|schema| format!("CREATE DATABASE IF NOT EXISTS {}", quoted(schema)));
    let make_table = format!(
        "CREATE TABLE IF NOT EXISTS {table} (version BIGINT NOT NULL PRIMARY KEY, name VARCHAR(255) NOT NULL, \
         applied_at TIMESTAMP(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6)) ENGINE = InnoDB"
    );
    for statement in make_schema.into_iter().chain([make_table]) {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *conn).await?;
    }
    let applied = schema_version(conn, schema).await?;
    for migration in migrations.iter().filter(|migration| migration.version > applied) {
        for statement in without_comments(migration.sql).split(';').filter(|text| !text.trim().is_empty()) {
            let sql = qualify(statement, schema, table_name);
            match sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut *conn).await {
                Err(error) if !is_there_already(&error) => return Err(error),
                _ => {}
            }
        }
        let insert = format!("INSERT INTO {table} (version, name) VALUES (?, ?)");
        // In a transaction: a session may not commit by itself.
        let mut tx = conn.begin().await?;
        let insert = sqlx::query(AssertSqlSafe(insert)).persistent(false);
        insert.bind(migration.version).bind(migration.name).execute(&mut *tx).await?;
        tx.commit().await?;
    }
    Ok(())
}

/// A column or an index of this name: neither server's `IF NOT EXISTS` for those is known to the other.
fn is_there_already(error: &sqlx::Error) -> bool {
    matches!(number_of(error), Some(1060 | 1061))
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn a_server_is_told_by_its_version() {
        for new in
            ["8.0.22", "8.0.36-0ubuntu0.22.04.1", "8.4.0", "9.1.0", "10.6.0-MariaDB", "11.4.2-MariaDB-log"]
        {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["5.7.44-log", "8.0.21", "10.5.23-MariaDB-0+deb11u1", "5.5.68-MariaDB", ""] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
