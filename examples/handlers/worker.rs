// rustc handler.rs && windrow try -- ./handler
use std::io::{BufRead, Result, stdin};

fn main() -> Result<()> {
    for line in stdin().lock().lines() {
        let line = line?;
        if line.contains(r#""type":"item""#) {
            eprintln!("item: {line}");                         // the work; stdout is for answers only
            println!("ok");                                    // or: skip, retry, fail
        }
    }
    Ok(())
}
