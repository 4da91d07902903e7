//! The values of options: names, counts, durations, each with an error that states its rule.

use proc_macro2::Ident;
use syn::parse::ParseStream;
use syn::punctuated::Punctuated;
use syn::{LitBool, LitInt, LitStr, Token};

/// An event's name is a column's value, a metric's label and part of a URL: it is kept plain.
pub(crate) fn check_event_name(name: &LitStr) -> syn::Result<()> {
    const MAX_BYTES: usize = 200;
    let text = name.value();
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_' || c == '-';
    let segment = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) && part.chars().all(is_plain)
    };
    let problem = if text.is_empty() {
        "is empty".to_owned()
    } else if text.len() > MAX_BYTES {
        format!("has {} bytes", text.len())
    } else if text.split('.').all(segment) {
        return Ok(());
    } else {
        format!("\"{text}\" is malformed")
    };
    let message = format!(
        "the event's name {problem}: it consists of segments joined by dots, each of lower-case letters, digits, `_` and \
         `-`, beginning with a letter or a digit, at most {MAX_BYTES} bytes in all, such as \"billing.invoice\""
    );
    Err(syn::Error::new(name.span(), message))
}

/// Names that the event had before.
pub(crate) fn event_names(list: ParseStream<'_>, option: &Ident) -> syn::Result<Vec<LitStr>> {
    let rule = || format!("`{option}` takes event names in quotes, joined by commas");
    let names = Punctuated::<LitStr, Token![,]>::parse_terminated(list);
    let names: Vec<LitStr> =
        names.map_err(|error| syn::Error::new(error.span(), rule()))?.into_iter().collect();
    names.iter().try_for_each(check_event_name)?;
    Ok(names)
}

/// Each name once.
pub(crate) fn check_aliases(name: &LitStr, aliases: &[LitStr]) -> syn::Result<()> {
    for (index, alias) in aliases.iter().enumerate() {
        let text = alias.value();
        if text == name.value() {
            let message = format!(
                "\"{text}\" is the event's name itself; its aliases are the names that it had before"
            );
            return Err(syn::Error::new(alias.span(), message));
        }
        if aliases[..index].iter().any(|other| other.value() == text) {
            return Err(syn::Error::new(
                alias.span(),
                format!("the alias \"{text}\" is given twice; remove one"),
            ));
        }
    }
    Ok(())
}

/// `true` or `false`.
pub(crate) fn truth(input: ParseStream<'_>, option: &Ident) -> syn::Result<bool> {
    let literal = input.parse::<LitBool>();
    let rule = |error: syn::Error| {
        syn::Error::new(error.span(), format!("`{option}` takes `true` or `false`: `{option} = false`"))
    };
    literal.map(|literal| literal.value).map_err(rule)
}

/// `"continue"` or `"block"`: whether it blocks.
pub(crate) fn blocks(input: ParseStream<'_>, option: &Ident) -> syn::Result<bool> {
    let rule = || format!("`{option}` takes `\"continue\"` or `\"block\"`: `{option} = \"block\"`");
    let literal: LitStr = input.parse().map_err(|error| syn::Error::new(error.span(), rule()))?;
    match literal.value().as_str() {
        "continue" => Ok(false),
        "block" => Ok(true),
        _ => Err(syn::Error::new(literal.span(), rule())),
    }
}

/// A whole number from 1.
pub(crate) fn count(input: ParseStream<'_>, option: &Ident) -> syn::Result<u32> {
    let rule = || format!("`{option}` takes a whole number from 1 to 2147483647, such as `{option} = 5`");
    let literal: LitInt = input.parse().map_err(|error| syn::Error::new(error.span(), rule()))?;
    let value = literal.base10_parse::<i32>().ok().filter(|value| *value >= 1);
    let value = value.and_then(|value| u32::try_from(value).ok());
    value.ok_or_else(|| syn::Error::new(literal.span(), rule()))
}

/// A duration in a string.
pub(crate) fn duration_ms(input: ParseStream<'_>, option: &Ident) -> syn::Result<u64> {
    let rule = || {
        format!(
            "`{option}` takes a duration above zero in a string, of whole numbers with `ms`, `s`, `m` or `h`, such as \
             `{option} = \"1m30s\"`"
        )
    };
    let literal: LitStr = input.parse().map_err(|error| syn::Error::new(error.span(), rule()))?;
    let parsed = parse_duration_ms(&literal.value()).filter(|ms| *ms > 0);
    parsed.ok_or_else(|| syn::Error::new(literal.span(), rule()))
}

fn parse_duration_ms(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total = 0u64;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, after) = rest.split_at(digits);
        let unit_end = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, after) = after.split_at(unit_end);
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60 * 1000,
            "h" => 60 * 60 * 1000,
            _ => return None,
        };
        total = total.checked_add(number.parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        rest = after;
    }
    Some(total)
}

#[cfg(test)]
mod tests {
    use super::parse_duration_ms;

    #[test]
    fn durations() {
        for (text, ms) in [("500ms", 500), ("30s", 30_000), ("5m", 300_000), ("1h30m", 5_400_000)] {
            assert_eq!(parse_duration_ms(text), Some(ms), "{text}");
        }
        for text in ["s", "30", "30 s", "1.5s", "-1s", "1d", "99999999999999999999s"] {
            assert_eq!(parse_duration_ms(text), None, "{text}");
        }
    }
}
