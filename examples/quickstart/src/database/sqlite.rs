//! SQLite: a file in the folder where you are, made anew by every run, and yours to look into afterwards.

use std::error::Error;
use std::{env, fs, io};

use outbox::Outbox;

pub(crate) type Db = sqlx::Sqlite;

const FILE: &str = "quickstart.db";

/// How to look into it.
pub(crate) const LOOK: &str =
    "sqlite3 quickstart.db 'SELECT status, attempts, payload, last_error FROM outbox_event'";

pub(crate) async fn open() -> Result<Outbox<Db>, Box<dyn Error>> {
    if env::var("DATABASE_URL").is_ok_and(|url| url.starts_with("postgres")) {
        return Err(
            "DATABASE_URL names a PostgreSQL database: add `--features postgres` to use it, or unset it"
                .into(),
        );
    }
    for file in [FILE.to_owned(), format!("{FILE}-wal"), format!("{FILE}-shm")] {
        fs::remove_file(file).or_else(|error| match error.kind() {
            io::ErrorKind::NotFound => Ok(()),
            _ => Err(error),
        })?;
    }
    println!("database {FILE}");
    Ok(Outbox::connect(&format!("sqlite://{FILE}")).await?)
}
