//! Handlers in every shape that an ordinary function has: what the registry then holds of them.
#![deny(warnings, missing_docs, unreachable_pub)]

use outbox::{
    Backoff, Context, Event, ExtractError, FromDelivery, HandlerResult, Registry, State, outbox_handler,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;

macro_rules! payloads {
    ($($name:ident),*) => {
        $(#[derive(Serialize, Deserialize, JsonSchema)]
        struct $name {
            #[allow(dead_code)]
            n: u32,
        })*
    };
}

payloads!(Plain, Every, Pattern, Unit, Text, Raw, Inner, Own, Generated, Compiled, Shadowed, Borrowing);

#[outbox_handler("shapes.plain")]
async fn plain(_event: Plain) -> HandlerResult {
    Ok(())
}

/// With every option, and docs.
#[outbox_handler(
    "shapes.every-option_1",
    version = 3,
    max_attempts = 7,
    timeout = "1h30m",
    concurrency = 4,
    backoff = Backoff::exponential(Duration::from_secs(1), Duration::from_secs(60)).jitter(10),
)]
#[allow(clippy::unused_async)]
async fn every_option(_event: Every, _ctx: Context, State(_name): State<String>) -> HandlerResult {
    Ok(())
}

#[outbox_handler("shapes.pattern")]
async fn pattern(Pattern { n: _, .. }: Pattern, mut own: Own2) -> Result<(), std::io::Error> {
    own.0 += 1;
    if own.0 == 0 { Err(std::io::Error::other("no payload")) } else { Ok(()) }
}

#[outbox_handler("shapes.unit")]
async fn unit(event: Unit) {
    assert!(event.n < u32::MAX);
}

#[outbox_handler("shapes.text")]
async fn text(_: Text) -> Result<(), String> {
    Err("a string is an error".to_owned())
}

#[outbox_handler("shapes.raw")]
async fn r#async(r#type: Raw) -> HandlerResult {
    assert!(r#type.n < u32::MAX);
    Ok(())
}

mod inner {
    #[outbox::outbox_handler("shapes.inner")]
    pub(super) async fn handle(_event: super::Inner) -> outbox::HandlerResult {
        Ok(())
    }
}

/// An extractor of one's own.
struct Own2(u32);

impl FromDelivery for Own2 {
    fn from_delivery(delivery: &mut outbox::Delivery) -> Result<Self, ExtractError> {
        u32::try_from(delivery.raw_payload().len()).map(Self).map_err(ExtractError::new)
    }
}

/// One with a lifetime.
struct Labelled<'a>(std::borrow::Cow<'a, str>);

impl FromDelivery for Labelled<'_> {
    fn from_delivery(_: &mut outbox::Delivery) -> Result<Self, ExtractError> {
        Ok(Self("label".into()))
    }
}

#[outbox_handler("shapes.borrowing")]
async fn borrowing(_event: Borrowing, label: Labelled<'_>) -> HandlerResult {
    if label.0.is_empty() { Err("no label".into()) } else { Ok(()) }
}

macro_rules! handler {
    ($function:ident, $payload:ty, $name:literal) => {
        #[outbox_handler($name)]
        async fn $function(_event: $payload) -> HandlerResult {
            Ok(())
        }
    };
}

handler!(generated, Generated, "shapes.generated");

#[outbox_handler("shapes.compiled")]
#[cfg(not(test))]
async fn compiled(_event: Compiled) -> HandlerResult {
    Ok(())
}

#[outbox_handler("shapes.compiled")]
#[cfg(test)]
async fn compiled(_event: Compiled) -> HandlerResult {
    Ok(())
}

mod shadowed {
    #![allow(dead_code, non_camel_case_types, clippy::upper_case_acronyms)]
    struct Result;
    struct Ok;
    struct Box;
    struct Send;
    struct Some;
    mod std {}
    mod core {}
    mod outbox {}

    #[::outbox::outbox_handler("shapes.shadowed", timeout = "5s")]
    async fn handle(_event: super::Shadowed, _ctx: ::outbox::Context) {}
}

/// Named by the derive, in any shape.
#[derive(Serialize, Deserialize, JsonSchema, Event)]
#[event("shapes.derived", version = 2, max_attempts = 4)]
enum Derived {
    #[allow(dead_code)]
    One,
    #[allow(dead_code)]
    Two { n: u32 },
}

