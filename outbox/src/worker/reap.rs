//! The reaper: declares workers dead whose heartbeat is too old, and frees events that nobody holds any more.

use super::session::Session;
use crate::admin::PAGE;
use crate::backend::Backend;
use crate::backend::data::Status;
use crate::store::run;

/// Frees everything that is to be freed now.
pub(super) async fn run_once<DB: Backend>(session: &Session<DB>) -> Result<(), sqlx::Error> {
    loop {
        let reaped = run!(session.setup.store, |at| DB::reap(at, PAGE))?;
        let dead = reaped.iter().filter(|event| event.status == Status::DeadLetter).count();
        session.setup.tally.add_reaped(reaped.len());
        if !reaped.is_empty() {
            tracing::warn!(
                name: "outbox.reaped", number = reaped.len(), dead_lettered = dead, first_type = reaped[0].event_type,
                "freed events of workers that died or do not end"
            );
        }
        if reaped.len() < PAGE.unsigned_abs() as usize {
            return Ok(());
        }
    }
}
