//! Short transactions, which lock rows, change them and commit: neither server can update rows and return them at once.

use std::collections::BTreeSet;

use sqlx::mysql::{MySqlArguments, MySqlConnection};
use sqlx::query::Query;
use sqlx::{Connection, Encode, MySql, Transaction, Type};

use super::{Result, Statements};
use crate::backend::data::FoundRow;
use crate::backend::rows;
use crate::backend::statements::Sql;

/// READ COMMITTED, whatever the server's default is: under REPEATABLE READ the gaps between rows are locked too, and
/// producers wait. The rollback ends what a caller that was dropped in the middle of a `begin` has left: sqlx takes no
/// account of it, and neither the isolation nor anything else could be set inside of it.
pub(super) const BEGIN: &str = "ROLLBACK; SET TRANSACTION ISOLATION LEVEL READ COMMITTED; START TRANSACTION";

/// The most values of a list in one statement.
pub(super) const LIST: usize = 1024;

/// A transaction of the statement's own, or the caller's where there is one: a handler's, or that which has a pooler's
/// connection. The caller's is neither committed nor rolled back here.
pub(super) enum Short<'c> {
    Own(Transaction<'c, MySql>),
    Callers(&'c mut MySqlConnection),
}

impl<'c> Short<'c> {
    pub(super) async fn begin(conn: &'c mut MySqlConnection) -> Result<Self> {
        if conn.is_in_transaction() {
            return Ok(Self::Callers(conn));
        }
        conn.begin_with(BEGIN).await.map(Self::Own)
    }

    pub(super) fn conn(&mut self) -> &mut MySqlConnection {
        match self {
            Self::Own(transaction) => transaction,
            Self::Callers(conn) => conn,
        }
    }

    /// Commits, or rolls back what failed: a transaction that is only dropped keeps its locks until its connection is used
    /// again.
    pub(super) async fn end<T>(self, answer: Result<T>) -> Result<T> {
        match (self, answer) {
            (Self::Own(transaction), Ok(answer)) => transaction.commit().await.map(|()| answer),
            (Self::Own(transaction), Err(error)) => {
                // The error that came first says more than that of a connection which is gone.
                drop(transaction.rollback().await);
                Err(error)
            }
            (Self::Callers(_), answer) => answer,
        }
    }

    /// Locks rows by their seqs, passes over those that somebody else has locked, and says what they are.
    pub(super) async fn lock(&mut self, sql: &Statements, seqs: &BTreeSet<i64>) -> Result<Vec<FoundRow>> {
        let seqs: Vec<i64> = seqs.iter().copied().collect();
        self.read(&sql.lock, &seqs, |query| query, rows::found).await
    }

    /// Runs a query for the rows of these seqs; `before` binds what stands before their list.
    pub(super) async fn read<T>(
        &mut self,
        sql: &Sql,
        seqs: &[i64],
        before: impl for<'q> Fn(Bound<'q>) -> Bound<'q> + Send,
        row: fn(&sqlx::mysql::MySqlRow) -> Result<T>,
    ) -> Result<Vec<T>> {
        let mut read = Vec::new();
        for chunk in seqs.chunks(LIST) {
            let list = List::new(sql, chunk);
            let found = list.bind(before(list.sql.query())).fetch_all(self.conn()).await?;
            read.extend(rows::all(&found, row)?);
        }
        Ok(read)
    }

    /// Runs a statement for the rows of these seqs; `before` binds what stands before their list. How many it changed.
    pub(super) async fn write(
        &mut self,
        sql: &Sql,
        seqs: &[i64],
        before: impl for<'q> Fn(Bound<'q>) -> Bound<'q> + Send,
    ) -> Result<u64> {
        let mut changed = 0;
        for chunk in seqs.chunks(LIST) {
            let list = List::new(sql, chunk);
            let query = list.bind(before(list.sql.query()));
            changed += query.execute(self.conn()).await?.rows_affected();
        }
        Ok(changed)
    }
}

/// A statement that values are bound to.
pub(super) type Bound<'q> = Query<'q, MySql, MySqlArguments>;

/// A statement with a list of values: as many places as the next power of two, the last value in those that are left
/// over. So few texts of each statement are prepared.
pub(super) struct List<'l, T> {
    pub(super) sql: Sql,
    values: &'l [T],
}

impl<'l, T> List<'l, T> {
    pub(super) fn new(sql: &Sql, values: &'l [T]) -> Self {
        Self { sql: sql.with_list(values.len().next_power_of_two()), values }
    }

    pub(super) fn bind<'q>(&self, mut query: Bound<'q>) -> Bound<'q>
    where
        T: Encode<'q, MySql> + Type<MySql> + Copy + 'q,
    {
        let places = self.values.len().next_power_of_two();
        for value in self.values.iter().chain(std::iter::repeat(self.values.last()).flatten()).take(places) {
            query = query.bind(*value);
        }
        query
    }
}
