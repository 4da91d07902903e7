//! The generated code. It names only what `outbox::private` exports, by absolute paths, so that nothing in the user's
//! module can shadow it.

use proc_macro2::{Ident, Span, TokenStream};
use quote::{ToTokens, format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{DeriveInput, Path, Type};

use crate::args::{Args, Of};
use crate::signature::Signature;

/// The user's function as it is, then its registration; on a mistake the function and one error.
pub(crate) fn handler(arguments: TokenStream, item: TokenStream) -> TokenStream {
    let parsed = Args::parse(arguments, Of::Handler)
        .and_then(|args| syn::parse2::<Signature>(item.clone()).map(|signature| (args, signature)));
    let generated = match parsed {
        Ok((args, signature)) => registration(&args, &signature),
        Err(error) => error.into_compile_error(),
    };
    quote!(#item #generated)
}

fn registration(args: &Args, signature: &Signature) -> TokenStream {
    let krate = args.krate();
    let Signature { cfgs, visibility, name, payload, .. } = signature;
    let event = args
        .name
        .as_ref()
        .map(|event_type| event_impl(args, &quote!(#payload), &event_type.to_token_stream()));
    let event = event.map(|tokens| quote!(#(#cfgs)* #tokens));
    let (definition, constant) = (definition(args, signature), constant(name));
    let submission = (!args.unregistered).then(|| {
        quote! {
            #(#cfgs)*
            const _: () = {
                #krate::private::inventory::submit! { #constant }
            };
        }
    });
    quote! {
        #event
        #(#cfgs)*
        #[doc(hidden)]
        #[allow(dead_code, deprecated, non_upper_case_globals, unreachable_pub)]
        #visibility const #constant: #krate::private::HandlerDef = #definition;
        #submission
    }
}

/// Where the definition of a function's handler is: beside the function, as visible as it is.
fn constant(function: &Ident) -> Ident {
    format_ident!("__outbox_handler_{}", function.unraw(), span = function.span())
}

/// `handler!(path::to::function)`.
pub(crate) fn handler_path(tokens: TokenStream) -> TokenStream {
    let rule = "`handler!` takes the path of a function: `handler!(billing::push_invoice)`";
    let path = (|input: ParseStream<'_>| input.call(Path::parse_mod_style)).parse2(tokens);
    let Ok(mut path) = path else { return syn::Error::new(Span::call_site(), rule).into_compile_error() };
    if let Some(last) = path.segments.last_mut() {
        last.ident = constant(&last.ident);
    }
    path.into_token_stream()
}

fn definition(args: &Args, signature: &Signature) -> TokenStream {
    let krate = args.krate();
    let Signature { name, payload, extractors, .. } = signature;
    let run = run(args, signature);
    let options = options(args);
    let needs = needs(&krate, extractors);
    let plain = name.unraw().to_string();
    // The place that is shown to people is that of the function's name.
    let line = quote_spanned!(name.span()=> ::core::line!());
    quote! {
        #krate::private::HandlerDef::new::<#payload>(
            ::core::concat!(::core::module_path!(), "::", #plain),
            ::core::file!(),
            #line,
            #run
        )
        #options
        #needs
    }
}

/// The function that the worker calls: decodes, extracts, runs.
fn run(args: &Args, signature: &Signature) -> TokenStream {
    let krate = args.krate();
    let Signature { name, payload, extractors, output, .. } = signature;
    let variables: Vec<Ident> =
        (0..extractors.len()).map(|index| variable(&format!("argument_{index}"))).collect();
    let (delivery, event) = (variable("delivery"), variable("event"));
    let mutability = (!extractors.is_empty()).then(|| quote!(mut));
    let extractions = variables.iter().zip(extractors).map(|(variable, ty)| {
        quote_spanned!(ty.span()=> let #variable = <#ty as #krate::private::FromDelivery>::from_delivery(&mut #delivery)?;)
    });
    let payload_type = quote_spanned!(payload.span()=> #krate::private::decode_payload::<#payload>);
    let returned = match output {
        syn::ReturnType::Default => name.span(),
        syn::ReturnType::Type(_, ty) => ty.span(),
    };
    // The result's name carries the span of the return type: an error about the one points at the other.
    let result = Ident::new("__result", at(returned));
    let body = quote! {
        let #event = #payload_type(&#delivery)?;
        #(#extractions)*
        let #result = #name(#event #(, #variables)*).await;
        #krate::private::finish(#result)
    };
    // It all stands where the function's name does: what keeps its future from being `Send` is said there.
    let at_name = at(name.span());
    let boxed = args.krate_at(at_name);
    quote_spanned!(at_name=> |#mutability #delivery| #boxed::private::boxed(async move { #body }))
}

/// What is generated, and shown where the user's own token stands.
pub(crate) fn at(place: Span) -> Span {
    Span::mixed_site().located_at(place)
}

pub(crate) fn variable(name: &str) -> Ident {
    format_ident!("__{name}", span = Span::mixed_site())
}

fn options(args: &Args) -> TokenStream {
    let timeout = args.timeout_ms.map(|ms| quote!(.timeout(::core::time::Duration::from_millis(#ms))));
    let concurrency = args.concurrency.map(|number| quote!(.concurrency(#number)));
    let backoff = args.backoff.as_ref().map(|backoff| quote!(.backoff(#backoff)));
    quote!(#timeout #concurrency #backoff)
}

fn needs(krate: &TokenStream, extractors: &[Type]) -> Option<TokenStream> {
    if extractors.is_empty() {
        return None;
    }
    let requirements = variable("requirements");
    let each = extractors.iter().map(
        |ty| quote_spanned!(ty.span()=> <#ty as #krate::private::FromDelivery>::requires(#requirements);),
    );
    Some(quote!(.requires(|#requirements| { #(#each)* })))
}

/// `#[derive(Event)]`.
pub(crate) fn event(item: TokenStream) -> TokenStream {
    derive(item).unwrap_or_else(syn::Error::into_compile_error)
}

fn derive(item: TokenStream) -> syn::Result<TokenStream> {
    let input: DeriveInput = syn::parse2(item)?;
    let mut found = input.attrs.iter().filter(|attribute| attribute.path().is_ident("event"));
    let Some(attribute) = found.next() else {
        let message = "an event needs a name: add `#[event(\"billing.invoice\")]` to the type";
        return Err(syn::Error::new(input.ident.span(), message));
    };
    if let Some(second) = found.next() {
        let message = "the event is named twice; remove one `#[event(…)]`";
        return Err(syn::Error::new_spanned(&second.meta, message));
    }
    if !input.generics.params.is_empty() {
        let message = "an event has no generic parameters: its name stands for one shape of payload";
        return Err(syn::Error::new(input.generics.params.span(), message));
    }
    let args = match &attribute.meta {
        syn::Meta::List(list) => Args::parse(list.tokens.clone(), Of::Event)?,
        _ => Args::default(),
    };
    if args.name.is_none() {
        let message = "an event needs a name, as a string: `#[event(\"billing.invoice\")]`";
        return Err(syn::Error::new_spanned(&attribute.meta, message));
    }
    let ident = &input.ident;
    Ok(event_impl(&args, &quote!(#ident), &args.name.to_token_stream()))
}

fn event_impl(args: &Args, payload: &TokenStream, event_type: &TokenStream) -> TokenStream {
    let krate = args.krate();
    let version = args.version.map(|version| quote!(const VERSION: ::core::primitive::u32 = #version;));
    let max_attempts =
        args.max_attempts.map(|attempts| quote!(const MAX_ATTEMPTS: ::core::primitive::u32 = #attempts;));
    let on_dead_letter = args.blocks_its_key.map(|blocks| {
        let then = if blocks { quote!(Block) } else { quote!(Continue) };
        quote!(const ON_DEAD_LETTER: #krate::OnDeadLetter = #krate::OnDeadLetter::#then;)
    });
    let names = &args.aliases;
    let aliases = (!names.is_empty())
        .then(|| quote!(const ALIASES: &'static [&'static ::core::primitive::str] = &[#(#names),*];));
    let upcasts = args.upcasts.as_ref().map(|upcasts| upcasts.constant(args));
    let event = quote_spanned!(payload.span()=> #krate::Event);
    // It stands where the payload's type does: a second one for the same type is said to be there.
    quote_spanned! {at(payload.span())=>
        #[automatically_derived]
        impl #event for #payload {
            const EVENT_TYPE: &'static ::core::primitive::str = #event_type;
            #version
            #max_attempts
            #on_dead_letter
            #aliases
            #upcasts
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The output of one handler is written down in ARCHITECTURE.md, where it is read: token for token what comes out.
    #[test]
    fn output_is_what_the_architecture_says() {
        let page = include_str!("../../ARCHITECTURE.md");
        let block = page.split("```rust,ignore\n").nth(1).and_then(|rest| rest.split("```").next());
        let (input, expected) = block.and_then(|block| block.split_once("// becomes")).expect("the block");
        let (attribute, item) = input.split_once('\n').expect("an attribute and a function");
        let attribute = syn::parse_str::<TokenStream>(attribute).expect("tokens");
        let arguments = syn::Attribute::parse_outer
            .parse2(attribute)
            .and_then(|attributes| attributes[0].parse_args::<TokenStream>())
            .expect("an attribute");
        let output = handler(arguments, item.parse().expect("tokens"));
        let expected: TokenStream = expected.parse().expect("tokens");
        // By line, and without the spaces that depend on who made the tokens.
        let text = |tokens: TokenStream| tokens.to_string().replace(' ', "").replace(';', ";\n");
        assert_eq!(text(output), text(expected));
    }
}
