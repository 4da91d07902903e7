//! There are none: neither server tells one session what another has committed.

use sqlx::{MySql, Pool};

use super::Result;
use crate::backend::signals::{Sign, Signals};

/// Never rings. Workers find events of other processes by polling.
#[derive(Debug)]
pub struct NoSignals;

impl Signals<MySql> for NoSignals {
    async fn open(_pool: &Pool<MySql>, _schema: Option<&str>) -> Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) -> Result<Sign> {
        std::future::pending().await
    }

    async fn send(&mut self, _sign: Sign) -> Result<()> {
        Ok(())
    }

    async fn check(&mut self) -> Result<()> {
        Ok(())
    }
}
