//! What the processes say to each other: lines on stdin and stdout.

use std::io::{BufRead, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// The error of anything that goes wrong here: it ends the process.
pub type Error = Box<dyn std::error::Error + Send + Sync>;
/// The result of everything here.
pub type Result<T = ()> = std::result::Result<T, Error>;

/// The payload of every event, about 65 bytes of JSON.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Invoice {
    /// The number of the event.
    pub invoice: u64,
    customer: String,
    cents: i64,
    currency: String,
}

impl Invoice {
    /// The payload with that number.
    pub fn new(invoice: u64) -> Self {
        Self { invoice, customer: format!("cus_{invoice:08}"), cents: 1999, currency: "EUR".into() }
    }

    /// That many payloads, in chunks.
    pub fn chunks(events: u64, size: u64) -> impl Iterator<Item = Vec<Self>> {
        (0..events)
            .step_by(size as usize)
            .map(move |start| (start..events.min(start + size)).map(Self::new).collect())
    }
}

/// The same payload in SQL of PostgreSQL, as text, of the number `i`.
pub const INVOICE_SQL: &str =
    r#"format('{"invoice":%s,"customer":"cus_%s","cents":1999,"currency":"EUR"}', i, lpad(i::text, 8, '0'))"#;

static HANDLED: AtomicU64 = AtomicU64::new(0);

/// What every handler does, and nothing else.
pub fn handled() {
    HANDLED.fetch_add(1, Ordering::Relaxed);
}

fn say(line: std::fmt::Arguments<'_>) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone wants no answer.
    if writeln!(out, "{line}").and_then(|()| out.flush()).is_err() {
        std::process::exit(0);
    }
}

/// Says that all is prepared and waits for the start.
pub fn go() {
    say(format_args!("ready"));
    for line in std::io::stdin().lock().lines() {
        if line.is_ok_and(|line| line.trim() == "go") {
            return;
        }
    }
    std::process::exit(0);
}

/// Waits for the start; from then on says how many are handled, and ends the process when stdin is closed.
pub fn go_and_count() {
    go();
    std::thread::spawn(|| {
        let mut said = 0;
        loop {
            let count = HANDLED.load(Ordering::Relaxed);
            if count != said {
                said = count;
                say(format_args!("handled {count}"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    });
    std::thread::spawn(|| {
        while std::io::stdin().lock().read_line(&mut String::new()).is_ok_and(|read| read > 0) {}
        std::process::exit(0);
    });
}

/// Says what was stored since then.
pub fn enqueued(count: u64, since: Instant) {
    say(format_args!("enqueued {count} {:.6}", since.elapsed().as_secs_f64()));
}

/// Waits for the start, then lets that many tasks store one event after another for that time.
pub async fn write_for<F, W>(writers: u32, time: Duration, one: F) -> Result
where
    F: Fn(Invoice) -> W + Clone + Send + 'static,
    W: Future<Output = Result> + Send,
{
    go();
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for writer in 0..u64::from(writers) {
        let one = one.clone();
        tasks.spawn(async move {
            let mut count = 0;
            while start.elapsed() < time {
                one(Invoice::new(writer * 10_000_000 + count)).await?;
                count += 1;
            }
            Result::Ok(count)
        });
    }
    let mut count = 0;
    while let Some(task) = tasks.join_next().await {
        count += task??;
    }
    enqueued(count, start);
    Ok(())
}

/// A line of JSON about the peers.
pub fn list(peers: &[crate::Info]) -> Result {
    say(format_args!("{}", serde_json::to_string(peers)?));
    Ok(())
}

/// An SQL query as an answer.
pub fn query(sql: &str) {
    say(format_args!("{sql}"));
}
