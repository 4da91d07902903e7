//! The peers: programs of their own, built when they are measured, since what they depend on does not go together with
//! what we depend on.

use std::path::PathBuf;

use serde::Deserialize;
use tokio::process::Command;

use crate::Result;
use crate::child;
use crate::contestant::Contestant;

/// A peer, as its program says.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Peer {
    pub(crate) name: String,
    database: String,
    variants: Vec<String>,
    commands: Vec<String>,
    #[serde(skip)]
    program: PathBuf,
}

impl Peer {
    /// It in each of its configurations.
    pub(crate) fn contestants(&self) -> impl Iterator<Item = Contestant> {
        self.variants.iter().map(|variant| Contestant::new(self.program.clone(), &self.name, variant))
    }

    pub(crate) fn can(&self, command: &str) -> bool {
        self.commands.iter().any(|known| known == command)
    }
}

/// Builds the peers' program; those that run on this database.
pub(crate) async fn on(database: &str) -> Result<Vec<Peer>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("peers");
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--quiet"])
        .current_dir(&folder)
        // Not where this program was built, whose lock it may still hold.
        .env_remove("CARGO_TARGET_DIR")
        .status()
        .await?;
    if !built.success() {
        return Err("the peers do not build".into());
    }
    let program = folder.join("target/release/outbox-bench-peers");
    let mut list = Command::new(&program);
    list.arg("list");
    let peers: Vec<Peer> = serde_json::from_str(&child::run(list).await?)?;
    let here = peers.into_iter().filter(|peer| peer.database == database);
    Ok(here.map(|peer| Peer { program: program.clone(), ..peer }).collect())
}
