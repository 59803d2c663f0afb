//! Comparison of files with a node: the requests that bring it to the state that the files describe, each checked by
//! the node as far as it doesn't depend on an earlier one.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::ApplyArgs;
use super::differing::{MASK, differing, secret, text};
use super::kinds::{KINDS, Kind, Members, Present};
use super::read::Wanted;
use super::schema::Schemas;
use crate::exit::Exit;
use crate::fault::Fault;
use crate::link::Link;
use crate::output::difference::{Difference, differences};
use windrow_client::Request;

/// Result for one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Created,
    Changed,
    Removed,
    Unchanged,
}

/// Request of a step. Its body gets the reason when it is sent.
pub(super) struct Order {
    method: &'static str,
    pub(super) path: String,
    body: Members,
    /// Query parameter, if it has one.
    query: Option<(&'static str, &'static str)>,
    revision: Option<u64>,
}

impl Order {
    fn new(method: &'static str, path: String, body: Members) -> Order {
        Order {
            method,
            path,
            body,
            query: None,
            revision: None,
        }
    }

    /// Builds the request, each time with an idempotency key of its own.
    pub(super) fn request(&self, args: &ApplyArgs) -> Request {
        let request = match self.method {
            "POST" => Request::post(&self.path),
            "PATCH" => Request::patch(&self.path),
            _ => Request::delete(&self.path),
        };
        let request = match self.query {
            Some((name, value)) => request.query(name, value),
            None => request,
        };
        let request = match self.revision {
            Some(revision) => request.header("if-match", &format!("\"{revision}\"")),
            None => request,
        };
        match self.method {
            // The deletion of a task reads its reason from a body, and comes after a cancel that has it.
            "DELETE" if self.path.starts_with("/v1/tasks/") => request,
            _ => args.write.request(request, self.body.clone()),
        }
    }
}

/// Step of a plan: one object.
pub(super) struct Step {
    pub(super) address: String,
    /// Name of the object, for the report of a handler's check.
    pub(super) name: String,
    pub(super) outcome: Outcome,
    pub(super) diff: Vec<Difference>,
    /// Requests to send, in order.
    pub(super) orders: Vec<Order>,
}

/// Plan and what is still wrong with it.
pub(super) struct Planner<'a> {
    pub(super) link: &'a Link<'a>,
    pub(super) args: &'a ApplyArgs,
    pub(super) schemas: &'a Schemas,
    /// Names of objects that earlier steps create or change.
    touched: BTreeSet<String>,
    faults: Vec<String>,
    steps: Vec<Step>,
}

