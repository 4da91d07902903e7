//! Names of the prelude, of the standard library and of the generated code mean something else here.
#![deny(warnings)]
#![allow(dead_code, non_camel_case_types, non_upper_case_globals)]

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Payload {}

mod shadowed {
    struct Result;
    struct Ok;
    struct Err;
    struct Some;
    struct None;
    struct Option;
    struct Box;
    struct Pin;
    struct String;
    struct Vec;
    struct Default;
    struct u32;
    struct u64;
    struct str;
    trait Send {}
    trait Sync {}
    trait Future {}
    trait From {}
    trait Into {}
    trait Event {}
    trait FromDelivery {}
    trait Drop {}
    mod std {}
    mod core {}
    mod alloc {}
    mod outbox {}
    mod inventory {}
    mod serde {}
    const delivery: () = ();
    const event: () = ();
    const result: () = ();
    const future: () = ();
    const argument_0: () = ();
    const requirements: () = ();
    const backoff: () = ();

    macro_rules! names {
        ($($name:ident)*) => { $(#[allow(unused_macros)] macro_rules! $name { () => { compile_error!("shadowed") } })* };
    }
    names!(concat module_path file line);

    const BACKOFF: ::outbox::Backoff = ::outbox::Backoff::fixed(::core::time::Duration::ZERO);

    #[::outbox::outbox_handler("pass.shadowed", max_attempts = 3, version = 2, timeout = "5s", backoff = BACKOFF)]
    async fn handle(_event: super::Payload, _ctx: ::outbox::Context, _own: super::Own) {}
}

pub struct Own;

impl outbox::FromDelivery for Own {
    fn from_delivery(_: &mut outbox::Delivery) -> Result<Self, outbox::ExtractError> {
        Ok(Self)
    }
}

/// Nor is the prelude needed.
mod without_prelude {
    #![no_implicit_prelude]

    #[::outbox::outbox_handler("pass.without_prelude", timeout = "5s")]
    async fn handle(_event: super::Other, _ctx: ::outbox::Context) {}
}

#[derive(Serialize, Deserialize, schemars::JsonSchema)]
pub struct Other {}

fn main() {
    assert_eq!(outbox::Registry::linked().handlers().len(), 2);
}
