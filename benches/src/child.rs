//! Contestants run in processes of their own, which speak in lines: `ready`, then after `go` what they have done.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child as Process, ChildStdin, ChildStdout, Command};

use crate::Result;
use crate::server::cpu_seconds;

/// How long a contestant may say nothing at all.
const SILENCE: Duration = Duration::from_secs(300);

/// A process that is measured.
#[derive(Debug)]
pub(crate) struct Child {
    process: Process,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Child {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true).spawn()?;
        let input = process.stdin.take().ok_or("no input")?;
        let output = BufReader::new(process.stdout.take().ok_or("no output")?).lines();
        Ok(Self { process, input, output })
    }

    pub(crate) async fn say(&mut self, line: &str) -> Result<()> {
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(self.input.flush().await?)
    }

    pub(crate) async fn line(&mut self) -> Result<String> {
        let line = tokio::time::timeout(SILENCE, self.output.next_line()).await.map_err(|_| "silent")??;
        line.ok_or_else(|| "a contestant ended early".into())
    }

    /// Waits for a line that begins with this word; what follows the word.
    pub(crate) async fn expect(&mut self, word: &str) -> Result<String> {
        let line = self.line().await?;
        let rest = line.strip_prefix(word).ok_or_else(|| format!("expected {word}, got {line}"))?;
        Ok(rest.trim().to_owned())
    }

    /// Its resident memory in KiB: now, and at the most so far.
    pub(crate) fn memory(&self) -> Result<(f64, f64)> {
        let pid = self.process.id().ok_or("the process has ended")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
        let field = |name: &str| -> Result<f64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).ok_or("no such field")?;
            Ok(line.trim().trim_end_matches(" kB").parse()?)
        };
        Ok((field("VmRSS:")?, field("VmHWM:")?))
    }

    pub(crate) async fn kill(mut self) -> Result<()> {
        Ok(self.process.kill().await?)
    }

    /// Adds up what it says it has handled, while it runs.
    pub(crate) fn count_into(self, total: Arc<AtomicU64>) -> Counting {
        let Self { process, input, mut output } = self;
        let task = tokio::spawn(async move {
            let mut before = 0;
            while let Ok(Some(line)) = output.next_line().await {
                let Some(Ok(handled)) = line.strip_prefix("handled ").map(str::parse::<u64>) else {
                    continue;
                };
                total.fetch_add(handled - before, Ordering::Relaxed);
                before = handled;
            }
        });
        Counting { process, _input: input, task }
    }
}

/// A process whose progress is being added up.
#[derive(Debug)]
pub(crate) struct Counting {
    process: Process,
    _input: ChildStdin,
    task: tokio::task::JoinHandle<()>,
}

impl Counting {
    /// How long it was on a processor so far, in seconds.
    pub(crate) fn cpu(&self) -> Result<f64> {
        cpu_seconds(self.process.id().ok_or("the process has ended")?, false)
    }

    pub(crate) async fn kill(mut self) -> Result<()> {
        self.process.kill().await?;
        self.task.abort();
        Ok(())
    }
}

/// Runs a contestant's command to its end; what it printed.
pub(crate) async fn run(mut command: Command) -> Result<String> {
    let output = command.stderr(Stdio::inherit()).kill_on_drop(true).output().await?;
    if !output.status.success() {
        return Err(format!("{:?}: {}", command.as_std(), output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
