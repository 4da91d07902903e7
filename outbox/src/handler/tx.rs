//! `Tx`: a transaction that is lent to a handler, and in which its event completes.

use std::any::type_name;
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

use sqlx::Transaction;

use super::{Delivery, ExtractError, FromDelivery, Requirements};
use crate::backend::Backend;
use crate::enqueue::InTransaction;

/// A transaction in which the event's completion commits with the handler's own writes: both, or neither. So what the
/// handler writes there is applied exactly once, however often it crashes. It derefs to the connection; events that
/// are enqueued in it belong to it, too.
///
/// `Ok` commits; an error, a panic, a timeout or a lost lease rolls back. A serialization failure at the commit is nobody's
/// fault: the event comes again at once, with no attempt spent. There is no `commit`: the handler only gives
/// the transaction back, by dropping it at its end.
///
/// Handlers with a `Tx` have connections of their own, see [`Worker::tx_connections`](crate::Worker::tx_connections). The
/// transaction begins before the handler's timeout does, and stays open while the handler runs: what takes long, or
/// happens elsewhere, belongs into another handler. On SQLite it holds the file's only write lock: one such handler runs
/// at a time, its timeout is 5 s unless it names another, and at most half the lease.
///
/// ```
/// use outbox::{HandlerResult, Tx, outbox_handler};
/// # #[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
/// # struct Transfer { from: i64, to: i64, cents: i64 }
///
/// #[outbox_handler("bank.transfer", timeout = "2s")]
/// async fn transfer(transfer: Transfer, mut tx: Tx<sqlx::Sqlite>) -> HandlerResult {
///     for (account, cents) in [(transfer.from, -transfer.cents), (transfer.to, transfer.cents)] {
///         sqlx::query("UPDATE account SET cents = cents + $1 WHERE id = $2")
///             .bind(cents)
///             .bind(account)
///             .execute(&mut *tx)
///             .await?;
///     }
///     Ok(())
/// }
/// ```
pub struct Tx<DB: Backend> {
    /// Empty only once it is dropped.
    tx: Option<Transaction<'static, DB>>,
    home: Home<DB>,
}

/// Where the runner gets it back.
pub(crate) struct Home<DB: Backend>(Arc<Mutex<Option<Transaction<'static, DB>>>>);

impl<DB: Backend> Clone for Home<DB> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<DB: Backend> Home<DB> {
    /// `None`: whoever has it has not let go.
    pub(crate) fn take(&self) -> Option<Transaction<'static, DB>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<DB: Backend> Tx<DB> {
    /// Lends a transaction, and says where it comes back.
    pub(crate) fn lend(tx: Transaction<'static, DB>) -> (Self, Home<DB>) {
        let home = Home(Arc::default());
        (Self { tx: Some(tx), home: home.clone() }, home)
    }
}

impl<DB: Backend> Drop for Tx<DB> {
    fn drop(&mut self) {
        *self.home.0.lock().unwrap_or_else(PoisonError::into_inner) = self.tx.take();
    }
}

impl<DB: Backend> Deref for Tx<DB> {
    type Target = DB::Connection;

    fn deref(&self) -> &DB::Connection {
        self.tx.as_deref().expect("it is there until it is dropped")
    }
}

impl<DB: Backend> DerefMut for Tx<DB> {
    fn deref_mut(&mut self) -> &mut DB::Connection {
        self.tx.as_deref_mut().expect("it is there until it is dropped")
    }
}

impl<DB: Backend> InTransaction for Tx<DB> {
    type Database = DB;

    fn connection(&mut self) -> &mut DB::Connection {
        self
    }
}

impl<DB: Backend> FromDelivery for Tx<DB> {
    fn requires(requirements: &mut Requirements<'_>) {
        requirements.transaction::<DB>(type_name::<DB>());
    }

    fn from_delivery(delivery: &mut Delivery) -> Result<Self, ExtractError> {
        delivery
            .take_lent::<Self>()
            .ok_or_else(|| ExtractError::new("no transaction was lent to this handler"))
    }
}

impl<DB: Backend> fmt::Debug for Tx<DB> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tx").finish_non_exhaustive()
    }
}
