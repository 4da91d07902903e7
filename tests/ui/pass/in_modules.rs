//! In modules, private ones too, and with every visibility.
#![deny(warnings)]

use outbox::Registry;

mod billing {
    pub(crate) mod r#mod {
        use outbox::outbox_handler;

        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub(in crate::billing) struct Invoice {}

        #[outbox_handler("pass.invoice")]
        pub(in crate::billing) async fn push(_event: Invoice) {}
    }

    mod private {
        #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        struct Refund {}

        #[outbox::outbox_handler("pass.refund")]
        async fn refund(_event: Refund) {}
    }

    #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
    pub(crate) struct Receipt {}

    #[outbox::outbox_handler("pass.receipt")]
    pub(crate) async fn send(_event: Receipt) {}

    pub(crate) fn functions() {
        drop((r#mod::push(r#mod::Invoice {}), send(Receipt {})));
    }
}

fn main() {
    billing::functions();
    let names: Vec<String> =
        Registry::linked().handlers().iter().map(|def| def.name().replace("::r#", "::")).collect();
    assert!(names[0].ends_with("::billing::mod::push"), "{names:?}");
    assert!(names[1].ends_with("::billing::send"), "{names:?}");
    assert!(names[2].ends_with("::billing::private::refund"), "{names:?}");
}
