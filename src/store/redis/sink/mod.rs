//! Copies of datasets for readers: one hash by index, one by key, and a pointer that names them. All keys of a
//! dataset share a hash tag, so a script sees them together, in a cluster too.
//!
//! | key | what |
//! |---|---|
//! | `windrow:{a1b2c3:board}:current` | a hash, the pointer: `publication`, `generation`, `results`, `items`, `keys`, `summary` |
//! | `windrow:{a1b2c3:board}:g:7:3-12:items` | index → output; of generation 7, copied for dataset 3 under claim 12 |
//! | `windrow:{a1b2c3:board}:g:7:3-12:keys` | value → indexes, `17` or `3,17` |
//! | `windrow:{a1b2c3:board}:copy` | the copy that is being made, and the newest claim |
//! | `windrow:{a1b2c3:board}:old` | older copies that readers may still read |
//!
//! - The pointer moves in one script, only to a complete copy, and never to a lower publication of its dataset or to
//!   an earlier dataset of the same name.
//! - A claim on a copy is refused once a newer one was seen. The newer claim continues where the older one stopped:
//!   results are appended in index order, each range once.
//! - An unfinished copy expires after [`UNFINISHED`] unless it is continued. A copy that is no longer current expires
//!   after the configured grace, and at most [`OLD_MAX`] of them are kept.
//!
//! Required permissions: `~windrow:* +evalsha +eval +hget +hmget +hset +hdel +hlen +hincrby +del +unlink +pexpire
//! +persist +lpush +rpop +llen +ping`; for readers `+hget +hmget +hgetall +hscan`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use windrow_words::store as say;

use redis::Value;
use tokio::runtime::Handle;

use super::link::{Link, Manner, Request, ScriptText};
use super::locate::Servers;
use super::{RedisOptions, millis};
use windrow_config::RedisServers;
use windrow_core::dataset::{GenerationNo, sink_key};
use windrow_core::ids::ItemIndex;
use windrow_engine::ports::clock::Clock;
use windrow_engine::ports::datasets::sink::{Copied, SinkError, SinkJob};
use windrow_engine::ports::tasks::results::ItemOutput;

/// Time after which an unfinished copy expires unless it is continued.
const UNFINISHED: Duration = Duration::from_secs(3600);
/// Time for which older claims are refused after a copy is removed; longer than any process stays suspended.
const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);
/// Maximum number of older copies kept for readers, since frequent publications would fill the memory.
const OLD_MAX: u32 = 3;
/// Maximum size of the list of indexes of one key, in bytes; a longer list is cut and ends with a comma.
const KEY_INDEXES: u32 = 16_000;
/// Maximum connections of a node to a cluster, one per dataset.
const LINKS_MAX: usize = 64;

/// Target of a copy: a generation, under a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlace {
    /// Claim under which the copy is made.
    pub job: SinkJob,
    /// Publication that made the generation current.
    pub publication: u64,
    /// Generation that is copied to readers.
    pub generation: GenerationNo,
}

/// Outcome of beginning a copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// The copy is complete, and readers find it already.
    There,
    /// The copy is to be made or continued.
    Copy {
        /// Key prefix of the copy.
        copy: String,
        /// First index that is not copied yet.
        from: ItemIndex,
    },
}

/// Facts that readers find with a finished copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<'a> {
    /// Number of results in the copy.
    pub results: u64,
    /// True if results can be found by key.
    pub is_keyed: bool,
    /// Summary as JSON text, if there is one.
    pub summary: Option<&'a str>,
}

/// Copies of datasets in the readers' Redis.
pub struct RedisSink {
    options: Arc<RedisOptions>,
    grace: Duration,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    /// One connection per dataset in a cluster, where each may be on another server; otherwise a single one.
    links: Mutex<HashMap<String, Arc<Link>>>,
    begin: Arc<ScriptText>,
    append: Arc<ScriptText>,
    flip: Arc<ScriptText>,
    look: Arc<ScriptText>,
    remove: Arc<ScriptText>,
}