#[outbox_handler(concurrency = 1)]
async fn derived(_event: Derived) -> HandlerResult {
    Ok(())
}

/// Led here from older versions and names, by functions of any path, and not linked by itself.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Led {
    n: u64,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct LedV1(String);

#[derive(Serialize, Deserialize, JsonSchema)]
struct Boxed<T>(T);

impl LedV1 {
    fn parse(self) -> Result<Boxed<u32>, std::num::ParseIntError> {
        self.0.parse().map(Boxed)
    }
}

fn unbox<T: Into<u64>, const PLUS: u64>(old: Boxed<T>) -> Led {
    Led { n: old.0.into() + PLUS }
}

#[outbox_handler(
    "shapes.led",
    version = 3,
    upcast(1 => LedV1::parse, 2 => crate::shapes::unbox::<u32, 1>),
    aliases("shapes.followed", "shapes.pulled"),
    register = false
)]
async fn led(_event: Led) {}

use ::outbox as renamed;

#[outbox_handler("shapes.own", crate = self::renamed)]
async fn own_path(_event: Own) -> HandlerResult {
    Ok(())
}

#[tokio::test]
async fn every_shape_is_registered_where_it_stands() {
    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Local {}

    #[outbox_handler("shapes.local")]
    async fn local(_event: Local) -> HandlerResult {
        Ok(())
    }

    let registry = Registry::linked();
    let mut names: Vec<&str> = registry.handlers().iter().map(|def| def.event_type()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "shapes.borrowing",
            "shapes.compiled",
            "shapes.derived",
            "shapes.every-option_1",
            "shapes.generated",
            "shapes.inner",
            "shapes.local",
            "shapes.own",
            "shapes.pattern",
            "shapes.plain",
            "shapes.raw",
            "shapes.shadowed",
            "shapes.text",
            "shapes.unit",
        ]
    );
    let of = |name: &str| {
        registry.handlers().iter().find(|def| def.event_type() == name).cloned().expect("it is there")
    };
    let every = of("shapes.every-option_1");
    let line = include_str!("shapes.rs")
        .lines()
        .position(|line| line.contains("async fn every_option"))
        .expect("here")
        + 1;
    assert_eq!(every.place(), format!("{}:{line}", file!()));
    assert_eq!((every.name(), every.version()), ("ui::shapes::every_option", 3));
    let options = format!("{every:?}");
    assert!(
        options.contains("timeout: Some(5400s)") && options.contains("concurrency: Some(4)"),
        "{options}"
    );
    assert!(options.contains("max: 60s") && options.contains("jitter_percent: 10"), "{options}");
    assert_eq!((Every::MAX_ATTEMPTS, Every::VERSION, Every::EVENT_TYPE), (7, 3, "shapes.every-option_1"));
    assert_eq!((Derived::MAX_ATTEMPTS, Derived::VERSION), (4, 2));
    assert_eq!((Plain::MAX_ATTEMPTS, Plain::VERSION), (10, 1));
    assert_eq!(of("shapes.raw").name(), "ui::shapes::async");
    assert!(every.payload_schema().to_value()["properties"]["n"].is_object());
    // Handlers stay ordinary functions.
    assert!(plain(Plain { n: 1 }).await.is_ok());
    assert!(text(Text { n: 1 }).await.is_err());
    assert!(local(Local {}).await.is_ok());
}

#[test]
fn a_handler_can_be_named_instead_of_linked() {
    let named = outbox::handler!(led);
    assert_eq!((named.name(), named.event_type(), named.version()), ("ui::shapes::led", "shapes.led", 3));
    assert_eq!(named.aliases(), ["shapes.followed", "shapes.pulled"]);
    assert_eq!(Led::ALIASES, named.aliases());
    let registry = Registry::empty()
        .with(named)
        .with(outbox::handler!(crate::shapes::plain))
        .with(outbox::handler!(inner::handle))
        .with(outbox::handler!(r#async));
    let names: Vec<&str> = registry.handlers().iter().map(outbox::HandlerDef::event_type).collect();
    assert_eq!(names, ["shapes.led", "shapes.plain", "shapes.inner", "shapes.raw"]);
}