/// Makes the plan for all objects. Nothing is changed.
///
/// # Errors
/// `Rejected` with every error of the files and every refusal of the node; otherwise same as [`Link::send`].
pub(super) async fn plan(
    (link, args): (&Link<'_>, &ApplyArgs),
    schemas: &Schemas,
    wanted: Vec<Wanted>,
) -> Result<Vec<Step>, Fault> {
    let mut planner = Planner {
        link,
        args,
        schemas,
        touched: BTreeSet::new(),
        faults: Vec::new(),
        steps: Vec::new(),
    };
    let addresses: BTreeSet<String> = wanted.iter().map(|one| one.address.clone()).collect();
    let mut wanted = wanted.into_iter().peekable();
    let mut surplus = Vec::new();
    for kind in &KINDS {
        let is_of_kind = |one: &Wanted| std::ptr::eq(one.kind, kind);
        if !wanted.peek().is_some_and(is_of_kind) {
            continue;
        }
        let mut present = kind.present(link).await?;
        while let Some(one) = wanted.next_if(is_of_kind) {
            let at = present.iter().position(|present| present.address == one.address);
            let found = match at {
                Some(at) => Some(present.remove(at)),
                None => kind.beyond(link, &one.members).await?,
            };
            planner.one(one, found).await?;
        }
        present.retain(|one| !addresses.contains(&one.address) && one.left_out.is_none());
        surplus.extend(present.into_iter().map(|one| (kind, one)));
    }
    if args.prune {
        planner.prune(surplus).await?;
    }
    match planner.faults.is_empty() {
        true => Ok(planner.steps),
        false => Err(Fault {
            exit: Exit::Rejected,
            what: "can't apply the files; nothing has changed".to_owned(),
            because: planner.faults,
            hint: Some("correct the files; `windrow openapi` lists every member".to_owned()),
        }),
    }
}

impl Planner<'_> {
    async fn one(&mut self, one: Wanted, found: Option<Present>) -> Result<(), Fault> {
        let Some(known) = self.schemas.to_create(one.kind.path) else {
            let because = format!("this node can't create a {}", one.kind.name);
            return Err(Fault::new(Exit::Conflict, "can't apply the files", because).hint("use a newer node"));
        };
        let strangers = self.schemas.strangers(known, &one.members);
        if !strangers.is_empty() {
            let unknown = strangers
                .iter()
                .map(|pointer| format!("{}: {pointer}: unknown member", one.place));
            self.faults.extend(unknown);
            return Ok(());
        }
        match found {
            None => self.create(one).await,
            Some(present) => self.change(one, &present).await,
        }
    }

    async fn create(&mut self, one: Wanted) -> Result<(), Fault> {
        let mut body = one.members;
        body.retain(|_, value| !value.is_null());
        for member in one.kind.secrets {
            let values = body.get(*member).and_then(Value::as_object).into_iter().flatten();
            let kept = values.filter(|(_, value)| **value == MASK);
            self.faults.extend(kept.map(|(name, _)| {
                let place = &one.place;
                format!(
                    "{place}: {member}.{name} is {MASK}, and there is no value to keep; use env:NAME or @FILE"
                )
            }));
        }
        let mut order = Order::new("POST", one.kind.path.to_owned(), body);
        if one.kind.name == "business" && self.args.force {
            order.query = Some(("check", "skip"));
        }
        if !self.depends(&order.body) {
            self.check(&one.place, &order).await?;
        }
        self.step(one.address, Outcome::Created, Vec::new(), vec![order]);
        Ok(())
    }

    async fn change(&mut self, one: Wanted, present: &Present) -> Result<(), Fault> {
        let (kind, is) = (one.kind, &present.members);
        let status = is.get("status").map(text).unwrap_or_default();
        if kind.name == "task" && ["finished", "cancelled"].contains(&status.as_str()) {
            let address = &one.address;
            self.link.say(&format!(
                "{address} is {status}; another name creates another task"
            ));
            self.step(one.address, Outcome::Unchanged, Vec::new(), Vec::new());
            return Ok(());
        }
        let mut body = differing(kind, one.members, is);
        let (mut orders, mut diff) = (Vec::new(), Vec::new());
        let mut switches = switches(present, kind, (&mut body, &mut diff));
        let fixed = self.fixed((kind, &one.place), &body, is);
        if !fixed.is_empty() {
            self.faults.extend(fixed);
            return Ok(());
        }
        if !body.is_empty() {
            let mut order = Order::new("PATCH", present.path.clone(), body);
            order.revision = present.revision;
            let changes = self.changes(kind, (&one.place, &order), present).await?;
            // An empty difference: the node writes the same in another form.
            if !changes.is_empty() {
                diff.extend(changes);
                orders.push(order);
                // The first request makes another revision of it.
                switches.iter_mut().for_each(|switch| switch.revision = None);
            }
        }
        // An archived business can be changed only once it is back.
        switches.append(&mut orders);
        let outcome = if switches.is_empty() {
            Outcome::Unchanged
        } else {
            Outcome::Changed
        };
        self.step(one.address, outcome, diff, switches);
        Ok(())
    }

    /// Returns the members that can't change, each with its place.
    fn fixed(&self, (kind, place): (&Kind, &str), body: &Members, is: &Members) -> Vec<String> {
        let known = self.schemas.to_change(kind.path);
        let is_known = |name: &str| known.is_some_and(|known| known.contains_key(name));
        let fixed = body.iter().filter(|(name, _)| !is_known(name));
        let said = fixed.map(|(name, value)| {
            let is = text(is.get(name).unwrap_or(&Value::Null));
            format!("{place}: /{name} can't change: it is {is}, not {}", text(value))
        });
        said.collect()
    }

    /// Returns the difference that a change makes, according to the node if it can tell already.
    async fn changes(
        &mut self,
        kind: &Kind,
        (place, order): (&str, &Order),
        present: &Present,
    ) -> Result<Vec<Difference>, Fault> {
        let declared = |present: &Present| json!(kind.exported(self.schemas, present));
        if !self.depends(&order.body) {
            let before = declared(present);
            let Some(answer) = self.check(place, order).await? else {
                return Ok(Vec::new());
            };
            let after = kind.read(&answer.would, 0);
            let mut found = differences(&before, &json!(kind.exported(self.schemas, &after)));
            if found.is_empty() && after.revision != present.revision {
                found.push(secret());
            }
            return Ok(found);
        }
        let (mut is, mut wanted) = (Members::new(), Members::new());
        for (name, value) in &order.body {
            is.insert(
                name.clone(),
                present.members.get(name).cloned().unwrap_or_default(),
            );
            wanted.insert(name.clone(), value.clone());
        }
        for member in kind.secrets {
            let values = wanted
                .get_mut(*member)
                .and_then(Value::as_object_mut)
                .into_iter()
                .flatten();
            values
                .filter(|(_, value)| value.is_string())
                .for_each(|(_, value)| *value = json!(MASK));
        }
        let found = differences(&json!(is), &json!(wanted));
        Ok(if found.is_empty() { vec![secret()] } else { found })
    }

    /// Plans the removal of objects that the files don't have, those first that refer to others.
    async fn prune(&mut self, surplus: Vec<(&'static Kind, Present)>) -> Result<(), Fault> {
        let is_own = match surplus.iter().any(|(kind, _)| kind.name == "token") {
            true => Some(self.link.get("/v1/whoami").await?.read::<Members>()?),
            false => None,
        };
        for (kind, present) in surplus.into_iter().rev() {
            // Whoever applies must be able to apply again.
            if kind.name == "token"
                && is_own.as_ref().and_then(|own| kind.address(own)) == Some(present.address.clone())
            {
                continue;
            }
            let mut orders = match kind.end {
                Some(verb) => vec![Order::new(
                    "POST",
                    format!("{}/{verb}", present.path),
                    Members::new(),
                )],
                None => vec![Order::new("DELETE", present.path.clone(), Members::new())],
            };
            if kind.name == "task" && present.members.get("status") == Some(&json!("created")) {
                orders.push(Order::new("DELETE", present.path.clone(), Members::new()));
            }
            // Objects that refer to it may change first.
            let is_free = self.steps.iter().all(|step| step.outcome == Outcome::Unchanged);
            if let Some(first) = orders.first().filter(|_| is_free) {
                self.check(&present.address, first).await?;
            }
            self.step(present.address, Outcome::Removed, Vec::new(), orders);
        }
        Ok(())
    }

    fn step(&mut self, address: String, outcome: Outcome, diff: Vec<Difference>, orders: Vec<Order>) {
        let name = address.rsplit('/').next().unwrap_or_default().to_owned();
        if outcome != Outcome::Unchanged {
            self.touched.insert(name.clone());
        }
        self.steps.push(Step {
            address,
            name,
            outcome,
            diff,
            orders,
        });
    }

    /// True if an object mentions one that an earlier step creates or changes: the node can't judge it yet.
    fn depends(&self, members: &Members) -> bool {
        fn mentions(value: &Value, names: &BTreeSet<String>) -> bool {
            match value {
                Value::String(text) => names.contains(text),
                Value::Array(all) => all.iter().any(|one| mentions(one, names)),
                Value::Object(members) => members.values().any(|one| mentions(one, names)),
                _ => false,
            }
        }
        members
            .iter()
            .any(|(name, value)| name != "name" && mentions(value, &self.touched))
    }

    /// Lets the node check a request without its effect. A refusal becomes a fault of the plan.
    async fn check(&mut self, place: &str, order: &Order) -> Result<Option<api::DryRun>, Fault> {
        let request = order.request(self.args);
        match self.link.tried(&self.schemas.description, request).await {
            Ok((_, plan)) => Ok(Some(plan)),
            Err(fault) if [Exit::Rejected, Exit::Conflict, Exit::NotFound].contains(&fault.exit) => {
                self.faults
                    .extend(fault.because.iter().map(|why| format!("{place}: {why}")));
                Ok(None)
            }
            Err(fault) => Err(fault),
        }
    }
}

/// Takes the members that commands switch out of a change, and returns the commands.
fn switches(
    present: &Present,
    kind: &Kind,
    (body, diff): (&mut Members, &mut Vec<Difference>),
) -> Vec<Order> {
    let mut switches = Vec::new();
    for (member, on, off) in kind.switches {
        let Some(to) = body.remove(*member) else { continue };
        let verb = if to == json!(true) { on } else { off };
        let path = format!("{}/{verb}", present.path);
        switches.push(Order::new("POST", path, Members::new()));
        diff.push(Difference {
            member: (*member).to_owned(),
            from: present.members.get(*member).cloned().unwrap_or_default(),
            to,
        });
    }
    switches
}
