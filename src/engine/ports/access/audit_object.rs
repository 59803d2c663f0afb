//! The object of an audit entry: the one thing that a change touched.

use std::fmt;
use std::str::FromStr;

use windrow_core::ids::TaskId;

/// A kind of thing that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// Named `t12`.
    Task,
    /// Named `business/name`.
    Schedule,
    /// A named limit.
    Limit,
    /// A token, named after who holds it.
    Token,
    /// The sign-in of a browser, by its number.
    Session,
    /// Named by its slug.
    Business,
    /// Named as its readers do.
    Dataset,
    /// A node, by its name.
    Node,
    /// The database itself, by its id.
    Store,
}

impl ObjectKind {
    /// All kinds.
    pub const ALL: [ObjectKind; 9] = [
        ObjectKind::Task,
        ObjectKind::Schedule,
        ObjectKind::Limit,
        ObjectKind::Token,
        ObjectKind::Session,
        ObjectKind::Business,
        ObjectKind::Dataset,
        ObjectKind::Node,
        ObjectKind::Store,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectKind::Task => "task",
            ObjectKind::Schedule => "schedule",
            ObjectKind::Limit => "limit",
            ObjectKind::Token => "token",
            ObjectKind::Session => "session",
            ObjectKind::Business => "business",
            ObjectKind::Dataset => "dataset",
            ObjectKind::Node => "node",
            ObjectKind::Store => "store",
        }
    }

    /// The kind of a word.
    pub fn parse(word: &str) -> Option<ObjectKind> {
        ObjectKind::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// The thing that a change touched. Written `task:t12`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditObject {
    /// Its kind.
    pub kind: ObjectKind,
    /// Its name among those of its kind.
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
        write!(f, "{}:{}", self.kind.as_str(), self.name)
    }
}

/// The text names no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an object is a kind and a name, such as task:t12, schedule:shop/nightly or limit:vendor")]
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
