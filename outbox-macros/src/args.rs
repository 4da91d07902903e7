//! The arguments of `#[outbox_handler(…)]` and `#[event(…)]`: an optional name, then options, each once.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{quote, quote_spanned};
use syn::ext::IdentExt;
use syn::parse::{ParseBuffer, ParseStream, Parser};
use syn::token::Paren;
use syn::{LitStr, Path, Token, parenthesized};

use crate::upcasts::Upcasts;
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
    pub(crate) blocks_its_key: Option<bool>,
    pub(crate) aliases: Vec<LitStr>,
    pub(crate) upcasts: Option<Upcasts>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) concurrency: Option<u32>,
    pub(crate) backoff: Option<TokenStream>,
    pub(crate) unregistered: bool,
    krate: Option<Path>,
}

/// What is said of the event, not of its handler.
const EVENT_OPTIONS: &[&str] = &["max_attempts", "version", "on_dead_letter", "upcast", "aliases"];
const HANDLER_OPTIONS: &[&str] = &["timeout", "concurrency", "backoff", "register"];
const COMMON_OPTIONS: &[&str] = &["crate"];

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
            seen.push(option);
            comma_or_end(input)?;
        }
        args.check(&seen, of)?;
        Ok(args)
    }

    fn parse_option(&mut self, option: &Ident, input: ParseStream<'_>, of: Of) -> syn::Result<()> {
        let options = options_of(of);
        let name = option.to_string();
        if !options.contains(&name.as_str()) {
            let message =
                format!("there is no option `{option}`; the options are `{}`", options.join("`, `"));
            return Err(syn::Error::new(option.span(), message));
        }
        match name.as_str() {
            "upcast" => {
                self.upcasts =
                    Some(list(option, input, "1 => from_v1").and_then(|list| list.call(Upcasts::parse))?);
                return Ok(());
            }
            "aliases" => {
                let list = list(option, input, "\"billing.invoice_created\"")?;
                self.aliases = value::event_names(&list, option)?;
                return Ok(());
            }
            _ => {}
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
            "on_dead_letter" => self.blocks_its_key = Some(value::blocks(input, option)?),
            "concurrency" => self.concurrency = Some(value::count(input, option)?),
            "timeout" => self.timeout_ms = Some(value::duration_ms(input, option)?),
            "backoff" => self.backoff = Some(expression(input, option)?),
            "register" => self.unregistered = !value::truth(input, option)?,
            _ => self.krate = Some(input.call(Path::parse_mod_style)?),
        }
        Ok(())
    }

    /// What options have to do with each other.
    fn check(&self, given: &[Ident], of: Of) -> syn::Result<()> {
        let of_the_event = given.iter().find(|option| EVENT_OPTIONS.contains(&option.to_string().as_str()));
        if let (Of::Handler, None, Some(option)) = (of, &self.name, of_the_event) {
            let form = written(option);
            let message = format!(
                "`{option}` belongs to the event: write it in `#[event(\"…\", {form})]` on the payload type, or \
                 name the event here, `#[outbox_handler(\"billing.invoice\", {form})]`"
            );
            return Err(syn::Error::new(option.span(), message));
        }
        if let Some(name) = &self.name {
            value::check_aliases(name, &self.aliases)?;
        }
        self.upcasts.as_ref().map_or(Ok(()), |upcasts| upcasts.check(self.version))
    }
}

fn options_of(of: Of) -> Vec<&'static str> {
    let of_the_handler = if of == Of::Handler { HANDLER_OPTIONS } else { &[] };
    [EVENT_OPTIONS, of_the_handler, COMMON_OPTIONS].concat()
}

/// How an option is written.
fn written(option: &Ident) -> String {
    let is_list = option == "upcast" || option == "aliases";
    if is_list { format!("{option}(…)") } else { format!("{option} = …") }
}

/// A name without its quotes: what begins with a word, and is neither an option nor the beginning of one.
fn refuse_bare_name(ahead: ParseStream<'_>, of: Of) -> syn::Result<()> {
    let is_word = ahead.peek(Ident::peek_any) && !ahead.peek2(Token![=]) && !ahead.peek2(Paren);
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

/// What stands in the parentheses of an option that takes a list.
fn list<'i>(option: &Ident, input: ParseStream<'i>, example: &str) -> syn::Result<ParseBuffer<'i>> {
    if !input.peek(Paren) {
        let message = format!("the option `{option}` takes a list: `{option}({example})`");
        return Err(syn::Error::new(option.span(), message));
    }
    let content;
    parenthesized!(content in input);
    if content.is_empty() {
        let message = format!("the list is empty; write `{option}({example})`, or remove `{option}`");
        return Err(syn::Error::new(option.span(), message));
    }
    Ok(content)
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
