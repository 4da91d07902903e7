//! The statements of a backend, each a file under `sql/<database>/`, with the tables' names made right for a schema.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sqlx::database::HasStatementCache;
use sqlx::query::{Query, QueryScalar};
use sqlx::{AssertSqlSafe, Database, FromRow};

/// Where statements run.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub(crate) schema: Option<Arc<str>>,
    /// Through a pooler that gives each transaction another connection: nothing is kept on one.
    pub(crate) pooled: bool,
}

/// Whether any handle of this process is behind a pooler.
static POOLED: AtomicBool = AtomicBool::new(false);

impl Place {
    /// For whoever has no handle: the functions that enqueue. Not to keep anything prepared is always right, and behind a
    /// pooler the only right thing; so one handle that is behind one decides for all of them.
    pub(crate) fn without_handle() -> Self {
        Self { schema: None, pooled: POOLED.load(Ordering::Relaxed) }
    }

    /// The same place behind a pooler.
    pub(crate) fn pooled(self) -> Self {
        POOLED.store(true, Ordering::Relaxed);
        Self { pooled: true, ..self }
    }
}

/// One statement's text, ready to run.
#[derive(Clone, Debug)]
pub(super) struct Sql {
    text: Arc<str>,
    /// Whether the connection keeps it prepared.
    is_kept: bool,
}

impl Sql {
    pub(super) fn new(
        file: &str,
        place: &Place,
        phrases: &[(&str, &str)],
        name: fn(Option<&str>, &str) -> String,
    ) -> Self {
        let text = phrases
            .iter()
            .fold(without_comments(file), |text, (word, phrase)| with_phrase(&text, word, phrase));
        Self { text: qualify(&text, place.schema.as_deref(), name).into(), is_kept: !place.pooled }
    }

    pub(super) fn query<'q, DB: Database + HasStatementCache>(&self) -> Query<'q, DB, DB::Arguments> {
        sqlx::query(self.safe()).persistent(self.is_kept)
    }

    pub(super) fn scalar<'q, DB: Database + HasStatementCache, T>(
        &self,
    ) -> QueryScalar<'q, DB, T, DB::Arguments>
    where
        (T,): for<'r> FromRow<'r, DB::Row>,
    {
        sqlx::query_scalar(self.safe()).persistent(self.is_kept)
    }

    /// The text for sqlx. It holds no value of a user's: the names in it are quoted, everything else is bound.
    fn safe(&self) -> AssertSqlSafe<Arc<str>> {
        AssertSqlSafe(Arc::clone(&self.text))
    }
}

/// For a database that takes no lists: what depends on a list's length is put in where a file has a word in braces.
#[cfg(feature = "mysql")]
impl Sql {
    /// With other text in the place of the word.
    pub(super) fn with(&self, word: &str, text: &str) -> Self {
        Self { text: self.text.replace(word, text).into(), is_kept: self.is_kept }
    }

    /// With so many parameters in the place of `{list}`.
    pub(super) fn with_list(&self, length: usize) -> Self {
        self.with("{list}", &vec!["?"; length].join(", "))
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Not kept prepared: of a length that hardly comes again.
    pub(super) fn once(self) -> Self {
        Self { is_kept: false, ..self }
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
            fn new(place: &crate::backend::statements::Place) -> Self {
                Self {
                    $($field: crate::backend::statements::Sql::new(
                        include_str!(concat!("sql/", $directory, "/", stringify!($field), ".sql")),
                        place,
                        $phrases,
                        $name,
                    ),)*
                }
            }

            /// The statements for a place, made once.
            fn of(place: &crate::backend::statements::Place) -> std::sync::Arc<Self> {
                type Made = std::collections::BTreeMap<crate::backend::statements::Place, std::sync::Arc<Statements>>;
                static MADE: std::sync::Mutex<Made> = std::sync::Mutex::new(Made::new());
                let mut made = MADE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                std::sync::Arc::clone(made.entry(place.clone()).or_insert_with(|| std::sync::Arc::new(Self::new(place))))
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

/// The statements of a file, without the reasons beside them.
pub(super) fn without_comments(file: &str) -> String {
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
