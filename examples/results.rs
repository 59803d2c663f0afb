//! Rows of a `Vec`, a client that all calls share, and the outputs read back in order.
//!
//! cargo run --example results

use std::sync::Arc;
use std::time::Duration;

use windrow::{Answer, Cause, Item, Job, Windrow};

/// Client of a service; a real one keeps connections.
struct Client {
    names: Vec<&'static str>,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Arc::new(Client {
        names: vec!["Ada", "Grace", "Edsger"],
    });
    let windrow = Windrow::builder().store("results-progress").build().await?;
    let job = Job::rows(vec![0, 2, 1, 7])
        .name("names")
        .rate("50/s")
        .keep_results()
        .handler_with(client, look_up);
    let running = windrow.start(job).await?;
    let report = running.wait().await?;
    let mut outputs = running.outputs().await?;
    while let Some(output) = outputs.next().await? {
        println!("row {}: {}", output.index, output.json::<String>()?);
    }
    for failures in &report.failures {
        println!("{} × {}: {}", failures.count, failures.code, failures.example);
    }
    drop(running);
    windrow.close().await;
    Ok(())
}

async fn look_up(client: Arc<Client>, item: Item) -> Result<Answer, Cause> {
    let number: usize = item.json()?;
    Ok(match client.names.get(number) {
        Some(name) => Answer::output(name),
        // The service asks for patience with its newest rows: another attempt, and nothing sent meanwhile.
        None if item.attempt.get() == 1 => Answer::retry_after(
            Duration::from_millis(20),
            "NOT_YET",
            format!("{number} isn't there yet"),
        )
        .pause(Duration::from_millis(10)),
        None => Answer::fail("NO_SUCH_NUMBER", format!("nobody has the number {number}")),
    })
}
