//! A handler of batches, with a state that all calls share: it looks up eight people at a time.
//!
//! cargo run --example batch

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use windrow::{Answer, Batch, ItemCtx, ItemHandler, Job, LogLevel, Results, Windrow};

#[derive(Serialize, Deserialize)]
struct Person {
    id: u32,
    email: String,
}

/// Directory of people; a real one is a client or a pool of connections.
struct Directory {
    departments: BTreeMap<u32, &'static str>,
}

impl ItemHandler for Directory {
    async fn process(&self, ctx: &ItemCtx<'_>, items: Batch<'_>) -> Results {
        Results::each(items.iter().map(|item| {
            let answer = match item.json::<Person>() {
                Ok(person) => self.look_up(&person),
                Err(why) => Answer::fail("NO_PERSON", why.to_string()),
            };
            ctx.log(Some(item.index), LogLevel::Debug, ctx.idempotency_key(item.index));
            (item.index, answer)
        }))
    }
}

impl Directory {
    fn look_up(&self, person: &Person) -> Answer {
        match self.departments.get(&(person.id % 3)) {
            Some(department) => Answer::output(&format!("{}: {department}", person.email)),
            None => Answer::skip(),
        }
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let people = (0..100).map(|id| Person {
        id,
        email: format!("u{id}@example.org"),
    });
    let directory = Directory {
        departments: BTreeMap::from([(0, "sales"), (1, "support")]),
    };
    let windrow = Windrow::builder().store("batch-progress").build().await?;
    let job = Job::rows(people).name("directory").batch(8).handler_of(directory);
    let report = windrow.run(job).await?;
    println!("{} of {} looked up", report.succeeded, report.total);
    windrow.close().await;
    Ok(())
}
