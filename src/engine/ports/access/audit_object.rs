//! The object of an audit entry: the one thing that a change touched.

use std::fmt;
use std::str::FromStr;
use windrow_words::engine as say;

use windrow_core::ids::TaskId;

windrow_core::slugs! {
    /// A kind of thing that changes.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ObjectKind {
        /// Named `t12`.
        Task = "task",
        /// Named `business/name`.
        Schedule = "schedule",
        /// A named limit.
        Limit = "limit",
        /// A token, by its number: several may have one holder.
        Token = "token",
        /// The sign-in of a browser, by its number.
        Session = "session",
        /// Named by its slug.
        Business = "business",
        /// Named as its readers do.
        Dataset = "dataset",
        /// A node, by its name.
        Node = "node",
        /// The database itself, by its id.
        Store = "store",
    }
}

/// The thing that a change touched. Written `task:t12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditObject {
    /// The kind.
    pub kind: ObjectKind,
    /// The name, which is one among those of the kind.
    pub name: String,
}

impl AuditObject {
    /// A thing of this kind with this name.
    pub fn new(kind: ObjectKind, name: impl Into<String>) -> AuditObject {
        AuditObject {
            kind,
            name: name.into(),
        }
    }

    /// A task.
    pub fn task(id: TaskId) -> AuditObject {
        AuditObject::new(ObjectKind::Task, id.to_string())
    }

    /// A schedule of a business.
    pub fn schedule(business: &str, name: &str) -> AuditObject {
        AuditObject::new(ObjectKind::Schedule, format!("{business}/{name}"))
    }
}

impl fmt::Display for AuditObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind, self.name)
    }
}

/// The text names no object.
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
