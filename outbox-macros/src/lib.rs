#![doc = include_str!("../README.md")]

mod args;
mod expand;
mod signature;
mod upcasts;
mod value;

use proc_macro::TokenStream;

/// Registers an async function as the handler of an event type.
///
/// ```text
/// #[outbox_handler("billing.invoice", max_attempts = 5, timeout = "30s", concurrency = 8)]
/// async fn push_invoice(event: InvoiceEvent, ctx: Context, State(stripe): State<Stripe>) -> HandlerResult { … }
/// ```
///
/// The first parameter is the payload, by value; each further one is an extractor: `Context`, `State<T>`, or a type
/// of yours that implements `FromDelivery`. The function stays an ordinary function, its attributes, docs and body
/// untouched.
///
/// With a name, the payload type gets its `Event` impl here. Without one (`#[outbox_handler]`), the payload type has
/// it from `#[derive(Event)]`, which lets producers live in a crate without handlers.
///
/// | option | meaning | default |
/// |---|---|---|
/// | `max_attempts = 5` | attempts before an event is a dead letter, from 1; only with a name | 10 |
/// | `version = 2` | the version of the payload's shape, from 1; only with a name | 1 |
/// | `on_dead_letter = "block"` | a dead letter blocks its ordering key, until it is requeued, discarded or pruned; only with a name | `"continue"`: the next of the key goes on |
/// | `upcast(1 => from_v1)` | a function for each older version: it takes that version's struct and gives the next one's, or a `Result` of it; only with a name | older versions decode as the payload itself |
/// | `aliases("billing.invoice_created")` | names that the event had before, under which stored events are handled as well; only with a name | none |
/// | `timeout = "30s"` | how long one run may take: `ms`, `s`, `m`, `h`, such as `"1m30s"` | the worker's, 90 s |
/// | `concurrency = 8` | runs at a time in one worker, from 1 | the worker's, 64 |
/// | `backoff = Backoff::fixed(…)` | a constant expression of type `outbox::Backoff` | 2ⁿ s, at most an hour |
/// | `register = false` | leaves the handler out of `Registry::linked()`, for those who list theirs with `outbox::handler!` | `true` |
/// | `crate = path` | where the crate `outbox` is, if it was renamed | `::outbox` |
///
/// An event's name consists of segments of lower-case letters, digits, `_` and `-`, joined by dots, at most 200 bytes.
#[proc_macro_attribute]
pub fn outbox_handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    expand::handler(arguments.into(), item.into()).into()
}

/// Names a payload type as an event: for crates that hold payload types and no handlers.
///
/// ```text
/// #[derive(Serialize, Deserialize, JsonSchema, Event)]
/// #[event("billing.invoice", max_attempts = 5)]
/// struct InvoiceEvent { … }
/// ```
///
/// Options: `max_attempts`, `version`, `on_dead_letter`, `upcast`, `aliases` and `crate`, as of `#[outbox_handler]`.
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(item: TokenStream) -> TokenStream {
    expand::event(item.into()).into()
}

/// The definition of a handler function, for `Registry::with`: `handler!(billing::push_invoice)`.
///
/// The path is that of the function where it stands, with `#[outbox_handler]` on it, and not that of a re-export.
#[proc_macro]
pub fn handler(path: TokenStream) -> TokenStream {
    expand::handler_path(path.into()).into()
}
