//! The handler function's head. Its body is not parsed: it is the compiler's, and the user's.

use proc_macro2::{Ident, TokenStream, TokenTree};
use quote::ToTokens;
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, GenericParam, Generics, ReturnType, Token, Type, Visibility, parenthesized};

/// What of the function the expansion needs.
pub(crate) struct Signature {
    /// The conditions under which the function exists at all.
    pub(crate) cfgs: Vec<Attribute>,
    pub(crate) visibility: Visibility,
    pub(crate) name: Ident,
    pub(crate) payload: Type,
    pub(crate) extractors: Vec<Type>,
    pub(crate) output: ReturnType,
}

impl Parse for Signature {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let attributes = input.call(Attribute::parse_outer)?;
        let visibility: Visibility = input.parse()?;
        let asyncness = qualifiers(input)?;
        if !input.peek(Token![fn]) {
            return Err(input.error("`#[outbox_handler]` goes on an async function"));
        }
        let fn_token: Token![fn] = input.parse()?;
        let name = input.call(Ident::parse_any)?;
        if !asyncness {
            let message = "a handler is an async function: write `async fn`";
            return Err(syn::Error::new(fn_token.span, message));
        }
        let generics: Generics = input.parse()?;
        refuse_generics(&generics)?;
        let content;
        let parentheses = parenthesized!(content in input);
        let parameters = Punctuated::<Parameter, Token![,]>::parse_terminated(&content)?;
        let output: ReturnType = input.parse()?;
        // The rest, a body with or without a where clause, is nobody's business here.
        input.parse::<TokenStream>()?;
        let mut types = parameters.into_iter().map(|parameter| parameter.ty);
        let Some(payload) = types.next() else {
            let message = "a handler's first parameter is its payload: `event: InvoiceEvent`";
            return Err(syn::Error::new(parentheses.span.join(), message));
        };
        check_payload(&payload)?;
        let extractors: Vec<Type> = types.collect();
        extractors.iter().try_for_each(refuse_impl)?;
        let cfgs = attributes.into_iter().filter(|attribute| attribute.path().is_ident("cfg")).collect();
        Ok(Self { cfgs, visibility, name, payload, extractors, output })
    }
}

/// Passes `async`; refuses what a handler cannot be.
fn qualifiers(input: ParseStream<'_>) -> syn::Result<bool> {
    let mut asyncness = false;
    loop {
        if input.peek(Token![async]) {
            input.parse::<Token![async]>()?;
            asyncness = true;
        } else if input.peek(Token![const]) && !input.peek2(Token![fn]) && !input.peek2(Token![async]) {
            // A constant, which is no function at all.
            return Ok(asyncness);
        } else if input.peek(Token![const]) || input.peek(Token![unsafe]) || input.peek(Token![extern]) {
            return Err(
                input.error("a handler is a plain `async fn`: the worker calls it like any other function")
            );
        } else {
            return Ok(asyncness);
        }
    }
}

fn refuse_generics(generics: &Generics) -> syn::Result<()> {
    let message = match generics.params.first() {
        None => return Ok(()),
        Some(GenericParam::Lifetime(_)) => {
            "a handler has no lifetime parameters: write `'_` in its parameters' types"
        }
        Some(_) => "a handler has no generic parameters: it is registered once, for one payload type",
    };
    Err(syn::Error::new_spanned(&generics.params, message))
}

fn check_payload(payload: &Type) -> syn::Result<()> {
    if let Type::Reference(_) = payload {
        let message = "the payload is handed over by value: remove the `&`";
        return Err(syn::Error::new_spanned(payload, message));
    }
    if borrows(payload) {
        let message = "the payload owns what it holds, since it outlives the row that it was decoded from: use types \
                       without lifetimes, or `'static`";
        return Err(syn::Error::new_spanned(payload, message));
    }
    if is_extractor(payload) {
        let message =
            "a handler's first parameter is its payload, and extractors follow: put this one behind it";
        return Err(syn::Error::new_spanned(payload, message));
    }
    refuse_impl(payload)
}

fn borrows(ty: &Type) -> bool {
    ty.to_token_stream().to_string().replace("'static", "").contains('\'')
}

/// Whether it is one of the library's own: nobody's payload, and five errors of the compiler's.
fn is_extractor(ty: &Type) -> bool {
    let Type::Path(ty) = ty else { return false };
    let path = ty.path.to_token_stream().to_string().replace(' ', "");
    let name = path.trim_start_matches("::").trim_start_matches("outbox::");
    name == "Context" || name.starts_with("State<")
}

fn refuse_impl(ty: &Type) -> syn::Result<()> {
    match ty {
        Type::ImplTrait(found) => {
            let message = "a handler's parameters have concrete types: it is registered once";
            Err(syn::Error::new_spanned(found, message))
        }
        _ => Ok(()),
    }
}

/// A parameter's type; its pattern can be anything that the compiler takes.
struct Parameter {
    ty: Type,
}

impl Parse for Parameter {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.call(Attribute::parse_outer)?;
        refuse_self(input)?;
        let mut pattern = TokenStream::new();
        while !input.peek(Token![:]) || input.peek(Token![::]) {
            if input.peek(Token![::]) {
                input.parse::<Token![::]>()?;
            } else if input.peek(Token![...]) {
                return Err(input.error("a handler takes no variable arguments"));
            } else if input.is_empty() || input.peek(Token![,]) {
                return Err(syn::Error::new_spanned(pattern, "a parameter is written `name: Type`"));
            } else {
                pattern.extend([input.parse::<TokenTree>()?]);
            }
        }
        input.parse::<Token![:]>()?;
        Ok(Self { ty: input.parse()? })
    }
}

fn refuse_self(input: ParseStream<'_>) -> syn::Result<()> {
    let ahead = input.fork();
    if ahead.peek(Token![&]) {
        ahead.parse::<Token![&]>()?;
        ahead.parse::<Option<syn::Lifetime>>()?;
    }
    ahead.parse::<Option<Token![mut]>>()?;
    if ahead.peek(Token![self]) && !ahead.peek2(Token![::]) {
        input.advance_to(&ahead);
        return Err(
            input.error("a handler is a free function: take what it needs as `State<T>` instead of `self`")
        );
    }
    Ok(())
}
