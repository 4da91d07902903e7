//! Receiving: a delivery and its event are stored in one transaction, or neither is.

use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use outbox::{Event, Outbox};
use serde::Deserialize;
use serde_json::value::RawValue;
use sqlx::Transaction;
use webhook_events::*;

use crate::Db;

#[derive(Deserialize)]
struct Line {
    event: String,
    payload: Box<RawValue>,
}

pub(crate) async fn create_table(outbox: &Outbox<Db>) -> Result<(), sqlx::Error> {
    sqlx::query(
        "CREATE TABLE IF NOT EXISTS deliveries (id TEXT PRIMARY KEY, kind TEXT NOT NULL, body TEXT NOT NULL)",
    )
    .execute(outbox.pool())
    .await?;
    Ok(())
}

pub(crate) async fn ingest(outbox: &Outbox<Db>, file: &Path) -> Result<(), Box<dyn Error>> {
    let (mut stored, mut known) = (0, 0);
    for (number, line) in BufReader::new(File::open(file)?).lines().enumerate() {
        let line: Line = serde_json::from_str(&line?)?;
        let id = format!("{:04}-{}", number + 1, line.event);
        match receive(outbox, &id, &line).await? {
            true => stored += 1,
            false => known += 1,
        }
    }
    println!("stored {stored} deliveries, {known} were there already");
    Ok(())
}

/// Stores one delivery with its event. A delivery that is sent again is stored once.
async fn receive(outbox: &Outbox<Db>, id: &str, line: &Line) -> Result<bool, Box<dyn Error>> {
    let mut tx = outbox.begin().await?;
    let inserted =
        sqlx::query("INSERT INTO deliveries (id, kind, body) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
            .bind(id)
            .bind(&line.event)
            .bind(line.payload.get())
            .execute(&mut *tx)
            .await?;
    if inserted.rows_affected() == 0 {
        return Ok(false);
    }
    enqueue(&mut tx, id, line).await?;
    outbox.commit(tx).await?;
    Ok(true)
}

async fn enqueue(tx: &mut Transaction<'_, Db>, id: &str, line: &Line) -> Result<(), Box<dyn Error>> {
    let body = line.payload.get();
    match line.event.as_str() {
        "check_run" => enqueue_as::<CheckRunEvent>(tx, id, body).await,
        "create" => enqueue_as::<CreateEvent>(tx, id, body).await,
        "discussion" => enqueue_as::<DiscussionEvent>(tx, id, body).await,
        "issue_comment" => enqueue_as::<IssueCommentEvent>(tx, id, body).await,
        "issues" => enqueue_as::<IssuesEvent>(tx, id, body).await,
        "label" => enqueue_as::<LabelEvent>(tx, id, body).await,
        "pull_request" => enqueue_as::<PullRequestEvent>(tx, id, body).await,
        "push" => enqueue_as::<PushEvent>(tx, id, body).await,
        "release" => enqueue_as::<ReleaseEvent>(tx, id, body).await,
        "repository" => enqueue_as::<RepositoryEvent>(tx, id, body).await,
        "star" => enqueue_as::<StarEvent>(tx, id, body).await,
        "workflow_job" => enqueue_as::<WorkflowJobEvent>(tx, id, body).await,
        other => Err(format!("delivery {id}: no event for the kind `{other}`").into()),
    }
}

async fn enqueue_as<E: Event>(
    tx: &mut Transaction<'_, Db>,
    id: &str,
    body: &str,
) -> Result<(), Box<dyn Error>> {
    let event: E = serde_json::from_str(body).map_err(|error| format!("delivery {id}: {error}"))?;
    outbox::enqueue::<E>(tx, event).header("delivery", id).await?;
    Ok(())
}

pub(crate) async fn print_committed(outbox: &Outbox<Db>) -> Result<(), Box<dyn Error>> {
    let ids: Vec<String> =
        sqlx::query_scalar("SELECT id FROM deliveries ORDER BY id").fetch_all(outbox.pool()).await?;
    println!("{}", ids.join("\n"));
    Ok(())
}
