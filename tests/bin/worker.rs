//! A worker process for the tests that kill it: `test-worker <handlers> <log> [lease in ms] [listen]`, on `DATABASE_URL`.
//! With `listen` it hardly polls. Each run of a handler is one line in the log, written at once.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use outbox::{Backoff, Context, HandlerResult, Registry, State, Tx, outbox_handler};
use outbox_tests::events::{Left, MyTransfer, Order, PgTransfer, Right, Transfer};
use outbox_tests::ledger::Ledger;
use sqlx::{MySql, Postgres, Sqlite};

#[derive(Clone)]
struct Log(Arc<File>);

impl Log {
    fn line(&self, n: u32, ctx: &Context) -> HandlerResult {
        let line = format!("{n} {} {}\n", ctx.attempts(), ctx.crashes());
        // One write of a line to a file that is open for appending is whole, whoever else writes there.
        Ok((&*self.0).write_all(line.as_bytes())?)
    }
}

#[outbox_handler(backoff = Backoff::fixed(Duration::from_millis(50)))]
async fn order(order: Order, ctx: Context, State(log): State<Log>) -> HandlerResult {
    log.line(order.n, &ctx)?;
    if order.aborts {
        std::process::abort();
    }
    tokio::time::sleep(Duration::from_millis(u64::from(order.takes_ms))).await;
    Ok(())
}

#[outbox_handler]
async fn left(left: Left, ctx: Context, State(log): State<Log>) -> HandlerResult {
    log.line(left.n, &ctx)
}

#[outbox_handler]
async fn right(right: Right, ctx: Context, State(log): State<Log>) -> HandlerResult {
    log.line(right.n, &ctx)
}

/// Books a transfer between two accounts, and dies now and then: in the middle of it, or as soon as it is over.
async fn book<DB: Ledger>(transfer: &Transfer, ctx: &Context, mut tx: Tx<DB>) -> HandlerResult {
    let dies = fastrand::u8(0..100);
    DB::add(&mut tx, transfer.from, -transfer.cents).await?;
    if dies < 3 {
        std::process::abort();
    }
    DB::add(&mut tx, transfer.to, transfer.cents).await?;
    DB::note(&mut tx, ctx.event_id()).await?;
    if dies < 6 {
        // At about the time of the commit: before, inside, or after it.
        std::thread::spawn(|| {
            std::thread::sleep(Duration::from_micros(fastrand::u64(0..3_000)));
            std::process::abort();
        });
    }
    Ok(())
}

#[outbox_handler(timeout = "700ms", backoff = Backoff::fixed(Duration::ZERO))]
async fn transfer_on_sqlite(transfer: Transfer, ctx: Context, tx: Tx<Sqlite>) -> HandlerResult {
    book(&transfer, &ctx, tx).await
}

#[outbox_handler(timeout = "700ms", backoff = Backoff::fixed(Duration::ZERO))]
async fn transfer_on_postgres(transfer: PgTransfer, ctx: Context, tx: Tx<Postgres>) -> HandlerResult {
    book(&transfer.0, &ctx, tx).await
}

#[outbox_handler(timeout = "700ms", backoff = Backoff::fixed(Duration::ZERO))]
async fn transfer_on_mysql(transfer: MyTransfer, ctx: Context, tx: Tx<MySql>) -> HandlerResult {
    book(&transfer.0, &ctx, tx).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let mut arguments = std::env::args().skip(1);
    let handlers = arguments.next().ok_or("which handlers?")?;
    let log = arguments.next().ok_or("which log?")?;
    let lease: u64 = arguments.next().as_deref().unwrap_or("60000").parse()?;
    let log = OpenOptions::new().append(true).create(true).open(log)?;
    let is_wanted =
        |name: &str| if handlers == "all" { !name.starts_with("test.transfer") } else { name == handlers };
    let registry = Registry::linked().retain(|def| is_wanted(def.event_type()));
    let mut run =
        outbox::run().registry(registry).state(Log(Arc::new(log))).lease(Duration::from_millis(lease));
    if arguments.next().as_deref() == Some("listen") {
        run = run.listen().poll_interval(Duration::from_secs(3600));
    }
    run.await?;
    Ok(())
}
