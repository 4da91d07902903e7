//! The statements of a backend, each a file under `sql/<database>/`, with the tables' names made right for a schema.

use sqlx::AssertSqlSafe;
use std::sync::Arc;

/// One statement's text, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Sql(Arc<str>);

impl Sql {
    pub(super) fn new(
        file: &str,
        schema: Option<&str>,
        phrases: &[(&str, &str)],
        name: fn(Option<&str>, &str) -> String,
    ) -> Self {
        let text = phrases
            .iter()
            .fold(without_comments(file), |text, (word, phrase)| with_phrase(&text, word, phrase));
        Self(qualify(&text, schema, name).into())
    }

    /// The text for sqlx. It holds no value of a user's: the names in it are quoted, everything else is bound.
    pub(super) fn safe(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(Arc::clone(&self.0))
    }
}

/// Declares a backend's `Statements`: one field for each named file.
macro_rules! statements {
    ($directory:literal, $phrases:expr, $name:path; $($field:ident),* $(,)?) => {
        /// Every statement of this backend, for one schema.
        #[derive(Debug)]
        pub struct Statements {
            $(pub(super) $field: crate::backend::statements::Sql,)*
        }

        impl Statements {
            fn new(schema: Option<&str>) -> Self {
                Self {
                    $($field: crate::backend::statements::Sql::new(
                        include_str!(concat!("sql/", $directory, "/", stringify!($field), ".sql")),
                        schema,
                        $phrases,
                        $name,
                    ),)*
                }
            }

            /// The statements for a schema, made once.
            fn of(schema: Option<&str>) -> std::sync::Arc<Self> {
                static MADE: std::sync::Mutex<std::collections::BTreeMap<Option<String>, std::sync::Arc<Statements>>> =
                    std::sync::Mutex::new(std::collections::BTreeMap::new());
                let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                let key = schema.map(str::to_owned);
                std::sync::Arc::clone(made.entry(key).or_insert_with(|| std::sync::Arc::new(Self::new(schema))))
            }
        }
    };
}
pub(super) use statements;

/// Replaces `word(argument)` by its phrase, which has `{}` for the argument: what a database would need a function for.
fn with_phrase(sql: &str, word: &str, phrase: &str) -> String {
    let opening = format!("{word}(");
    let mut pieces = sql.split(&opening);
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (argument, rest) = piece.split_once(')').unwrap_or((piece, ""));
        text.push_str(&phrase.replace("{}", argument));
        text.push_str(rest);
    }
    text
}

fn without_comments(file: &str) -> String {
    let lines = file.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("--"));
    lines.collect::<Vec<_>>().join(" ")
}

/// Replaces every identifier that begins with `outbox_` (the tables and their indexes) by its name in the schema.
pub(super) fn qualify(sql: &str, schema: Option<&str>, name: fn(Option<&str>, &str) -> String) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut text = String::with_capacity(sql.len() + 64);
    let mut rest = sql;
    while let Some(at) = rest.find("outbox_") {
        let (before, found) = rest.split_at(at);
        text.push_str(before);
        let end = found.find(|c| !is_word(c)).unwrap_or(found.len());
        let (identifier, after) = found.split_at(end);
        // A longer word that only contains the prefix is somebody else's.
        if before.ends_with(is_word) {
            text.push_str(identifier);
        } else {
            text.push_str(&name(schema, identifier));
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_are_qualified_as_whole_words() {
        let name =
            |schema: Option<&str>, identifier: &str| format!("<{}.{identifier}>", schema.unwrap_or("-"));
        assert_eq!(
            qualify("SELECT my_outbox_event, outbox_event.id FROM outbox_event", Some("s"), name),
            "SELECT my_outbox_event, <s.outbox_event>.id FROM <s.outbox_event>"
        );
    }

    #[test]
    fn a_phrase_takes_its_argument() {
        assert_eq!(
            with_phrase("a <= clock_at($1) AND b", "clock_at", "coalesce({}, now())"),
            "a <= coalesce($1, now()) AND b"
        );
    }

    #[test]
    fn comments_and_line_ends_do_not_reach_the_server() {
        assert_eq!(without_comments("-- why\nSELECT 1\n  FROM x\n"), "SELECT 1 FROM x");
    }
}
