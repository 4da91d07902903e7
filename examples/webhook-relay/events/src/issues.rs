//! Issues, their comments and labels, and discussions.

use outbox::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Installation, Label, Milestone, Organization, Reactions, Repository, Summary, User, Was};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.issues")]
pub struct IssuesEvent {
    pub action: String,
    pub issue: Issue,
    pub assignee: Option<User>,
    pub label: Option<Label>,
    pub milestone: Option<Milestone>,
    pub changes: Option<IssueChanges>,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub installation: Option<Installation>,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Issue {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: Option<String>,
    pub user: User,
    pub labels: Option<Vec<Label>>,
    pub state: Option<String>,
    pub locked: Option<bool>,
    pub active_lock_reason: Option<String>,
    pub assignees: Vec<User>,
    pub milestone: Option<Milestone>,
    pub comments: u64,
    pub created_at: String,
    pub closed_at: Option<String>,
    pub reactions: Option<Reactions>,
    pub html_url: String,
}

/// Where a transferred issue came from or went to.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IssueChanges {
    pub old_issue: Option<Box<Issue>>,
    pub old_repository: Option<Repository>,
    pub new_issue: Option<Box<Issue>>,
    pub new_repository: Option<Repository>,
}

impl Summary for IssuesEvent {
    fn summary(&self) -> String {
        let Self { action, issue, repository, sender, .. } = self;
        let what = match (&self.assignee, &self.label, &self.milestone) {
            (Some(assignee), ..) => format!(" ({})", assignee.login),
            (_, Some(label), _) => format!(" ({})", label.name),
            (.., Some(milestone)) => format!(" ({})", milestone.title),
            _ => String::new(),
        };
        format!("{} {action} {}#{}{what}: {}", sender.login, repository.full_name, issue.number, issue.title)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.issue_comment")]
pub struct IssueCommentEvent {
    pub action: String,
    pub issue: Issue,
    pub comment: Comment,
    pub changes: Option<CommentChanges>,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Comment {
    pub id: u64,
    pub user: User,
    pub body: String,
    pub author_association: String,
    pub created_at: String,
    pub reactions: Option<Reactions>,
    pub html_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CommentChanges {
    pub body: Option<Was<String>>,
}

impl Summary for IssueCommentEvent {
    fn summary(&self) -> String {
        let Self { action, issue, comment, repository, sender, .. } = self;
        format!(
            "{} {action} a comment on {}#{}: {}",
            sender.login, repository.full_name, issue.number, comment.body
        )
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.label")]
pub struct LabelEvent {
    pub action: String,
    pub label: Label,
    pub changes: Option<LabelChanges>,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LabelChanges {
    pub name: Option<Was<String>>,
    pub color: Option<Was<String>>,
}

impl Summary for LabelEvent {
    fn summary(&self) -> String {
        let Self { action, label, repository, sender, .. } = self;
        format!("{} {action} the label {} in {}", sender.login, label.name, repository.full_name)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.discussion")]
pub struct DiscussionEvent {
    pub action: String,
    pub discussion: Discussion,
    pub answer: Option<Answer>,
    pub label: Option<Label>,
    pub changes: Option<DiscussionChanges>,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Discussion {
    pub id: u64,
    pub number: u64,
    pub title: String,
    pub body: String,
    pub user: User,
    pub category: Category,
    pub state: String,
    pub answer_chosen_by: Option<User>,
    pub active_lock_reason: Option<String>,
    pub reactions: Option<Reactions>,
    pub html_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Category {
    pub id: u64,
    pub name: String,
    pub emoji: String,
    pub is_answerable: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Answer {
    pub id: u64,
    pub user: User,
    pub body: String,
    pub parent_id: Option<u64>,
    pub child_comment_count: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DiscussionChanges {
    pub title: Option<Was<String>>,
    pub category: Option<Was<Category>>,
    pub new_repository: Option<Repository>,
}

impl Summary for DiscussionEvent {
    fn summary(&self) -> String {
        let Self {
            action, discussion: Discussion { number, title, category, .. }, repository, sender, ..
        } = self;
        format!("{} {action} {}#{number} in {}: {title}", sender.login, repository.full_name, category.name)
    }
}
