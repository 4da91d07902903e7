//! Real deliveries decode into the payload types, and come back equal from the JSON that an outbox stores.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use webhook_events::*;

const DELIVERIES: &str = include_str!("../../data/deliveries.jsonl");

#[test]
fn every_delivery_decodes() {
    let decoded = [
        decode::<CheckRunEvent>("check_run"),
        decode::<CreateEvent>("create"),
        decode::<DiscussionEvent>("discussion"),
        decode::<IssueCommentEvent>("issue_comment"),
        decode::<IssuesEvent>("issues"),
        decode::<LabelEvent>("label"),
        decode::<PullRequestEvent>("pull_request"),
        decode::<PushEvent>("push"),
        decode::<ReleaseEvent>("release"),
        decode::<RepositoryEvent>("repository"),
        decode::<StarEvent>("star"),
        decode::<WorkflowJobEvent>("workflow_job"),
    ];
    assert_eq!(decoded.iter().sum::<usize>(), DELIVERIES.lines().count());
}

/// Decodes the deliveries of one kind, and says how many there were.
fn decode<E: Serialize + DeserializeOwned + Summary>(kind: &str) -> usize {
    let lines = DELIVERIES.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON"));
    lines
        .filter(|line| line["event"] == kind)
        .map(|line| {
            let event: E = serde_json::from_value(line["payload"].clone())
                .unwrap_or_else(|error| panic!("{kind}: {error}\n{line}"));
            let stored = serde_json::to_string(&event).expect("encodes");
            let back: E = serde_json::from_str(&stored).expect("decodes again");
            assert_eq!(serde_json::to_string(&back).expect("encodes"), stored);
            println!("{}", event.summary());
        })
        .count()
}
