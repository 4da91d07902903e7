//! An extractor of our own: what every handler here needs, in one argument.

use outbox::{
    Context, Delivery, Event, ExtractError, FromDelivery, HandlerResult, Requirements, ResultExt, State,
};
use reqwest::{Client, StatusCode, Url};
use serde::Serialize;
use webhook_events::Summary;

/// The way to the sink, for the event that the handler runs for.
#[derive(Debug)]
pub(crate) struct Relay {
    ctx: Context,
    http: Client,
    sink: Url,
}

impl FromDelivery for Relay {
    // Asked once at start: a worker without a client or a sink's address does not start.
    fn requires(requirements: &mut Requirements<'_>) {
        State::<Client>::requires(requirements);
        State::<Url>::requires(requirements);
    }

    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        let ctx = Context::from_delivery(delivery)?;
        let State(http) = State::from_delivery(delivery)?;
        let State(sink) = State::from_delivery(delivery)?;
        Ok(Self { ctx, http, sink })
    }
}

/// What the sink gets.
#[derive(Serialize)]
struct Message<'a, E> {
    delivery: &'a str,
    kind: &'a str,
    attempt: u32,
    summary: String,
    payload: &'a E,
}

impl Relay {
    pub(crate) async fn deliver<E: Event + Summary>(&self, event: &E) -> HandlerResult {
        let message = Message {
            delivery: self.ctx.header("delivery").ok_or("the event has no header `delivery`").permanent()?,
            kind: self.ctx.event_type(),
            attempt: self.ctx.attempts() + 1,
            summary: event.summary(),
            payload: event,
        };
        let request = self.http.post(self.sink.clone()).header("idempotency-key", self.ctx.idempotency_key());
        let response = request.json(&message).send().await?;
        match response.status() {
            // A sink that cannot read this message will not learn it by the next attempt.
            StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
                response.error_for_status().permanent()?
            }
            _ => response.error_for_status()?,
        };
        Ok(())
    }
}
