//! The arguments of `#[outbox_handler(…)]` and `#[event(…)]`: an optional name, then options, each once.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseStream, Parser};
use syn::{LitStr, Path, Token};

use crate::value;

/// Which of the two attributes the arguments are of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Handler,
    Event,
}

/// What was written.
#[derive(Default)]
pub(crate) struct Args {
    pub(crate) name: Option<LitStr>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) version: Option<u32>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) backoff: Option<TokenStream>,
    krate: Option<Path>,
}

const HANDLER_OPTIONS: &[&str] = &["max_attempts", "version", "timeout", "concurrency", "backoff", "crate"];
const EVENT_OPTIONS: &[&str] = &["max_attempts", "version", "crate"];

impl Args {
    pub(crate) fn parse(tokens: TokenStream, of: Of) -> syn::Result<Self> {
        (|input: ParseStream<'_>| Self::parse_stream(input, of)).parse2(tokens)
    }

    /// The path of the crate `outbox`.
    pub(crate) fn krate(&self) -> TokenStream {
        self.krate_at(Span::call_site())
    }

    /// The same, shown at this place in errors, unless the user wrote it.
    pub(crate) fn krate_at(&self, place: Span) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote_spanned!(place=> ::outbox), |path| quote!(#path))
    }

    fn parse_stream(input: ParseStream<'_>, of: Of) -> syn::Result<Self> {
        let mut args = Self::default();
        if input.peek(LitStr) {
            let name: LitStr = input.parse()?;
            value::check_event_name(&name)?;
            args.name = Some(name);
            comma_or_end(input)?;
        } else {
            refuse_bare_name(&input.fork(), of)?;
        }
        let mut seen: Vec<Ident> = Vec::new();
        let mut constants_without_name = None;
        while !input.is_empty() {
            if !input.peek(Ident::peek_any) {
                return Err(input.error(not_an_option(of, args.name.is_some())));
            }
            let option = input.call(Ident::parse_any)?;
            if seen.contains(&option) {
                return Err(syn::Error::new(
                    option.span(),
                    format!("the option `{option}` is given twice; remove one"),
                ));
            }
            args.parse_option(&option, input, of)?;
            if (option == "max_attempts" || option == "version") && args.name.is_none() {
                constants_without_name.get_or_insert(option.clone());
            }
            seen.push(option);
            comma_or_end(input)?;
        }
        match constants_without_name {
            Some(option) if of == Of::Handler => {
                let message = format!(
                    "`{option}` belongs to the event: write it in `#[event(\"…\", {option} = …)]` on the payload type, or \
                     name the event here, `#[outbox_handler(\"billing.invoice\", {option} = …)]`"
                );
                Err(syn::Error::new(option.span(), message))
            }
            _ => Ok(args),
        }
    }

    fn parse_option(&mut self, option: &Ident, input: ParseStream<'_>, of: Of) -> syn::Result<()> {
        let options = options_of(of);
        let name = option.to_string();
        if !options.contains(&name.as_str()) {
            let message =
                format!("there is no option `{option}`; the options are `{}`", options.join("`, `"));
            return Err(syn::Error::new(option.span(), message));
        }
        if !input.peek(Token![=]) {
            return Err(syn::Error::new(
                option.span(),
                format!("the option `{option}` needs a value: `{option} = …`"),
            ));
        }
        input.parse::<Token![=]>()?;
        match name.as_str() {
            "max_attempts" => self.max_attempts = Some(value::count(input, option)?),
            "version" => self.version = Some(value::count(input, option)?),
            "concurrency" => self.concurrency = Some(value::count(input, option)?),
            "timeout" => self.timeout_ms = Some(value::duration_ms(input, option)?),
            "backoff" => self.backoff = Some(expression(input, option)?),
            _ => self.krate = Some(input.call(Path::parse_mod_style)?),
        }
        Ok(())
    }
}

fn options_of(of: Of) -> &'static [&'static str] {
    if of == Of::Handler { HANDLER_OPTIONS } else { EVENT_OPTIONS }
}

/// A name without its quotes: what begins with a word, and is neither an option nor half of one.
fn refuse_bare_name(ahead: ParseStream<'_>, of: Of) -> syn::Result<()> {
    let is_word = ahead.peek(Ident::peek_any) && !ahead.peek2(Token![=]);
    let is_segment = ahead.peek2(Token![.]);
    let argument = up_to_comma(ahead)?;
    let text = argument.to_string();
    if !is_word || (!is_segment && options_of(of).contains(&text.as_str())) {
        return Ok(());
    }
    let message = format!("the event's name is written out in quotes: `\"{}\"`", text.replace(' ', ""));
    Err(syn::Error::new_spanned(argument, message))
}

fn not_an_option(of: Of, named: bool) -> &'static str {
    match (of, named) {
        (_, true) => "an option is written `name = value`, such as `max_attempts = 5`",
        (Of::Handler, false) => {
            "the event's name comes first, as a string: `#[outbox_handler(\"billing.invoice\")]`"
        }
        (Of::Event, false) => "the event's name comes first, as a string: `#[event(\"billing.invoice\")]`",
    }
}

fn comma_or_end(input: ParseStream<'_>) -> syn::Result<()> {
    if input.is_empty() {
        return Ok(());
    }
    if input.peek(Token![,]) {
        return input.parse::<Token![,]>().map(drop);
    }
    Err(input.error("a comma stands between the arguments"))
}

/// Any expression without a comma of its own. The compiler itself parses it.
fn expression(input: ParseStream<'_>, option: &Ident) -> syn::Result<TokenStream> {
    let tokens = up_to_comma(input)?;
    if tokens.is_empty() {
        return Err(syn::Error::new(
            option.span(),
            format!("the option `{option}` needs a value: `{option} = …`"),
        ));
    }
    Ok(tokens)
}

fn up_to_comma(input: ParseStream<'_>) -> syn::Result<TokenStream> {
    let mut tokens = TokenStream::new();
    while !input.is_empty() && !input.peek(Token![,]) {
        tokens.extend([input.parse::<TokenTree>()?]);
    }
    Ok(tokens)
}
