//! After the payload, extractors in any order and number: the library's, and one's own.
#![deny(warnings)]

use std::sync::Arc;

use outbox::{Context, Delivery, ExtractError, FromDelivery, Registry, Requirements, State, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {}

#[derive(Clone)]
struct Client<T>(T);

struct Tenant(String);

impl FromDelivery for Tenant {
    fn requires(requirements: &mut Requirements<'_>) {
        requirements.state::<Client<u8>>();
    }

    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        let tenant = delivery.context().header("tenant");
        tenant.map(|tenant| Self(tenant.to_owned())).ok_or_else(|| ExtractError::new("no tenant"))
    }
}

/// Over any other.
struct Maybe<T>(Option<T>);

impl<T: FromDelivery> FromDelivery for Maybe<T> {
    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        Ok(Self(T::from_delivery(delivery).ok()))
    }
}

#[outbox_handler("pass.invoice")]
#[allow(clippy::too_many_arguments)]
async fn push(
    _event: Invoice,
    State(a): State<Client<u8>>,
    Maybe(b): Maybe<Tenant>,
    ctx: Context,
    c: State<Arc<dyn Fn(&str) -> bool + Send + Sync>>,
    State(d): State<fn(u8) -> bool>,
    _again: Context,
    Tenant(e): Tenant,
    outbox::State(f): outbox::State<(u8, [u8; 2])>,
) {
    assert!(b.is_none() && ctx.attempts() == 0 && c(&e) && d(a.0) && f.0 == 0);
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 1);
}
