//! Keywords as names of everything.
#![deny(warnings)]
#![allow(non_camel_case_types)]

use outbox::{Registry, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct r#struct {
    r#type: u32,
}

mod r#mod {
    pub(crate) use outbox as r#extern;
}

#[outbox_handler("pass.raw", crate = crate::r#mod::r#extern)]
async fn r#async(r#fn: r#struct, r#in: outbox::Context) {
    drop((r#fn.r#type, r#in));
}

fn main() {
    assert!(matches!(Registry::linked().handlers(), [def] if def.name().ends_with("::async")));
}
