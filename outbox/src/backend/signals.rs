//! Signs between processes that something was written: they only make a worker look sooner.

use sqlx::Pool;

use super::{Answer, Backend};

/// When what was written can be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// In the next milliseconds: its transaction has not committed.
    Soon,
    /// Now.
    Now,
}

/// Signs over a connection of their own, which is always read. After an error it is done with, and another is opened.
pub trait Signals<DB: Backend>: Send + Sized {
    /// Begins to hear.
    fn open(pool: &Pool<DB>, schema: Option<&str>) -> impl Answer<Self>;

    /// Waits for the next sign of another process. It may be given up halfway, and loses nothing by that.
    fn next(&mut self) -> impl Answer<Sign>;

    /// Gives a sign to the other processes.
    fn send(&mut self, sign: Sign) -> impl Answer<()>;

    /// Whether the connection still lives: one that is cut in the middle says nothing by itself.
    fn check(&mut self) -> impl Answer<()>;
}