impl RedisSink {
    /// Creates a sink for this Redis; connects on first use.
    pub fn new(options: RedisOptions, grace: Duration, clock: Arc<dyn Clock>, runtime: &Handle) -> RedisSink {
        let script = |text: &str| ScriptText::new(text.to_owned());
        RedisSink {
            options: Arc::new(options),
            grace,
            clock,
            runtime: runtime.clone(),
            links: Mutex::default(),
            begin: script(include_str!("begin.lua")),
            append: script(include_str!("append.lua")),
            flip: script(include_str!("flip.lua")),
            look: script(include_str!("look.lua")),
            remove: script(include_str!("remove.lua")),
        }
    }

    /// Begins a copy, or continues one that an older claim left.
    ///
    /// # Errors
    /// `Fenced` by a newer claim, or `Failed`.
    pub async fn begin(&self, place: &CopyPlace) -> Result<Begun, SinkError> {
        let (job, generation) = (&place.job, place.generation);
        let copy = self.key(
            &job.name,
            &format!("g:{generation}:{}-{}", job.dataset, job.epoch),
        );
        let keys = vec![self.key(&job.name, "current"), self.key(&job.name, "copy")];
        let mut arguments = claim(job).to_vec();
        arguments.extend([place.publication.to_string(), generation.to_string(), copy]);
        let said = self.ask(&job.name, &self.begin, keys, arguments).await?;
        let said = texts(&said).ok_or_else(strange)?;
        let said: Vec<&str> = said.iter().map(String::as_str).collect();
        match said.as_slice() {
            ["there"] => Ok(Begun::There),
            ["fenced"] => Err(SinkError::Fenced),
            ["ahead", newest] => Err(ahead(place, newest)),
            ["copy", copy, at] => Ok(Begun::Copy {
                copy: (*copy).to_owned(),
                from: at.parse().map(ItemIndex).map_err(|_| strange())?,
            }),
            _ => Err(strange()),
        }
    }

    /// Appends the results from one index up to, but not including, another, ascending and with their keys.
    ///
    /// # Errors
    /// `Fenced` by a newer claim, or `Failed`.
    pub async fn append(
        &self,
        (job, copy): (&SinkJob, &str),
        (from, to): (ItemIndex, ItemIndex),
        outputs: &[(ItemOutput, Option<String>)],
    ) -> Result<(), SinkError> {
        let keys = vec![
            self.key(&job.name, "copy"),
            format!("{copy}:items"),
            format!("{copy}:keys"),
        ];
        let mut arguments = claim(job).to_vec();
        arguments.extend([copy.to_owned(), from.0.to_string(), to.0.to_string()]);
        arguments.extend([
            millis(UNFINISHED),
            KEY_INDEXES.to_string(),
            outputs.len().to_string(),
        ]);
        for (output, _) in outputs {
            arguments.extend([output.index.0.to_string(), output.json.to_string()]);
        }
        for (output, key) in outputs {
            arguments.extend(
                key.clone()
                    .into_iter()
                    .flat_map(|key| [key, output.index.0.to_string()]),
            );
        }
        match self.ask(&job.name, &self.append, keys, arguments).await? {
            Value::Int(1) => Ok(()),
            Value::Int(0) => Err(SinkError::Fenced),
            _ => Err(strange()),
        }
    }

