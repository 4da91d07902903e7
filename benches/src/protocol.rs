//! The other side of a contestant's lines: what its process says.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::Result;

/// How many events were handled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Handled(Arc<AtomicU64>);

impl Handled {
    pub(crate) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

pub(crate) fn say(line: &str) -> Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "{line}")?;
    Ok(output.flush()?)
}

/// Says that it is ready, and waits for its turn.
pub(crate) async fn ready() -> Result<()> {
    say("ready")?;
    let line = tokio::task::spawn_blocking(|| -> std::io::Result<String> {
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        Ok(line)
    });
    match line.await??.trim() {
        "go" => Ok(()),
        other => Err(format!("expected go, got {other:?}").into()),
    }
}

/// Says how much was handled, whenever that has changed, until its input ends.
pub(crate) async fn report(handled: &Handled) -> Result<()> {
    let input =
        tokio::task::spawn_blocking(|| std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink()));
    let mut before = 0;
    while !input.is_finished() {
        let now = handled.get();
        if now != before {
            say(&format!("handled {now}"))?;
            before = now;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
