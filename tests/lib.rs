//! The tests of `outbox`: see `conformance` for the contract, one suite for every database.
