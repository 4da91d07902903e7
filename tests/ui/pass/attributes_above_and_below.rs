//! Other attributes stand above and below, and each does what it does on any function.
#![deny(warnings, missing_docs)]

use outbox::{HandlerResult, Registry, outbox_handler};

macro_rules! payloads {
    ($($name:ident)*) => {$(
        #[derive(Debug, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct $name {}
    )*};
}
payloads!(Above Below Both);

/// Instrumented before the handler is registered.
#[tracing::instrument(skip_all)]
#[outbox_handler("pass.above")]
async fn above(event: Above) -> HandlerResult {
    std::future::ready(event).await;
    Ok(())
}

/// Instrumented afterwards.
#[outbox_handler("pass.below")]
#[tracing::instrument(err)]
async fn below(event: Below) -> HandlerResult {
    std::future::ready(event).await;
    Ok(())
}

#[allow(clippy::unused_async)]
#[doc = "With lints on both sides."]
#[outbox_handler("pass.both")]
#[expect(unused_variables, reason = "to see that it is")]
#[inline]
#[must_use]
async fn both(#[allow(unused_mut)] mut event: Both) -> HandlerResult {
    Ok(())
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 3);
}
