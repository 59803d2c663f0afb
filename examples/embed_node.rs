//! A node embedded in a program: the HTTP API of `windrow serve`, with closures as handlers. A business names one of
//! them as its `command`. Ctrl-C drains; the same command resumes.
//!
//! cargo run --example embed_node
//! curl -d '{"name": "greetings", "command": "greet"}' -H 'content-type: application/json' 127.0.0.1:7700/v1/businesses
//! windrow task create greetings --total 1000 --rate 200/s --start

use windrow::{Item, Windrow};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let node = Windrow::builder()
        .store("node-progress")
        .node()
        .listen(
            std::env::args()
                .nth(1)
                .unwrap_or_else(|| "127.0.0.1:7700".to_owned()),
        )
        .without_sign_in()
        .handler("greet", greet)
        .handler("log", async |item: Item| {
            println!("{}: {}", item.key, item.data.unwrap_or_default());
            Ok::<_, std::convert::Infallible>(())
        })
        .serve()
        .await?;
    println!("listens on {}", node.url());
    tokio::select! {
        () = node.failed() => eprintln!("the node stopped unexpectedly"),
        _ = tokio::signal::ctrl_c() => println!("draining"),
    }
    node.close().await;
    Ok(())
}

/// Fails for one person in a hundred.
async fn greet(item: Item) -> Result<(), String> {
    if item.index.0 % 100 == 99 {
        return Err(format!("{} doesn't want to be greeted", item.key));
    }
    Ok(())
}
