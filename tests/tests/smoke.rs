use outbox::*;
use std::time::Duration;
#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema, Debug)]
struct Inv {
    n: u32,
}
impl Event for Inv {
    const EVENT_TYPE: &'static str = "a.inv";
}
fn def() -> HandlerDef {
    HandlerDef::new::<Inv>("h", file!(), line!(), |d| {
        Box::pin(async move {
            let e = outbox::private::decode_payload::<Inv>(&d)?;
            if e.n % 100 == 7 && d.context().attempts() == 0 {
                return outbox::private::finish(Err::<(), _>("boom"));
            }
            if e.n == 13 {
                panic!("oh");
            }
            Ok(())
        })
    })
    .backoff(Backoff::fixed(Duration::from_millis(50)))
}
#[tokio::test(flavor = "multi_thread")]
async fn smoke() {
    let dir = std::env::temp_dir().join(format!("smoke-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let url = format!("sqlite://{}/a.db", dir.display());
    let o = Outbox::<sqlx::Sqlite>::connect(&url).await.unwrap().registry(Registry::empty().with(def()));
    println!("{:?}", o.worker().spawn().await.map(|_| ()).unwrap_err().to_string());
    o.migrate().await.unwrap();
    o.migrate().await.unwrap();
    let w = o.worker().spawn().await.unwrap();
    let t = std::time::Instant::now();
    for chunk in 0..20 {
        let mut tx = o.begin().await.unwrap();
        for i in 0..100 {
            outbox::enqueue::<Inv>(&mut tx, Inv { n: chunk * 100 + i }).max_attempts(3).await.unwrap();
        }
        o.commit(tx).await.unwrap();
    }
    println!("enqueued {:?}", t.elapsed());
    loop {
        let s = o.stats().await.unwrap();
        if s.is_idle() {
            println!("{s:?}");
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    println!("done {:?}", t.elapsed());
    println!("{:?}", w.stop().await.unwrap());
    let mut tx = o.begin().await.unwrap();
    let id = outbox::enqueue::<Inv>(&mut tx, &Inv { n: 1 }).await.unwrap().id();
    tx.commit().await.unwrap();
    println!("{:?}", o.process_event(id).await.unwrap());
    println!("{:?}", o.process_event(id).await.unwrap());
    println!("{:?}", o.process_batch(BatchOptions::new()).await.unwrap());
    let dead = o.find_dead_lettered(&["a.inv"], Page::default()).await.unwrap();
    println!("{:?}", dead);
    o.requeue(dead[0].id).await.unwrap();
    println!("{:?}", o.discard(dead[0].id).await.unwrap_err().to_string());
    let mut c = o.pool().acquire().await.unwrap();
    println!(
        "{:?} {:?}",
        o.has_inflight::<Inv>(&mut *c, "n", "13").await.unwrap(),
        o.has_inflight::<Inv>(&mut *c, "n", "14").await.unwrap()
    );
    println!("pruned {:?}", o.prune(Status::Completed, Duration::ZERO).await.unwrap());
}
