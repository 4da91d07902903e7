//! Pull requests.

use outbox::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Installation, Label, Milestone, Organization, Repository, Summary, User};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.pull_request", max_attempts = 20)]
pub struct PullRequestEvent {
    pub action: String,
    pub number: u64,
    pub pull_request: PullRequest,
    pub assignee: Option<User>,
    pub label: Option<Label>,
    pub requested_reviewer: Option<User>,
    pub before: Option<String>,
    pub after: Option<String>,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub installation: Option<Installation>,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PullRequest {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    pub user: User,
    pub state: String,
    pub draft: bool,
    pub merged: bool,
    /// Unknown while GitHub is still trying it.
    pub mergeable: Option<bool>,
    pub merge_commit_sha: Option<String>,
    pub merged_at: Option<String>,
    pub merged_by: Option<User>,
    pub closed_at: Option<String>,
    pub assignees: Vec<User>,
    pub requested_reviewers: Vec<User>,
    pub labels: Vec<Label>,
    pub milestone: Option<Milestone>,
    pub head: Branch,
    pub base: Branch,
    pub commits: u64,
    pub additions: u64,
    pub deletions: u64,
    pub changed_files: u64,
    pub html_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Branch {
    pub label: String,
    #[serde(rename = "ref")]
    pub name: String,
    pub sha: String,
    pub user: User,
    /// Gone when the fork was deleted.
    pub repo: Option<Repository>,
}

impl Summary for PullRequestEvent {
    fn summary(&self) -> String {
        let Self { action, number, pull_request: pull, repository, sender, .. } = self;
        format!(
            "{} {action} {}#{number} (+{} -{}): {}",
            sender.login, repository.full_name, pull.additions, pull.deletions, pull.title
        )
    }
}
