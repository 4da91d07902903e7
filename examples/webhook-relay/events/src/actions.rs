//! Checks and workflow jobs.

use outbox::Event;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Installation, Organization, Repository, Summary, User};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.check_run")]
pub struct CheckRunEvent {
    pub action: String,
    pub check_run: CheckRun,
    pub requested_action: Option<RequestedAction>,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub installation: Option<Installation>,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckRun {
    pub id: u64,
    pub name: String,
    pub head_sha: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub started_at: String,
    pub completed_at: Option<String>,
    pub output: CheckOutput,
    pub check_suite: CheckSuite,
    pub app: App,
    pub pull_requests: Vec<PullRequestRef>,
    pub details_url: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckOutput {
    pub title: Option<String>,
    pub summary: Option<String>,
    pub text: Option<String>,
    pub annotations_count: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CheckSuite {
    pub id: u64,
    pub head_branch: Option<String>,
    pub head_sha: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub app: App,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct App {
    pub id: u64,
    pub slug: Option<String>,
    pub name: String,
    pub owner: User,
    pub events: Option<Vec<String>>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PullRequestRef {
    pub id: u64,
    pub number: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RequestedAction {
    pub identifier: String,
}

impl Summary for CheckRunEvent {
    fn summary(&self) -> String {
        let Self { action, check_run: CheckRun { name, status, conclusion, app, .. }, repository, .. } = self;
        let conclusion = conclusion.as_deref().unwrap_or(status);
        format!("{} {action} the check {name} of {}: {conclusion}", app.name, repository.full_name)
    }
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema, Event)]
#[event("github.workflow_job")]
pub struct WorkflowJobEvent {
    pub action: String,
    pub workflow_job: WorkflowJob,
    pub repository: Repository,
    pub organization: Option<Organization>,
    pub installation: Option<Installation>,
    pub sender: User,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkflowJob {
    pub id: u64,
    pub run_id: u64,
    pub run_attempt: Option<u64>,
    pub workflow_name: Option<String>,
    pub name: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub steps: Vec<Step>,
    pub labels: Vec<String>,
    pub runner_name: Option<String>,
    pub head_branch: Option<String>,
    pub head_sha: String,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    pub number: u64,
    pub name: String,
    pub status: String,
    pub conclusion: Option<String>,
    pub started_at: Option<String>,
    pub completed_at: Option<String>,
}

impl Summary for WorkflowJobEvent {
    fn summary(&self) -> String {
        let Self { workflow_job: job, repository, .. } = self;
        let done = job.steps.iter().filter(|step| step.status == "completed").count();
        let conclusion = job.conclusion.as_deref().unwrap_or(&job.status);
        format!(
            "the job {} of {}: {conclusion}, {done}/{} steps",
            job.name,
            repository.full_name,
            job.steps.len()
        )
    }
}
