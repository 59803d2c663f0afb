//! Copies of datasets for readers: a hash an index and one a key, and a pointer that names them. All keys of a dataset have
//! one hash tag, so a script sees them together, also in a cluster.
//!
//! | key | what |
//! |---|---|
//! | `windrow:{a1b2c3:board}:current` | a hash, the pointer: `publication`, `generation`, `results`, `items`, `keys`, `summary` |
//! | `windrow:{a1b2c3:board}:g:7:3-12:items` | index → output; of generation 7, copied for dataset 3 under claim 12 |
//! | `windrow:{a1b2c3:board}:g:7:3-12:keys` | value → indexes, `17` or `3,17` |
//! | `windrow:{a1b2c3:board}:copy` | the copy that is being made, and the newest claim |
//! | `windrow:{a1b2c3:board}:old` | older copies that readers may still read |
//!
//! - The pointer moves in one script, to a copy that is whole, and never to a lower publication of its dataset, or to a
//!   dataset that was made before.
//! - Each claim on a copy is refused once a newer one was met. A newer one goes on where an older one stopped: results are
//!   appended in the order of their indexes, each stretch once.
//! - An unfinished copy goes after [`UNFINISHED`] unless it is gone on with; one that is no longer current after the grace of
//!   the configuration, and at most [`OLD_MAX`] of them stay.
//!
//! What a user needs: `~windrow:* +evalsha +eval +hget +hmget +hset +hdel +hlen +hincrby +del +unlink +pexpire +persist
//! +lpush +rpop +llen +ping`; readers `+hget +hmget +hgetall +hscan`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

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

/// How long an unfinished copy stays that nobody goes on with.
const UNFINISHED: Duration = Duration::from_secs(3600);
/// How long claims that are older than the end of a copy are refused: longer than anybody sleeps.
const TOMBSTONE: Duration = Duration::from_secs(24 * 3600);
/// Older copies that readers may still read, at most: what is published often would fill the memory.
const OLD_MAX: u32 = 3;
/// Indexes of one key; the text of more ends with a comma. Unit: bytes.
const KEY_INDEXES: u32 = 16_000;
/// Connections of a node to a cluster, each for one dataset.
const LINKS_MAX: usize = 64;

/// A place of a copy: which generation, under which claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyPlace {
    /// The claim.
    pub job: SinkJob,
    /// The publication that made the generation current.
    pub publication: u64,
    /// The generation.
    pub generation: GenerationNo,
}

/// What a copy begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// Readers find it already.
    There,
    /// It is to be made from an index on; its keys begin so.
    Copy {
        /// What its keys begin with.
        copy: String,
        /// From which index on.
        from: ItemIndex,
    },
}

/// What readers are to find.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished<'a> {
    /// How many results there are.
    pub results: u64,
    /// Whether there are keys.
    pub is_keyed: bool,
    /// The summary, as JSON text.
    pub summary: Option<&'a str>,
}

/// See the module.
pub struct RedisSink {
    options: Arc<RedisOptions>,
    grace: Duration,
    clock: Arc<dyn Clock>,
    runtime: Handle,
    /// By dataset in a cluster, where each may be on another server; else one.
    links: Mutex<HashMap<String, Arc<Link>>>,
    begin: Arc<ScriptText>,
    append: Arc<ScriptText>,
    flip: Arc<ScriptText>,
    look: Arc<ScriptText>,
    remove: Arc<ScriptText>,
}

impl RedisSink {
    /// Copies to this Redis, which is looked for when it is needed.
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

    /// Begins a copy, or goes on with one that an older claim left.
    ///
    /// # Errors
    /// `Fenced`; or it failed.
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

    /// Appends the results of the indexes from one on to before another, with their keys, ascending.
    ///
    /// # Errors
    /// `Fenced`; or it failed.
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

    /// Has readers find a copy.
    ///
    /// # Errors
    /// `Fenced`; or it failed: also where some of it is missing, which begins it anew.
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
            Some("ahead") => Err(ahead(place, "a later one")),
            Some("short") => {
                let text = "Redis has lost some of the copy while it was made; it is made anew";
                Err(SinkError::Failed(text.to_owned()))
            }
            _ => Err(strange()),
        }
    }

    /// Whether readers find a copy, whole.
    ///
    /// # Errors
    /// Redis can't be asked.
    pub async fn is_there(&self, copied: &Copied) -> Result<bool, SinkError> {
        let keys = vec![self.key(&copied.name, "current")];
        let arguments = vec![copied.dataset.to_string(), copied.publication.to_string()];
        let said = self.ask(&copied.name, &self.look, keys, arguments).await?;
        Ok(said == Value::Int(1))
    }

    /// Takes away what readers find.
    ///
    /// # Errors
    /// `Fenced`; or it failed.
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

    /// The connection to the server that has the keys of a dataset.
    fn link(&self, dataset: &str) -> Arc<Link> {
        let is_cluster = matches!(self.options.url.servers, RedisServers::Cluster(_));
        let of = if is_cluster { dataset } else { "" };
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(link) = links.get(of) {
            return link.clone();
        }
        if links.len() >= LINKS_MAX {
            // Those in use end with their calls.
            links.clear();
        }
        let servers = Arc::new(Servers::new(self.options.clone()));
        let (clock, runtime) = (self.clock.clone(), self.runtime.clone());
        let link = Link::new((servers, Manner::COPIES), clock, Arc::default(), runtime);
        links.insert(of.to_owned(), link.clone());
        link
    }
}

/// The dataset and the number of a claim, as scripts are told them.
fn claim(job: &SinkJob) -> [String; 2] {
    [job.dataset.to_string(), job.epoch.to_string()]
}

/// Redis has a later publication than the database: one of them was put back.
fn ahead(place: &CopyPlace, newest: &str) -> SinkError {
    SinkError::Failed(format!(
        "readers find publication {newest} already, which is later than {} of the database: if the database was restored, \
         delete the keys of the dataset in Redis",
        place.publication
    ))
}

fn strange() -> SinkError {
    SinkError::Failed("Redis answered a script of ours with something else".to_owned())
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
