//! Windrow embedded in a program: greets a thousand people at 200/s. Ctrl-C stops it; the same command resumes.
//!
//! cargo run --example embed

use windrow::{Job, Windrow};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let windrow = Windrow::builder().store("embed-progress").build().await?;
    let job = Job::items(0..1000)
        .name("greetings")
        .rate("200/s")
        .max_attempts(3)
        .handler(greet);
    let running = windrow.start(job).await?;
    let report = tokio::select! {
        report = running.wait() => report?,
        _ = tokio::signal::ctrl_c() => {
            running.stop().await?;
            running.wait().await?
        }
    };
    println!(
        "{:?}: {} of {} done, {} failed",
        report.end, report.succeeded, report.total, report.failed
    );
    for failures in &report.failures {
        println!("{} × {}: {}", failures.count, failures.code, failures.example);
    }
    windrow.close().await;
    Ok(())
}

/// Fails for one person in a hundred; that item fails after three attempts.
async fn greet(item: windrow::Item) -> Result<(), String> {
    if item.index.0 % 100 == 99 {
        return Err(format!("{} doesn't want to be greeted", item.key));
    }
    Ok(())
}
