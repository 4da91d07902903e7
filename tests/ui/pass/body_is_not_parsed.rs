//! What stands between the braces is the compiler's affair alone.
#![deny(warnings)]

use outbox::{HandlerResult, outbox_handler};

#[derive(serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
struct Invoice {
    lines: Vec<Option<i64>>,
}

#[outbox_handler("pass.body")]
async fn push(event: Invoice) -> HandlerResult {
    #![allow(non_snake_case)]

    let Some(Some(FIRST)) = event.lines.first() else { return Err("empty".into()) };
    let sum = async { event.lines.iter().flatten().sum::<i64>() }.await;
    'label: loop {
        if let Some(&Some(last)) = event.lines.last()
            && last == *FIRST
        {
            break 'label;
        }
        Err(format!("{sum:>8} — {0}", r#"not "raw""#))?
    }
    Ok(())
}

fn main() {
    drop(push(Invoice { lines: Vec::new() }));
}
