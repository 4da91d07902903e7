//! macros
use proc_macro::TokenStream;
/// x
#[proc_macro_attribute]
pub fn outbox_handler(_a: TokenStream, item: TokenStream) -> TokenStream {
    item
}
/// x
#[proc_macro_derive(Event, attributes(event))]
pub fn derive_event(_item: TokenStream) -> TokenStream {
    TokenStream::new()
}
