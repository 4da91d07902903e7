//! The databases that are measured on: private servers and files.

use std::process::Stdio;

use sqlx::{AssertSqlSafe, Connection, MySqlConnection, PgConnection, SqliteConnection};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::Result;

/// Which database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Postgres,
    Mariadb,
    Sqlite,
}

/// A private server, or a folder for files. It ends with this value.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    /// Without the database's name.
    base: String,
    process: Option<Child>,
    folder: Option<tempfile::TempDir>,
    /// What its databases' URLs end with.
    suffix: &'static str,
}

impl Server {
    pub(crate) async fn start(kind: Kind) -> Result<Self> {
        let name = match kind {
            Kind::Postgres => "postgres",
            Kind::Mariadb => "mariadb",
            Kind::Sqlite => {
                let folder = tempfile::tempdir()?;
                let base = format!("sqlite://{}", folder.path().display());
                return Ok(Self { kind, base, process: None, folder: Some(folder), suffix: ".db?mode=rwc" });
            }
        };
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/server");
        let mut process =
            Command::new(script).arg(name).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = process.stdout.take().ok_or("no output")?;
        let url = BufReader::new(output).lines().next_line().await?.ok_or("the server did not start")?;
        let base = match kind {
            Kind::Postgres => url.trim_end_matches("/postgres").to_owned(),
            Kind::Mariadb | Kind::Sqlite => url,
        };
        Ok(Self { kind, base, process: Some(process), folder: None, suffix: "" })
    }

    /// An empty database of this name; one of that name that is there goes.
    pub(crate) async fn fresh(&self, name: &str) -> Result<Database> {
        self.drop(name).await?;
        match self.kind {
            Kind::Sqlite => {}
            Kind::Postgres | Kind::Mariadb => self.run(&format!("CREATE DATABASE {name}")).await?,
        }
        let url = format!("{}/{name}{}", self.base, self.suffix);
        let database = Database { kind: self.kind, url };
        if self.kind == Kind::Postgres {
            database.run("CREATE EXTENSION pg_stat_statements").await?;
        }
        Ok(database)
    }

    pub(crate) async fn drop(&self, name: &str) -> Result<()> {
        match self.kind {
            Kind::Postgres => self.run(&format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")).await,
            Kind::Mariadb => self.run(&format!("DROP DATABASE IF EXISTS {name}")).await,
            Kind::Sqlite => {
                let folder = self.folder.as_ref().ok_or("no folder")?;
                for ending in ["", "-wal", "-shm"] {
                    match std::fs::remove_file(folder.path().join(format!("{name}.db{ending}"))) {
                        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                            return Err(error.into());
                        }
                        Ok(()) | Err(_) => {}
                    }
                }
                Ok(())
            }
        }
    }

    async fn run(&self, statement: &str) -> Result<()> {
        let name = if self.kind == Kind::Postgres { "postgres" } else { "mysql" };
        Database { kind: self.kind, url: format!("{}/{name}", self.base) }.run(statement).await
    }

    /// Stops it, and waits until it is gone.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            drop(process.stdin.take());
            process.wait().await?;
        }
        Ok(())
    }
}

/// One database.
#[derive(Clone, Debug)]
pub(crate) struct Database {
    pub(crate) kind: Kind,
    pub(crate) url: String,
}

/// What a PostgreSQL server has done so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counters {
    pub(crate) statements: f64,
    pub(crate) transactions: f64,
    pub(crate) wal_bytes: f64,
    /// Time on a processor, in seconds: of the server, its sessions as far as they have ended.
    pub(crate) cpu: f64,
}

impl Counters {
    pub(crate) fn since(self, before: Self) -> Self {
        Self {
            statements: self.statements - before.statements,
            transactions: self.transactions - before.transactions,
            wal_bytes: self.wal_bytes - before.wal_bytes,
            cpu: self.cpu - before.cpu,
        }
    }

    pub(crate) fn per(self, events: f64) -> Self {
        Self {
            statements: self.statements / events,
            transactions: self.transactions / events,
            wal_bytes: self.wal_bytes / events,
            cpu: self.cpu / events,
        }
    }
}

impl Database {
    pub(crate) async fn run(&self, statements: &str) -> Result<()> {
        let sql = sqlx::raw_sql(AssertSqlSafe(statements));
        match self.kind {
            Kind::Postgres => sql.execute(&mut PgConnection::connect(&self.url).await?).await.map(|_| ())?,
            Kind::Mariadb => {
                sql.execute(&mut MySqlConnection::connect(&self.url).await?).await.map(|_| ())?
            }
            Kind::Sqlite => {
                sql.execute(&mut SqliteConnection::connect(&self.url).await?).await.map(|_| ())?
            }
        }
        Ok(())
    }

