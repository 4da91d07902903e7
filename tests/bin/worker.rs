//! A worker process for the tests that kill it: `test-worker <handlers> <log> [lease in ms] [listen]`, on `DATABASE_URL`.
//! With `listen` it hardly polls. Each run of a handler is one line in the log, written at once.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use outbox::{Backoff, Context, HandlerResult, Registry, State, outbox_handler};
use outbox_tests::events::{Left, Order, Right};

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

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let mut arguments = std::env::args().skip(1);
    let handlers = arguments.next().ok_or("which handlers?")?;
    let log = arguments.next().ok_or("which log?")?;
    let lease: u64 = arguments.next().as_deref().unwrap_or("60000").parse()?;
    let log = OpenOptions::new().append(true).create(true).open(log)?;
    let registry = Registry::linked().retain(|def| handlers == "all" || def.event_type() == handlers);
    let mut run =
        outbox::run().registry(registry).state(Log(Arc::new(log))).lease(Duration::from_millis(lease));
    if arguments.next().as_deref() == Some("listen") {
        run = run.listen().poll_interval(Duration::from_secs(3600));
    }
    run.await?;
    Ok(())
}
