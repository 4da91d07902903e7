//! A handler returns nothing, or a result with any error.
#![deny(warnings)]

use std::time::Duration;

use outbox::{HandlerError, HandlerResult, Registry, ResultExt, outbox_handler};

macro_rules! payloads {
    ($($name:ident)*) => {$(
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct $name {}
    )*};
}
payloads!(Nothing Unit Own Boxed Text Literal Anyhow Io Alias Directive Never);

#[outbox_handler("pass.nothing")]
async fn nothing(_: Nothing) {}

#[outbox_handler("pass.unit")]
async fn unit(_: Unit) -> () {}

#[derive(Debug)]
struct OwnError;

impl std::fmt::Display for OwnError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("own")
    }
}

impl std::error::Error for OwnError {}

#[outbox_handler("pass.own")]
async fn own(_: Own) -> Result<(), OwnError> {
    Err(OwnError)
}

#[outbox_handler("pass.boxed")]
async fn boxed(_: Boxed) -> HandlerResult {
    Ok(own(Own {}).await?)
}

#[outbox_handler("pass.text")]
async fn text(_: Text) -> Result<(), String> {
    Err(String::new())
}

#[outbox_handler("pass.literal")]
async fn literal(_: Literal) -> Result<(), &'static str> {
    Err("no")
}

#[outbox_handler("pass.anyhow")]
async fn anyhow(_: Anyhow) -> anyhow::Result<()> {
    anyhow::bail!("no")
}

#[outbox_handler("pass.io")]
async fn io(_: Io) -> std::io::Result<()> {
    std::future::ready(Ok(())).await
}

type Outcome<T = (), E = HandlerError> = Result<T, E>;

#[outbox_handler("pass.alias")]
async fn alias(_: Alias) -> Outcome {
    own(Own {}).await.permanent()
}

#[outbox_handler("pass.directive")]
async fn directive(_: Directive) -> Result<(), HandlerError> {
    Err(HandlerError::snooze(Duration::from_secs(60)))
}

#[outbox_handler("pass.never")]
async fn never(_: Never) -> Result<(), std::convert::Infallible> {
    Ok(())
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 11);
}
