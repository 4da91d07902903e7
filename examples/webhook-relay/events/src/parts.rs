//! What the payloads have in common.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct User {
    pub login: String,
    pub id: u64,
    #[serde(rename = "type")]
    pub kind: String,
    pub site_admin: bool,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Organization {
    pub login: String,
    pub id: u64,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Installation {
    pub id: u64,
    pub node_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Repository {
    pub id: u64,
    pub name: String,
    pub full_name: String,
    pub private: bool,
    pub owner: User,
    pub html_url: String,
    pub description: Option<String>,
    pub fork: bool,
    pub language: Option<String>,
    pub license: Option<License>,
    pub topics: Option<Vec<String>>,
    pub visibility: Option<String>,
    pub default_branch: String,
    pub stargazers_count: u64,
    pub open_issues_count: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct License {
    pub key: String,
    pub name: String,
    pub spdx_id: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    pub id: u64,
    pub name: String,
    pub color: String,
    pub default: bool,
    pub description: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Milestone {
    pub number: u64,
    pub title: String,
    pub description: Option<String>,
    pub creator: User,
    pub state: String,
    pub due_on: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Reactions {
    pub total_count: u64,
    #[serde(rename = "+1")]
    pub plus_one: u64,
    #[serde(rename = "-1")]
    pub minus_one: u64,
    pub heart: u64,
    pub rocket: u64,
}

/// The value that a field had before an edit.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Was<T> {
    pub from: T,
}
