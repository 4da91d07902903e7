//! A parameter is any pattern.
#![deny(warnings)]

use outbox::{Context, Registry, State, outbox_handler};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! payloads {
    ($($name:ident)*) => {$(
        #[derive(Serialize, Deserialize, JsonSchema)]
        struct $name {
            a: u32,
            b: (String, [u8; 2]),
        }
    )*};
}
payloads!(Fields Nested Mutable Ignored Bound);

#[outbox_handler("pass.fields")]
async fn fields(Fields { a, b }: Fields) {
    assert!(a == 0 || b.0.is_empty());
}

#[outbox_handler("pass.nested")]
async fn nested(self::Nested { b: (mut text, [first, ..]), .. }: Nested, State((x, y)): State<(u8, u8)>) {
    text.clear();
    assert!(text.is_empty() && first == 0 && x == y);
}

#[outbox_handler("pass.mutable")]
async fn mutable(mut event: Mutable, mut ctx: Context, mut state: State<Vec<u8>>) {
    event.a += 1;
    ctx = ctx.clone();
    state.push(1);
    assert!(event.a > 0 && event.b.1.is_empty() && ctx.attempts() == 0);
}

#[outbox_handler("pass.ignored")]
async fn ignored(_: Ignored, _: Context, State(_): State<u8>) {}

#[outbox_handler("pass.bound")]
async fn bound(ref event @ Bound { ref a, .. }: Bound) {
    assert_eq!(event.a, *a);
}

fn main() {
    assert_eq!(Registry::linked().handlers().len(), 5);
}