    /// Makes a copy current, so that readers find it.
    ///
    /// # Errors
    /// `Fenced` by a newer claim, or `Failed`: also if part of the copy is missing, which starts it over.
    pub async fn flip(
        &self,
        place: &CopyPlace,
        copy: &str,
        finished: &Finished<'_>,
    ) -> Result<(), SinkError> {
        let job = &place.job;
        let own = |rest: &str| self.key(&job.name, rest);
        let [items, values] = [format!("{copy}:items"), format!("{copy}:keys")];
        let keys = vec![own("current"), own("copy"), items, values, own("old")];
        let mut arguments = claim(job).to_vec();
        let (publication, generation) = (place.publication.to_string(), place.generation.to_string());
        arguments.extend([
            copy.to_owned(),
            publication,
            generation,
            finished.results.to_string(),
        ]);
        arguments.extend([millis(self.grace), OLD_MAX.to_string()]);
        arguments.push(u8::from(finished.is_keyed).to_string());
        arguments.extend(finished.summary.map(str::to_owned));
        let said = self.ask(&job.name, &self.flip, keys, arguments).await?;
        match text(&said).as_deref() {
            Some("done") => Ok(()),
            Some("fenced") => Err(SinkError::Fenced),
            Some("ahead") => Err(ahead(place, say::later_one().english())),
            Some("short") => Err(SinkError::Failed(say::copy_lost().to_string())),
            _ => Err(strange()),
        }
    }

    /// Returns true if readers find this copy, complete.
    ///
    /// # Errors
    /// If Redis cannot be asked.
    pub async fn is_there(&self, copied: &Copied) -> Result<bool, SinkError> {
        let keys = vec![self.key(&copied.name, "current")];
        let arguments = vec![copied.dataset.to_string(), copied.publication.to_string()];
        let said = self.ask(&copied.name, &self.look, keys, arguments).await?;
        Ok(said == Value::Int(1))
    }

    /// Removes the copy that readers find.
    ///
    /// # Errors
    /// `Fenced` by a newer claim, or `Failed`.
    pub async fn remove(&self, job: &SinkJob) -> Result<(), SinkError> {
        let keys = vec![self.key(&job.name, "current"), self.key(&job.name, "copy")];
        let mut arguments = claim(job).to_vec();
        arguments.extend([millis(self.grace), millis(TOMBSTONE)]);
        match self.ask(&job.name, &self.remove, keys, arguments).await? {
            Value::Int(1) => Ok(()),
            Value::Int(0) => Err(SinkError::Fenced),
            _ => Err(strange()),
        }
    }

    fn key(&self, dataset: &str, rest: &str) -> String {
        sink_key(&self.options.prefix, &self.options.store, dataset, rest)
    }

    async fn ask(
        &self,
        dataset: &str,
        script: &Arc<ScriptText>,
        keys: Vec<String>,
        arguments: Vec<String>,
    ) -> Result<Value, SinkError> {
        let request = Request::Script {
            script: script.clone(),
            keys,
            arguments,
        };
        Ok(self.link(dataset).call(request).await?)
    }

    /// Returns the connection to the server that holds the keys of a dataset.
    fn link(&self, dataset: &str) -> Arc<Link> {
        let is_cluster = matches!(self.options.url.servers, RedisServers::Cluster(_));
        let of = if is_cluster { dataset } else { "" };
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(of) {
            return link.clone();
        }
        if links.len() >= LINKS_MAX {
            // Connections in use close when their calls end.
            links.clear();
        }
        let servers = Arc::new(Servers::new(self.options.clone()));
        let (clock, runtime) = (self.clock.clone(), self.runtime.clone());
        let link = Link::new((servers, Manner::COPIES), clock, Arc::default(), runtime);
        links.insert(of.to_owned(), link.clone());
        link
    }
}

/// Returns the dataset and the claim number as script arguments.
fn claim(job: &SinkJob) -> [String; 2] {
    [job.dataset.to_string(), job.epoch.to_string()]
}

/// Returns the error for a Redis with a later publication than the database: one of them was restored.
fn ahead(place: &CopyPlace, newest: &str) -> SinkError {
    SinkError::Failed(say::copy_ahead(newest, place.publication).to_string())
}

fn strange() -> SinkError {
    SinkError::Failed(say::redis_strange().to_string())
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => String::from_utf8(bytes.clone()).ok(),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

fn texts(value: &Value) -> Option<Vec<String>> {
    let Value::Array(values) = value else { return None };
    values.iter().map(text).collect()
}
