//! A one-shot call that is dropped halfway: by a timeout around it, in a request whose client has gone. Its runs, its
//! settle service and its heartbeat are not part of that future: without this they would go on, and its worker would
//! live for ever.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::life::LAST_MOMENTS;
use super::poll;
use super::session::Session;
use crate::backend::Backend;
use crate::handler::Stop;

/// Ends the session with the call that it is for, unless that has closed it.
#[derive(Debug)]
pub(super) struct EndsWithCall<DB: Backend>(pub(super) Arc<Session<DB>>);

impl<DB: Backend> Drop for EndsWithCall<DB> {
    fn drop(&mut self) {
        let session = Arc::clone(&self.0);
        if session.closed.is_cancelled() {
            return;
        }
        session.draining.cancel();
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move { abandon(&session).await })),
            // The runtime has gone, and with it whatever ran.
            Err(_) => session.closed.cancel(),
        }
    }
}

/// As a shutdown without a grace time; what is left then ends with the lease.
async fn abandon<DB: Backend>(session: &Session<DB>) {
    session.take_back(true);
    session.hands().stop_all(Stop::Shutdown);
    // A claim may have been carried out whose answer nobody waited for.
    poll::recover(session).await;
    session.wait_until(LAST_MOMENTS, |hands| hands.running() == 0).await;
    session.wait_until(LAST_MOMENTS, |hands| hands.len() <= hands.running()).await;
    session.close().await;
}
