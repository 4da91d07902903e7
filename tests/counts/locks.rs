//! What a claim locks: no more rows than it takes, or nearly. Counted while other claims are under way.

use std::collections::BTreeSet;
use std::time::Duration;

use outbox::{BatchOptions, Counts, Outbox};
use outbox_tests::harness::{Fresh, Harness, eventually, say_left_out};
use sqlx::{AssertSqlSafe, Connection, MySql, MySqlConnection, Pool, Postgres, Row};

use crate::{Ran, both, database, fill};

const BATCH: usize = 50;

/// By a handle of its own: those of one handle share a connection.
async fn claim<DB: Harness>(pool: Pool<DB>) -> Counts {
    let outbox = Outbox::new(pool).registry(both()).state(Ran::default());
    outbox.process_batch(BatchOptions::new().batch_size(BATCH)).await.unwrap()
}

/// Each claim stops between the lock and the write: at a lock of the test's own, which a trigger asks for.
#[tokio::test(flavor = "multi_thread")]
async fn claims_side_by_side_on_mysql_lock_a_batch_each_and_no_row_twice() {
    const CLAIMERS: usize = 3;
    if let Some(why) = MySql::left_out() {
        return say_left_out::<MySql>(why);
    }
    let Fresh { outbox, url, keep } = MySql::fresh().await;
    outbox.migrate().await.unwrap();
    let pool = outbox.pool();
    for (event_type, rows) in [("test.left", 1_000), ("test.right", 500)] {
        let fill = format!(
            "INSERT INTO outbox_event (id, event_type, payload) \
             WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {rows}) \
             SELECT LOWER(UUID()), '{event_type}', '{{\"n\": 1}}' FROM numbers"
        );
        MySql::sql(pool, fill).await;
    }
    // Triggers call functions in the statement's own session, and the lock's name is the server's.
    let gate = url.rsplit('/').next().unwrap().split('?').next().unwrap().to_owned();
    let trigger = format!(
        "CREATE TRIGGER gate BEFORE UPDATE ON outbox_event FOR EACH ROW \
         IF OLD.status = 'pending' THEN DO GET_LOCK('{gate}', 60), RELEASE_LOCK('{gate}'); END IF"
    );
    MySql::sql(pool, trigger).await;
    let mut keeper = MySqlConnection::connect(&url).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(format!("DO GET_LOCK('{gate}', 0)"))).execute(&mut keeper).await.unwrap();

    let claims: Vec<_> = (0..CLAIMERS).map(|_| tokio::spawn(claim(outbox.pool().clone()))).collect();
    let locked = "SELECT CAST(trx.trx_rows_locked AS SIGNED) FROM information_schema.innodb_trx AS trx \
                  JOIN information_schema.processlist AS session ON session.id = trx.trx_mysql_thread_id \
                  WHERE session.db = database() AND trx.trx_rows_locked > 0 AND session.state = 'User lock'";
    let locks = async || {
        // The server looks again only when it was left alone for a tenth of a second.
        tokio::time::sleep(Duration::from_millis(120)).await;
        let rows = sqlx::query(locked).fetch_all(pool).await.unwrap();
        rows.iter().map(|row| row.get::<i64, _>(0)).collect::<Vec<_>>()
    };
    eventually("all claims wait at the gate", async || locks().await.len() == CLAIMERS).await;
    let locks = locks().await;
    println!("claims of {BATCH} lock {locks:?} rows");
    let batch = i64::try_from(BATCH).unwrap();
    assert!(locks.iter().all(|locks| (batch..=batch + 5).contains(locks)), "{locks:?}");
    keeper.close().await.unwrap();

    for claim in claims {
        assert_eq!(claim.await.unwrap().completed, batch.unsigned_abs(), "a full batch");
    }
    let once = "SELECT count(*) FROM outbox_event WHERE status = 'completed' AND fence = 1";
    assert_eq!(MySql::count(pool, once).await, batch * i64::try_from(CLAIMERS).unwrap());
    drop(keep);
}

/// A row that was locked and not taken still says who locked it.
#[tokio::test(flavor = "multi_thread")]
async fn claims_side_by_side_on_postgres_lock_hardly_more_than_they_take() {
    const CLAIMERS: usize = 4;
    let Some((Fresh { outbox, keep, .. }, _, _alone)) = database().await else { return };
    fill(&outbox, "test.left", 2_000, "available_at", "clock_timestamp()").await;
    fill(&outbox, "test.right", 500, "available_at", "clock_timestamp()").await;
    let claims: Vec<_> = (0..CLAIMERS).map(|_| tokio::spawn(claim(outbox.pool().clone()))).collect();
    let mut completed = BTreeSet::new();
    for claim in claims {
        completed.insert(claim.await.unwrap().completed);
    }
    assert_eq!(completed, BTreeSet::from([50]), "a full batch each");
    let pending = "SELECT count(*) FROM outbox_event WHERE status = 'pending' AND xmax::text <> '0'";
    let locked = Postgres::count(outbox.pool(), pending).await;
    println!("{CLAIMERS} claims of {BATCH} lock {locked} rows that they do not take");
    assert!(locked <= i64::try_from(CLAIMERS * BATCH).unwrap(), "{locked} rows");
    drop(keep);
}
