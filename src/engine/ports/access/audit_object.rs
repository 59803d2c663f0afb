//! Object of an audit entry: the one thing that a change touched.

use std::fmt;
use std::str::FromStr;
use windrow_words::engine as say;

use windrow_core::ids::TaskId;

windrow_core::slugs! {
    /// Kind of thing that changes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ObjectKind {
        /// A task, by its id such as `t12`.
        Task = "task",
        /// A schedule, named `business/name`.
        Schedule = "schedule",
        /// A limit, by its name.
        Limit = "limit",
        /// An alert, by its name.
        Alert = "alert",
        /// A token, by its number, since one holder may have several.
        Token = "token",
        /// The sign-in of a browser, by its number.
        Session = "session",
        /// A business, by its slug.
        Business = "business",
        /// A dataset, by the name that readers use.
        Dataset = "dataset",
        /// A node, by its name.
        Node = "node",
        /// The database itself, by its id.
        Store = "store",
    }
}

/// Thing that a change touched, written `task:t12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditObject {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// Name, unique among objects of its kind.
    pub name: String,
}

impl AuditObject {
    /// Returns the object of this kind with this name.
    pub fn new(kind: ObjectKind, name: impl Into<String>) -> AuditObject {
        AuditObject {
            kind,
            name: name.into(),
        }
    }

    /// Returns a task as an object.
    pub fn task(id: TaskId) -> AuditObject {
        AuditObject::new(ObjectKind::Task, id.to_string())
    }

    /// Returns a schedule of a business as an object.
    pub fn schedule(business: &str, name: &str) -> AuditObject {
        AuditObject::new(ObjectKind::Schedule, format!("{business}/{name}"))
    }
}

impl fmt::Display for AuditObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// Error for a text that names no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", say::no_object("task:t12, schedule:shop/nightly, limit:vendor"))]
pub struct NotAnObject;

impl FromStr for AuditObject {
    type Err = NotAnObject;

    fn from_str(text: &str) -> Result<AuditObject, NotAnObject> {
        let (kind, name) = text.split_once(':').ok_or(NotAnObject)?;
        let kind = ObjectKind::parse(kind).ok_or(NotAnObject)?;
        match name.is_empty() {
            true => Err(NotAnObject),
            false => Ok(AuditObject::new(kind, name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_read_back_as_they_are_written() {
        for kind in ObjectKind::ALL {
            for name in ["t12", "shop/nightly", "a:b c"] {
                let object = AuditObject::new(kind, name);
                assert_eq!(object.to_string().parse(), Ok(object));
            }
        }
        for wrong in ["", "t12", "task:", ":t12", "tasks:t12", "Task:t12"] {
            assert_eq!(wrong.parse::<AuditObject>(), Err(NotAnObject), "{wrong:?}");
        }
    }
}
