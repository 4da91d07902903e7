//! `upcast(1 => from_v1, 2 => from_v2)`: the functions that lead an older version of a payload to the next one.

use proc_macro2::{Ident, TokenStream};
use quote::{ToTokens, quote, quote_spanned};
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::spanned::Spanned;
use syn::{LitInt, Token, Type, TypePath};

use crate::args::Args;
use crate::expand::{at, variable};

/// A chain of functions.
pub(crate) struct Upcasts {
    steps: Vec<Step>,
}

/// One function, from a version to the one after it.
struct Step {
    version: u32,
    literal: LitInt,
    function: TypePath,
}

impl Upcasts {
    pub(crate) fn parse(list: ParseStream<'_>) -> syn::Result<Self> {
        let steps =
            list.call(|list| Punctuated::<Step, Token![,]>::parse_terminated_with(list, Step::parse))?;
        Ok(Self { steps: steps.into_iter().collect() })
    }

    /// The chain has no gap, and ends where the event is now.
    pub(crate) fn check(&self, version: Option<u32>) -> syn::Result<()> {
        let mut expected = None;
        for step in &self.steps {
            let found = step.version;
            match expected {
                Some(expected) if found != expected => {
                    let message = format!(
                        "the functions form a chain, each leading to the next version: after version {} comes version \
                         {expected}, and here is {found}",
                        expected - 1
                    );
                    return Err(syn::Error::new(step.literal.span(), message));
                }
                _ => expected = found.checked_add(1),
            }
        }
        let (Some(last), Some(end)) = (self.steps.last(), expected) else { return Ok(()) };
        let is = version.unwrap_or(1);
        if end == is {
            return Ok(());
        }
        let remedy = if end > is {
            format!("say so with `version = {end}`, or remove it")
        } else {
            format!("add the functions up to `{} => …`", is - 1)
        };
        let message = format!(
            "the last function leads from version {} to version {end}, and the event has version {is}: {remedy}",
            end - 1
        );
        Err(syn::Error::new(last.literal.span(), message))
    }

    /// The constant of the event that holds them. For each version its own function: its decoder, then the chain.
    pub(crate) fn constant(&self, args: &Args) -> TokenStream {
        let krate = args.krate();
        let (text, value) = (variable("text"), variable("value"));
        let each = self.steps.iter().enumerate().map(|(index, Step { version, function, .. })| {
            let at_function = at(function.span());
            let outbox = args.krate_at(at_function);
            let decode = quote_spanned!(at_function=> #outbox::private::decode_as(#function, #text)?);
            let schema = quote_spanned!(at_function=> #outbox::private::schema_of(#function));
            let chain = (index..self.steps.len()).map(|index| self.step(index, args, &value));
            quote! {
                #krate::private::Upcast::new(
                    #version,
                    |#text| {
                        let #value = #decode;
                        #(#chain)*
                        ::core::result::Result::Ok(#value)
                    },
                    || #schema,
                )
            }
        });
        quote!(const UPCASTS: &'static [#krate::private::Upcast<Self>] = &[#(#each),*];)
    }

    /// One function applied. It is shown what comes after it, so that the compiler compares the two.
    fn step(&self, index: usize, args: &Args, value: &Ident) -> TokenStream {
        let Step { version, function, .. } = &self.steps[index];
        let next = match self.steps.get(index + 1) {
            Some(next) => next.function.to_token_stream(),
            None => quote!(::core::convert::identity::<Self>),
        };
        let at_function = at(function.span());
        let outbox = args.krate_at(at_function);
        let call =
            quote_spanned!(at_function=> #outbox::private::upcast(#version, #function, #next, #value)?);
        quote!(let #value = #call;)
    }
}

impl Step {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        const RULE: &str = "an upcast is written `1 => from_v1`: the stored version, and the path of the function that \
                            takes its payload and gives the next version's";
        let rule = |error: syn::Error| syn::Error::new(error.span(), RULE);
        let literal: LitInt = input.parse().map_err(rule)?;
        let version =
            literal.base10_parse::<u32>().ok().filter(|version| (1..i32::MAX as u32).contains(version));
        let Some(version) = version else {
            return Err(syn::Error::new(literal.span(), "versions count from 1"));
        };
        input.parse::<Token![=>]>().map_err(rule)?;
        // A path in the grammar of types, so that generic arguments may hold commas.
        match input.parse::<Type>() {
            Ok(Type::Path(function)) => Ok(Self { version, literal, function }),
            Ok(other) => Err(syn::Error::new(other.span(), RULE)),
            Err(error) => Err(rule(error)),
        }
    }
}
