//! Random schedules against a reference: whatever enqueues, claims, outcomes, crashes and reaps come in whatever order,
//! the outbox does what a few hundred plain lines say, on every database.
//!
//! - `schedule` is what can happen, `reference` (and its `event`) what that does: the contract as code;
//! - `world` does it to a real outbox and compares; `calls` are its workers, whose `handlers` wait for the schedule;
//! - `database` is what that needs of each database.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says where")]

mod calls;
mod database;
mod event;
mod handlers;
mod reference;
mod schedule;
mod world;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use outbox_tests::harness::say_left_out;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use sqlx::{MySql, Postgres, Sqlite};

use database::{Database, Store};
use schedule::{Step, schedules};
use world::World;

/// The seed of the first schedule; the next ones have the next seeds.
const SEED: &str = "MODEL_SEED";
/// How many schedules there are.
const SCHEDULES: &str = "MODEL_SCHEDULES";
/// For how long new schedules are begun, in seconds: a slow machine tries fewer, and says how many.
const SECONDS: &str = "MODEL_SECONDS";
const LIMIT: Duration = Duration::from_secs(240);
/// How many schedules run beside each other, each in a database of its own.
const LANES: usize = 2;

#[test]
fn sqlite() {
    holds::<Sqlite>();
}

#[test]
fn postgres() {
    holds::<Postgres>();
}

#[test]
fn mysql() {
    holds::<MySql>();
}

fn holds<DB: Database>() {
    if let Some(why) = DB::left_out() {
        return say_left_out::<DB>(why);
    }
    let first = number(SEED).unwrap_or_else(|| u64::try_from(since_1970_ms() % 1_000_000_000).unwrap());
    let schedules = number(SCHEDULES).unwrap_or(DB::SCHEDULES);
    let lanes = Lanes {
        next: AtomicU64::new(first),
        end: first + schedules,
        tried: AtomicU64::new(0),
        until: Instant::now() + number(SECONDS).map_or(LIMIT, Duration::from_secs),
        failed: AtomicBool::new(false),
    };
    let failures: Vec<String> = std::thread::scope(|scope| {
        let lanes = [(); LANES].map(|()| scope.spawn(|| lane::<DB>(&lanes)));
        lanes.into_iter().filter_map(|lane| lane.join().unwrap()).collect()
    });
    let tried = lanes.tried.into_inner();
    println!("{}: tried {tried} schedules, the first of {SEED}={first}", DB::DATABASE);
    assert!(failures.is_empty(), "{}: {}", DB::DATABASE, failures.join("\n"));
}

/// What the lanes share.
struct Lanes {
    next: AtomicU64,
    end: u64,
    tried: AtomicU64,
    until: Instant,
    failed: AtomicBool,
}

/// Tries one schedule after the other; how one failed.
fn lane<DB: Database>(lanes: &Lanes) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(Store::<DB>::new());
    while !lanes.failed.load(Ordering::Relaxed) && Instant::now() < lanes.until {
        let seed = lanes.next.fetch_add(1, Ordering::Relaxed);
        if seed >= lanes.end {
            break;
        }
        lanes.tried.fetch_add(1, Ordering::Relaxed);
        if let Err(failure) = check(seed, |schedule| runtime.block_on(run(&store, schedule))) {
            lanes.failed.store(true, Ordering::Relaxed);
            return Some(format!("{SEED}={seed} {SCHEDULES}=1: {failure}"));
        }
    }
    None
}

async fn run<DB: Database>(store: &Store<DB>, schedule: &[Step]) -> world::Checked {
    World::new(store).await.run(schedule).await
}

/// Makes the schedule of this seed and tries it; what fails is cut down to what still fails.
fn check(seed: u64, holds: impl Fn(&[Step]) -> world::Checked) -> Result<(), String> {
    let config = Config { cases: 1, failure_persistence: None, max_shrink_iters: 1000, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let tried = runner.run(&schedules(), |schedule| holds(&schedule).map_err(TestCaseError::fail));
    match tried {
        Ok(()) => Ok(()),
        Err(TestError::Fail(why, schedule)) => {
            let steps = schedule.iter().enumerate().map(|(number, step)| format!("\n{number:>4}  {step:?}"));
            Err(format!("{why}\nthe shortest schedule that fails:{}", steps.collect::<String>()))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|number| number.parse().unwrap())
}

fn since_1970_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}
