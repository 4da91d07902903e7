//! What the databases on servers have in common: each case has one of its own there, which is dropped at the end.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU32, Ordering};

/// A name that no other case of any process has.
pub fn fresh_name() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("outbox_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed))
}

type Work = Box<dyn FnOnce() -> Pin<Box<dyn Future<Output = ()>>> + Send>;

/// Does something when it is dropped, on a runtime of its own: that of the case may have ended.
pub struct AtEnd(Option<Work>);

impl AtEnd {
    pub fn new<F: Future<Output = ()> + 'static>(work: impl FnOnce() -> F + Send + 'static) -> Self {
        Self(Some(Box::new(move || Box::pin(work()))))
    }
}

impl Drop for AtEnd {
    fn drop(&mut self) {
        let Some(work) = self.0.take() else { return };
        let done = std::thread::spawn(move || {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work());
        });
        drop(done.join());
    }
}
