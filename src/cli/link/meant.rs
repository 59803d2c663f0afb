//! Suggestions for names that don't exist.

use percent_encoding::percent_decode_str;
use serde::Deserialize;

use super::contexts::like;
use super::open::Link;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::output::shell_word;
use windrow_client::{ClientError, Problem, Request, segment};

/// Names searched for a similar one: a single page of the list.
const LOOKED_THROUGH_MAX: u32 = 500;

/// Names of an object of any kind.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ThingNames {
    pub(crate) id: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) business: Option<String>,
}

/// Function that returns the name by which an object in a list is addressed.
type Name = fn(ThingNames) -> Option<String>;

impl Link<'_> {
    /// Converts a client error to a fault. For an unknown name, suggests a similar one.
    pub(super) async fn fault(&self, error: ClientError) -> Fault {
        let missing = match &error {
            ClientError::Problem(problem) => missing(problem),
            _ => None,
        };
        let fault = Fault::of_client(error, self.names);
        let fault = Fault {
            hint: fault.hint.map(|hint| self.said(&hint)),
            ..fault
        };
        match missing {
            Some((list, of, name)) => self.guessed(fault, list, of, &name).await,
            None => fault,
        }
    }

    /// Checks that a business exists, so that a misspelled name doesn't yield an empty list.
    ///
    /// # Errors
    /// `NotFound` if it doesn't exist. A caller without permission to know gets no error.
    pub async fn is_business(&self, name: Option<&str>) -> Result<(), Fault> {
        let Some(name) = name else { return Ok(()) };
        match self.get(&format!("/v1/businesses/{}", segment(name))).await {
            Err(fault) if fault.exit == Exit::NotFound => Err(fault),
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// Adds a hint to a fault if business and name were typed in the wrong order.
    pub(crate) async fn turned_round(&self, fault: Fault, verb: &str, business: &str, name: &str) -> Fault {
        let is_other = async || {
            self.get(&format!("/v1/businesses/{}", segment(name)))
                .await
                .is_ok()
        };
        if fault.exit != Exit::NotFound || self.is_business(Some(business)).await.is_ok() || !is_other().await
        {
            return fault;
        }
        fault.hint(format!(
            "put the business first: windrow {verb} {name} {business}"
        ))
    }

    /// Creates the fault for a name that no task (or schedule) of the business has, or for an unknown business.
    pub(crate) async fn no_such(&self, noun: &str, business: &str, name: &str) -> Fault {
        if let Err(fault) = self.is_business(Some(business)).await {
            return fault;
        }
        let because = format!("{business} has no {noun} {name:?}");
        let fault = Fault::new(Exit::NotFound, format!("no such {noun}"), because)
            .hint(format!("windrow {noun} list --business {business}"));
        let list = Request::get(&format!("/v1/{noun}s"))
            .query("business", business)
            .query("limit", LOOKED_THROUGH_MAX);
        self.guessed(fault, list, |named| named.name, name).await
    }

    /// Creates the fault for an address of a task (or schedule) that is neither a number such as `example` nor a
    /// name. Suggests a similar one.
    pub(crate) async fn no_address(&self, noun: &str, example: &str, address: &str) -> Fault {
        let because = format!("{address:?} is neither an id such as {example} nor business/name");
        let fault = Fault::new(Exit::Usage, format!("invalid {noun} address"), because)
            .hint(format!("`windrow {noun} list` shows both forms"));
        if !address.is_empty() && address.bytes().all(|byte| byte.is_ascii_digit()) {
            return fault.meant(Some(&format!("{}{address}", &example[..1])));
        }
        fault.meant(self.in_full(&format!("/v1/{noun}s"), address).await.as_deref())
    }

    /// Returns the full address, such as `push/team-board`, of the object with this or a similar name.
    async fn in_full(&self, list: &str, name: &str) -> Option<String> {
        let list = Request::get(list).query("limit", LOOKED_THROUGH_MAX);
        let listed: api::Page<ThingNames> = self.client.send(list).await.ok()?.read().ok()?;
        let things = listed.items.iter();
        let known = things.filter_map(|thing| thing.name.as_deref().zip(thing.business.as_deref()));
        let known: Vec<(&str, &str)> = known.collect();
        let names: Vec<&str> = known.iter().map(|(name, _)| *name).collect();
        let named = like(name, &names)?;
        let (name, business) = known.iter().find(|(name, _)| *name == named)?;
        Some(format!("{business}/{name}"))
    }

    /// Suggests a similar name from a list. Leaves the fault unchanged if the list isn't available.
    async fn guessed(&self, fault: Fault, list: Request, of: Name, name: &str) -> Fault {
        let answer = match self.client.send(list).await {
            Ok(answer) => answer,
            Err(ClientError::Problem(problem)) if problem.status == 403 => return self.own(fault).await,
            Err(_) => return fault,
        };
        let listed: api::Page<ThingNames> = answer.read().unwrap_or_default();
        let known = listed.items.into_iter().filter_map(of);
        // (A node that is gone stays listed for a while.)
        let known: Vec<String> = known.filter(|known| known != name).collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        fault.meant(like(name, &known))
    }
}

impl Link<'_> {
    /// Replaces the hint for a caller who may not see the list, since a business's token is for that business alone.
    async fn own(&self, fault: Fault) -> Fault {
        let Ok(answer) = self.client.send(Request::get("/v1/whoami")).await else {
            return fault;
        };
        let Ok(caller) = answer.read::<api::Whoami>() else {
            return fault;
        };
        let hint = match caller.business {
            Some(business) => format!(
                "`windrow biz show {}`: this token is limited to {business}",
                shell_word(&business)
            ),
            None => format!("this token's role is {}; a viewer can list objects", caller.role),
        };
        Fault {
            hint: Some(hint),
            ..fault
        }
    }
}

/// Returns the list to search, the function that names its objects, and the name that is missing.
fn missing(problem: &Problem) -> Option<(Request, Name, String)> {
    // Some problems already contain a suggestion.
    let path = problem
        .missing()
        .filter(|_| problem.errors.iter().all(|field| field.advice.is_none()))?;
    let mut parts = path.strip_prefix("/v1/")?.split('/');
    let (list, of): (Request, Name) = match parts.next()? {
        noun @ ("businesses" | "limits") => (
            Request::get(&format!("/v1/{noun}")).query("limit", LOOKED_THROUGH_MAX),
            |named| named.name,
        ),
        "nodes" => (Request::get("/v1/nodes"), |named| named.id),
        _ => return None,
    };
    let name = percent_decode_str(parts.next()?).decode_utf8().ok()?;
    Some((list, of, name.into_owned()))
}
