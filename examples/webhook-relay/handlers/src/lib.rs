//! The handlers of the webhook relay: one for each kind of delivery, each with its own options.
//!
//! Nothing here is public. A program that is to handle these events says `use webhook_handlers as _;` and gives the
//! worker what `Relay` asks for.

mod relay;

use std::time::Duration;

use outbox::{Backoff, HandlerResult, outbox_handler};
use webhook_events::*;

use crate::relay::Relay;

/// A sink that hiccups is back soon; one that is down is spared.
const RETRY: Backoff = Backoff::exponential(Duration::from_millis(50), Duration::from_secs(60)).jitter(20);

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn issues(event: IssuesEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn issue_comment(event: IssueCommentEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn label(event: LabelEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn discussion(event: DiscussionEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "30s", concurrency = 4, backoff = RETRY)]
async fn pull_request(event: PullRequestEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "30s", concurrency = 2, backoff = RETRY)]
async fn push(event: PushEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn create(event: CreateEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn release(event: ReleaseEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", backoff = RETRY)]
async fn repository(event: RepositoryEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", concurrency = 1, backoff = RETRY)]
async fn star(event: StarEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", concurrency = 4, backoff = RETRY)]
async fn check_run(event: CheckRunEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}

#[outbox_handler(timeout = "10s", concurrency = 4, backoff = RETRY)]
async fn workflow_job(event: WorkflowJobEvent, relay: Relay) -> HandlerResult {
    relay.deliver(&event).await
}