    /// A question that is asked again and again.
    pub(crate) async fn question(&self, query: &str) -> Result<Question> {
        let connection = match self.kind {
            Kind::Postgres => Asked::Postgres(PgConnection::connect(&self.url).await?),
            Kind::Mariadb => Asked::Mariadb(MySqlConnection::connect(&self.url).await?),
            Kind::Sqlite => Asked::Sqlite(SqliteConnection::connect(&self.url).await?),
        };
        Ok(Question { connection, query: query.to_owned() })
    }

    pub(crate) async fn number(&self, query: &str) -> Result<f64> {
        self.question(query).await?.ask().await
    }

    /// Everything that is due to be written is, so that it does not fall into a measurement.
    pub(crate) async fn settle_down(&self) -> Result<()> {
        match self.kind {
            Kind::Postgres => {
                // The peers' tables come vacuumed; so does everybody's.
                self.run("VACUUM ANALYZE").await?;
                self.run("CHECKPOINT").await
            }
            Kind::Mariadb => Ok(()),
            Kind::Sqlite => self.run("PRAGMA wal_checkpoint(TRUNCATE)").await,
        }
    }

    pub(crate) async fn counters(&self) -> Result<Counters> {
        if self.kind != Kind::Postgres {
            let none = f64::NAN;
            return Ok(Counters { statements: none, transactions: none, wal_bytes: none, cpu: none });
        }
        let here = "(SELECT oid FROM pg_database WHERE datname = current_database())";
        // Nested calls are not counted, ours are all on top.
        let statements =
            format!("SELECT coalesce(sum(calls), 0)::float8 FROM pg_stat_statements WHERE dbid = {here}");
        let transactions = "SELECT (xact_commit + xact_rollback)::float8 FROM pg_stat_database \
                            WHERE datname = current_database()";
        let wal = "SELECT (pg_current_wal_insert_lsn() - '0/0')::float8";
        Ok(Counters {
            statements: self.number(&statements).await?,
            transactions: self.number(transactions).await?,
            wal_bytes: self.number(wal).await?,
            cpu: cpu_seconds(
                self.number("SELECT split_part(pg_read_file('postmaster.pid'), E'\\n', 1)::bigint").await?
                    as u32,
                true,
            )?,
        })
    }
}

/// How long a process was on a processor so far, in seconds; with what its children were that have ended.
pub(crate) fn cpu_seconds(pid: u32, with_children: bool) -> Result<f64> {
    // Linux tells it to every program in hundredths of a second.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // After the name, which may hold spaces: utime is the 12th field, then stime, cutime, cstime.
    let (_, fields) = stat.rsplit_once(')').ok_or("not a stat")?;
    let fields = fields.split_whitespace().skip(11).take(if with_children { 4 } else { 2 });
    let ticks: std::result::Result<Vec<f64>, _> = fields.map(str::parse).collect();
    Ok(ticks?.iter().sum::<f64>() / TICKS)
}

#[derive(Debug)]
enum Asked {
    Postgres(PgConnection),
    Mariadb(MySqlConnection),
    Sqlite(SqliteConnection),
}

/// A query for one number, on a connection of its own.
#[derive(Debug)]
pub(crate) struct Question {
    connection: Asked,
    query: String,
}

impl Question {
    pub(crate) async fn ask(&mut self) -> Result<f64> {
        let query = AssertSqlSafe(self.query.as_str());
        Ok(match &mut self.connection {
            Asked::Postgres(connection) => {
                let row = sqlx::query(query).fetch_one(connection).await?;
                number(&row)?
            }
            Asked::Mariadb(connection) => {
                sqlx::query_scalar::<_, i64>(query).fetch_one(connection).await? as f64
            }
            Asked::Sqlite(connection) => {
                sqlx::query_scalar::<_, i64>(query).fetch_one(connection).await? as f64
            }
        })
    }
}

fn number(row: &sqlx::postgres::PgRow) -> Result<f64> {
    use sqlx::Row;
    Ok(match row.try_get::<f64, _>(0) {
        Ok(number) => number,
        Err(_) => row.try_get::<i64, _>(0)? as f64,
    })
}
