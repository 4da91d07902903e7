//! The behaviour contract, row by row: one suite that every database runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod enqueue;
mod fixture;
mod keys;
mod leases;
mod oneshot;
mod order;
mod payloads;
mod running;
mod suite;
mod tables;
mod tx;

suite::suite!(sqlite, sqlx::Sqlite);
suite::suite!(postgres, sqlx::Postgres);
suite::suite!(mysql, sqlx::MySql);
