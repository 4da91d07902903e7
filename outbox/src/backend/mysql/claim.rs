//! The claim: a look that locks nothing, then a short transaction for what it found.

use std::collections::{BTreeSet, HashMap};

use super::short::{Bound, Short};
use super::{Result, Statements};
use crate::backend::At;
use crate::backend::data::{Claim, Claimed, Kind, Position, count, json};
use crate::backend::rows;
use crate::backend::statements::Sql;

/// Claims a batch. Of claims side by side all find the same events, and one gets them: the others look past those.
pub(super) async fn batch(mut at: At<'_, sqlx::MySql>, claim: &Claim<'_>) -> Result<Vec<Claimed>> {
    const LOOKS: usize = 8;
    let mut held = BTreeSet::new();
    for _ in 0..LOOKS {
        let found = candidates(&mut at, claim, &held).await?;
        if found.is_empty() {
            break;
        }
        let claimed = take(&mut at, claim.worker, &found).await?;
        if !claimed.is_empty() {
            return Ok(claimed);
        }
        held.extend(found);
    }
    Ok(Vec::new())
}

/// What a claim would take, leaving out what others hold.
async fn candidates(
    at: &mut At<'_, sqlx::MySql>,
    claim: &Claim<'_>,
    held: &BTreeSet<i64>,
) -> Result<BTreeSet<i64>> {
    if claim.kinds.is_empty() {
        return Ok(BTreeSet::new());
    }
    // They are found again, so there is room for them.
    let more = |places: usize| count(places.saturating_add(held.len()));
    let now = at.now;
    let ended = json(claim.ended_keys)?;
    let text = text(at.sql, claim);
    let mut query = text.query();
    if claim.suspects > 0 {
        for (turn, kind) in turns(claim) {
            query = bind_kind(query, turn, kind, held.len()).bind(now).bind(kind.version);
            query = query.bind(count(claim.suspects.min(kind.room)));
        }
        query = query.bind(count(claim.suspects));
    }
    for (turn, kind) in turns(claim) {
        query = bind_mark(bind_kind(query, turn, kind, held.len()), kind.after).bind(now).bind(kind.version);
        query = query.bind(more(claim.limit.min(kind.room)));
    }
    for (turn, kind) in turns(claim) {
        query = bind_mark(bind_kind(query, turn, kind, held.len()), kind.keyed_after)
            .bind(now)
            .bind(kind.version);
        query = query.bind(claim.keyed_looks.map_or(i64::MAX, count)).bind(more(claim.limit.min(kind.room)));
    }
    if !claim.ended_keys.is_empty() {
        for (turn, kind) in turns(claim) {
            query = query.bind(turn).bind(more(kind.room)).bind(&ended).bind(kind.event_type);
            query = query.bind(now).bind(kind.version);
        }
    }
    let found = query.bind(more(claim.limit)).fetch_all(&mut *at.conn).await?;
    let mut rooms: HashMap<i64, usize> = turns(claim).map(|(turn, kind)| (turn, kind.room)).collect();
    let mut chosen = BTreeSet::new();
    for (seq, turn) in rows::all(&found, rows::two_numbers)? {
        let room = rooms.entry(turn).or_default();
        // The next of a key that has ended may be found twice.
        if chosen.len() < claim.limit && *room > 0 && !held.contains(&seq) && chosen.insert(seq) {
            *room -= 1;
        }
    }
    Ok(chosen)
}

/// The statement for this number of kinds: so few texts are prepared.
fn text(sql: &Statements, claim: &Claim<'_>) -> Sql {
    let arms = |arm: &Sql| vec![arm.text(); claim.kinds.len()].join(" UNION ALL ");
    let mut all = Vec::new();
    if claim.suspects > 0 {
        all.push(sql.suspects.with("{arms}", &arms(&sql.arm_suspect)).text().to_owned());
    }
    all.push(arms(&sql.arm_due));
    all.push(arms(&sql.arm_keyed));
    if !claim.ended_keys.is_empty() {
        all.push(arms(&sql.arm_ended));
    }
    sql.candidates.with("{arms}", &all.join(" UNION ALL "))
}

fn turns<'k>(claim: &Claim<'k>) -> impl Iterator<Item = (i64, &'k Kind<'k>)> {
    (0..).zip(claim.kinds)
}

fn bind_kind<'q>(query: Bound<'q>, turn: i64, kind: &Kind<'q>, held: usize) -> Bound<'q> {
    query.bind(turn).bind(count(kind.room.saturating_add(held))).bind(kind.event_type)
}

fn bind_mark(query: Bound<'_>, mark: Option<Position>) -> Bound<'_> {
    let Position { due, seq } = mark.unwrap_or(Position { due: i64::MIN, seq: 0 });
    query.bind(due).bind(due).bind(seq)
}

/// Claims what was found, as far as nobody was faster.
pub(super) async fn take(
    at: &mut At<'_, sqlx::MySql>,
    worker: &str,
    found: &BTreeSet<i64>,
) -> Result<Vec<Claimed>> {
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let mut short = Short::begin(&mut *at.conn).await?;
    let claimed = take_in(&mut short, at.sql, worker, found, at.now).await;
    short.end(claimed).await
}

async fn take_in(
    short: &mut Short<'_>,
    sql: &Statements,
    worker: &str,
    found: &BTreeSet<i64>,
    now: Option<i64>,
) -> Result<Vec<Claimed>> {
    let found: Vec<i64> = found.iter().copied().collect();
    let claimed = short.read(&sql.claim_lock, &found, |query| query.bind(now), rows::claimed).await?;
    let seqs: Vec<i64> = claimed.iter().map(|event| event.seq).collect();
    short.write(&sql.claim, &seqs, |query| query.bind(worker.to_owned()).bind(now)).await?;
    Ok(claimed)
}
