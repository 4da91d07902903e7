//! Repositories: pushes, branches and tags, releases, stars and settings.

use outbox::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Organization, Reactions, Repository, Summary, User, Was};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.push", max_attempts = 20)]
pub struct PushEvent {
    #[serde(rename = "ref")]
    pub name: String,
    pub before: String,
    pub after: String,
    pub created: bool,
    pub deleted: bool,
    pub forced: bool,
    pub base_ref: Option<String>,
    pub commits: Vec<Commit>,
    pub head_commit: Option<Commit>,
    pub pusher: Author,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Commit {
    pub id: String,
    pub tree_id: String,
    pub message: String,
    pub timestamp: String,
    pub author: Author,
    pub committer: Author,
    pub added: Vec<String>,
    pub removed: Vec<String>,
    pub modified: Vec<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Author {
    pub name: String,
    pub email: Option<String>,
    pub username: Option<String>,
}

impl Summary for PushEvent {
    fn summary(&self) -> String {
        let Self { name, commits, head_commit, pusher, repository, .. } = self;
        let head = head_commit.as_ref().map_or("no new commit", |commit| commit.message.as_str());
        format!("{} pushed {} commits to {} {name}: {head}", pusher.name, commits.len(), repository.full_name)
    }
}

/// A branch or tag was created.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.create")]
pub struct CreateEvent {
    #[serde(rename = "ref")]
    pub name: String,
    pub ref_type: String,
    pub master_branch: String,
    pub description: Option<String>,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub sender: User,
}

impl Summary for CreateEvent {
    fn summary(&self) -> String {
        let Self { name, ref_type, repository, sender, .. } = self;
        format!("{} created the {ref_type} {name} in {}", sender.login, repository.full_name)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.release")]
pub struct ReleaseEvent {
    pub action: String,
    pub release: Release,
    pub changes: Option<ReleaseChanges>,
    pub repository: Repository,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Release {
    pub id: u64,
    pub tag_name: String,
    pub target_commitish: String,
    pub name: Option<String>,
    pub body: Option<String>,
    pub author: User,
    pub draft: bool,
    pub prerelease: bool,
    pub published_at: Option<String>,
    pub assets: Vec<Asset>,
    pub reactions: Option<Reactions>,
    pub html_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Asset {
    pub name: String,
    pub size: u64,
    pub browser_download_url: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReleaseChanges {
    pub name: Option<Was<String>>,
    pub body: Option<Was<String>>,
}

impl Summary for ReleaseEvent {
    fn summary(&self) -> String {
        let Self { action, release, repository, sender, .. } = self;
        format!("{} {action} the release {} of {}", sender.login, release.tag_name, repository.full_name)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.repository")]
pub struct RepositoryEvent {
    pub action: String,
    pub changes: Option<RepositoryChanges>,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RepositoryChanges {
    pub description: Option<Was<Option<String>>>,
    pub default_branch: Option<Was<String>>,
    pub repository: Option<Renamed>,
    pub owner: Option<Was<FormerOwner>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Renamed {
    pub name: Was<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FormerOwner {
    pub user: Option<User>,
    pub organization: Option<Organization>,
}

impl Summary for RepositoryEvent {
    fn summary(&self) -> String {
        let Self { action, changes, repository, sender, .. } = self;
        let before = changes.as_ref().and_then(|changes| changes.repository.as_ref());
        let before = before.map_or(String::new(), |renamed| format!(", once {}", renamed.name.from));
        format!("{} {action} the repository {}{before}", sender.login, repository.full_name)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.star", max_attempts = 3)]
pub struct StarEvent {
    pub action: String,
    /// Missing when the star was taken back.
    pub starred_at: Option<String>,
    pub repository: Repository,
    pub sender: User,
}

impl Summary for StarEvent {
    fn summary(&self) -> String {
        let Self { action, repository, sender, .. } = self;
        format!("{} {action} a star of {}", sender.login, repository.full_name)
    }
}
