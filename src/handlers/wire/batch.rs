//! Reply about several items at once.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    About, LogBody, Logs, Object, Span, Word, bad_reply, command, into_reply, missing_result, parse_object,
};
use windrow_core::ids::ItemIndex;
use windrow_core::items::verdict::Failure;
use windrow_engine::ports::handling::handler::{CallItems, ItemReplies, ItemVerdict, Reply};

/// Parses the reply about the items of a call: one verdict per item, in the call's order. An item absent from
/// `results` takes `default`; with neither it is a retry with code [`super::MISSING_RESULT`]. Plain success of all
/// becomes [`Reply::AllOk`].
///
/// # Errors
/// A failure with code [`super::BAD_REPLY`], also if `results` names an index that isn't in the call, or one twice:
/// then it is unknown what the business meant.
pub fn parse_batch(bytes: &[u8], items: &CallItems) -> Result<Reply, Failure> {
    let body: BatchBody<'_> = parse_object(bytes)?;
    let commands = command::checked(body.command.map(|object| object.0), bytes)?;
    let mut logs = Logs::default();
    logs.add_all(body.logs, None)
        .map_err(|why| bad_reply(why, bytes))?;
    let results = body.results.unwrap_or_default();
    let places = Places::new(items);
    if commands.is_empty() && logs.lines.is_empty() && is_all_ok(&results, body.default, &places) {
        return Ok(Reply::AllOk);
    }
    let mut verdicts: Vec<Option<ItemVerdict>> = vec![None; places.len];
    for Object(result) in results {
        place(result, &places, &mut verdicts, &mut logs).map_err(|why| bad_reply(why, bytes))?;
    }
    let verdicts = fill(items, verdicts, body.default).map_err(|why| bad_reply(why, bytes))?;
    Ok(into_reply(ItemReplies {
        verdicts,
        commands,
        logs: logs.finish(),
    }))
}

/// Returns true if each item is reported as done, and nothing else is said: nearly every reply is like this, and
/// needs no verdicts.
fn is_all_ok(results: &[Object<ResultBody<'_>>], default: Option<Word>, places: &Places) -> bool {
    let mut seen = vec![0_u64; places.len.div_ceil(64)];
    let is_new = |result: &Object<ResultBody<'_>>| {
        places
            .of(result.0.index)
            .filter(|_| result.0.is_plain_ok())
            .is_some_and(|place| {
                let (word, bit) = (&mut seen[place / 64], 1 << (place % 64));
                let is_new = *word & bit == 0;
                *word |= bit;
                is_new
            })
    };
    let says_all = default == Some(Word::Ok) || results.len() == places.len;
    says_all && results.iter().all(is_new)
}

fn place(
    result: ResultBody<'_>,
    places: &Places,
    verdicts: &mut [Option<ItemVerdict>],
    logs: &mut Logs,
) -> Result<(), String> {
    let ResultBody {
        index,
        result,
        retry_after,
        code,
        message,
        output,
        logs: lines,
    } = result;
    let place = places
        .of(index)
        .ok_or_else(|| format!("item {index} is not in this call"))?;
    if verdicts[place].is_some() {
        return Err(format!("item {index} is in `results` twice"));
    }
    logs.add_all(lines, Some(ItemIndex(index)))?;
    verdicts[place] = Some(match result {
        Some(word) => About {
            retry_after,
            code,
            message,
            output,
        }
        .verdict(word)?,
        None => missing_result(ItemIndex(index)),
    });
    Ok(())
}

fn fill(
    items: &CallItems,
    verdicts: Vec<Option<ItemVerdict>>,
    default: Option<Word>,
) -> Result<Vec<(ItemIndex, ItemVerdict)>, &'static str> {
    let absent = |index| match default {
        Some(word) => About {
            retry_after: None,
            code: None,
            message: None,
            output: None,
        }
        .verdict(word),
        None => Ok(missing_result(index)),
    };
    let pair = |((index, _), verdict): ((ItemIndex, _), Option<ItemVerdict>)| match verdict {
        Some(verdict) => Ok((index, verdict)),
        None => Ok((index, absent(index)?)),
    };
    items.iter().zip(verdicts).map(pair).collect()
}

/// Place of each index in a call.
struct Places {
    len: usize,
    /// First index, end, and place of the first, sorted by index.
    runs: Vec<(u64, u64, usize)>,
}

impl Places {
    fn new(items: &CallItems) -> Places {
        let (mut len, mut runs) = (0, Vec::with_capacity(items.dispatches().len()));
        for dispatch in items.dispatches() {
            runs.push((dispatch.run.first().0, dispatch.run.end().0, len));
            len += dispatch.run.len() as usize;
        }
        runs.sort_unstable();
        Places { len, runs }
    }

    fn of(&self, index: u64) -> Option<usize> {
        let after = self.runs.partition_point(|(first, _, _)| *first <= index);
        let (first, end, place) = *self.runs.get(after.checked_sub(1)?)?;
        (index < end).then(|| place + (index - first) as usize)
    }
}

#[derive(Deserialize)]
struct BatchBody<'a> {
    #[serde(borrow)]
    results: Option<Vec<Object<ResultBody<'a>>>>,
    default: Option<Word>,
    command: Option<Object<command::CommandBody>>,
    #[serde(borrow)]
    logs: Option<Vec<Object<LogBody<'a>>>>,
}

#[derive(Deserialize)]
struct ResultBody<'a> {
    index: u64,
    result: Option<Word>,
    retry_after: Option<Span>,
    code: Option<String>,
    message: Option<String>,
    #[serde(borrow)]
    output: Option<&'a RawValue>,
    #[serde(borrow)]
    logs: Option<Vec<Object<LogBody<'a>>>>,
}

impl ResultBody<'_> {
    /// Returns true for a success with nothing to keep: a code or a message adds nothing to it.
    fn is_plain_ok(&self) -> bool {
        self.result == Some(Word::Ok) && self.output.is_none() && self.logs.is_none()
    }
}
