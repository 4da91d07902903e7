//! What happened, and whether it is what should have happened.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;

use outbox::Outbox;

use crate::billing::{self, Order, REFUSED_CUSTOMER};
use crate::database::{Db, LOOK};
use crate::provider::Book;

pub(crate) struct Report {
    placed: usize,
    rolled_back: usize,
    /// Status, events, failed attempts.
    events: Vec<(String, i64, i64)>,
    dead_letters: Vec<String>,
    book: Book,
    problems: Vec<String>,
}

impl Report {
    pub(crate) async fn collect(
        outbox: &Outbox<Db>,
        placed: &[Order],
        rolled_back: &[Order],
        book: &Book,
    ) -> Result<Self, Box<dyn Error>> {
        let (stored, events) = billing::totals(outbox).await?;
        let dead = outbox.find_dead_lettered(&["billing.order_placed"], Default::default()).await?;
        let mut problems = charge_problems(placed, book);
        let mut expect = |what: &str, found: i64, expected: usize| {
            if usize::try_from(found) != Ok(expected) {
                problems.push(format!("{what}: {found}, not {expected}"));
            }
        };
        let with_status =
            |name| events.iter().find(|(status, ..)| status == name).map_or(0, |(_, count, _)| *count);
        expect("stored orders", stored, placed.len());
        expect("completed events", with_status("completed"), placed.len() - 1);
        expect("dead letters", with_status("dead_letter"), 2);
        expect("events", events.iter().map(|(_, count, _)| count).sum(), placed.len() + 1);
        Ok(Self {
            placed: placed.len(),
            rolled_back: rolled_back.len(),
            events,
            dead_letters: dead
                .into_iter()
                .map(|dead| format!("{}  {}", dead.id, dead.last_error.unwrap_or_default()))
                .collect(),
            book: book.clone(),
            problems,
        })
    }

    pub(crate) fn verdict(&self) -> Result<(), Box<dyn Error>> {
        if self.problems.is_empty() { Ok(()) } else { Err(self.problems.join("; ").into()) }
    }
}

/// Every order that was placed, but those of the refused card, is charged once with its own amount; nothing else is.
fn charge_problems(placed: &[Order], book: &Book) -> Vec<String> {
    let mut charged: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for order in book.charges.values() {
        charged.entry(order.id).or_default().push(order.cents);
    }
    let due: BTreeMap<i64, Vec<i64>> = placed
        .iter()
        .filter(|order| order.customer != REFUSED_CUSTOMER)
        .map(|order| (order.id, vec![order.cents]))
        .collect();
    let orders = due.keys().chain(charged.keys().filter(|id| !due.contains_key(id)));
    orders
        .filter(|id| due.get(id) != charged.get(id))
        .map(|id| format!("order {id}: charged {:?}, due {:?}", charged.get(id), due.get(id)))
        .collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let book = &self.book;
        let mut row =
            |what: &str, count: &dyn fmt::Display, note: &str| writeln!(f, "{what:<26}{count:>6}  {note}");
        row("orders placed", &self.placed, "order and event committed together")?;
        row("orders rolled back", &self.rolled_back, "over the credit limit: neither order nor event")?;
        for (status, count, attempts) in &self.events {
            row(&format!("events {status}"), count, &format!("{attempts} failed attempts"))?;
        }
        row("provider calls", &book.calls(), "")?;
        row("  answered with an error", &book.failed, "some of them after the charge was made")?;
        row("  refused", &book.refused, &format!("the card of {REFUSED_CUSTOMER}"))?;
        row("  repeated", &book.repeated, "known by their idempotency key, not charged again")?;
        let verdict = if self.problems.is_empty() { "each exactly once" } else { "WRONG, see below" };
        row("charges made", &book.charges.len(), verdict)?;
        writeln!(f, "\ndead letters, for a person to decide:")?;
        for dead in &self.dead_letters {
            writeln!(f, "  {dead}")?;
        }
        write!(f, "\nnext:\n  {LOOK}\n{NEXT}")
    }
}

const NEXT: &str =
    "  $EDITOR examples/quickstart/src/billing.rs     # the whole service; break something and run again
  examples/webhook-relay/crash-test              # real deliveries, and a worker that is killed in the middle
";
