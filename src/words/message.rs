//! Messages and their forms.

use std::fmt;

use serde::ser::{Serialize, SerializeMap, SerializeStruct, Serializer};

use crate::arg::Arg;
use crate::template;

/// Code of a message with the names of its arguments and its templates.
#[derive(Debug)]
pub struct Form {
    /// Stable code: area and name, such as `explain.keeps_rate`.
    pub code: &'static str,
    /// Names of the arguments, in their order.
    pub names: &'static [&'static str],
    /// English text with placeholders.
    pub english: &'static str,
    /// Chinese text with placeholders.
    pub chinese: &'static str,
}

/// A fact for people: a form with the values of its arguments. Displayed in English.
#[derive(Clone)]
pub struct Message {
    form: &'static Form,
    args: Vec<Arg>,
}

impl Message {
    /// Made by the functions of the areas, which know the types of the arguments.
    pub(crate) fn new(form: &'static Form, args: Vec<Arg>) -> Message {
        Message { form, args }
    }

    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        self.form.code
    }

    /// Returns the English template, which is the text of a message without arguments.
    pub fn english(&self) -> &'static str {
        self.form.english
    }

    /// Iterates over names and values of the arguments.
    pub fn args(&self) -> impl Iterator<Item = (&'static str, &Arg)> {
        self.form.names.iter().copied().zip(&self.args)
    }
}

/// Messages are equal if they say the same: the same code with the same arguments.
impl PartialEq for Message {
    fn eq(&self, other: &Message) -> bool {
        self.code() == other.code() && self.args == other.args
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        template::render(f, self.form.english, self.form.names, &self.args)
    }
}

impl fmt::Debug for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {self}", self.form.code)
    }
}

/// Serialized as `{"code", "args", "text"}`.
impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        struct Args<'a>(&'a Message);
        impl Serialize for Args<'_> {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut map = serializer.serialize_map(Some(self.0.args.len()))?;
                for (name, arg) in self.0.args() {
                    map.serialize_entry(name, arg)?;
                }
                map.end()
            }
        }
        let mut shape = serializer.serialize_struct("Message", 3)?;
        shape.serialize_field("code", self.form.code)?;
        shape.serialize_field("args", &Args(self))?;
        shape.serialize_field("text", &self.to_string())?;
        shape.end()
    }
}

/// Declares the messages of an area: a function for each, which takes its arguments, and the list of their forms. The types
/// of arguments are `Count`, `Span`, `Text` and `Message`.
macro_rules! messages {
    ($area:literal; $($name:ident($($arg:ident: $type:ty),*) $english:literal $chinese:literal;)+) => {
        #[allow(non_upper_case_globals, reason = "a form is named as its function")]
        mod forms {
            use crate::message::Form;
            $(pub(super) static $name: Form = Form {
                code: concat!($area, ".", stringify!($name)),
                names: &[$(stringify!($arg)),*],
                english: $english,
                chinese: $chinese,
            };)+
        }
        $(
            #[doc = concat!("“", $english, "”")]
            pub fn $name($($arg: impl Into<$type>),*) -> $crate::Message {
                $crate::Message::new(&forms::$name, vec![$($crate::Arg::from($arg.into() as $type)),*])
            }
        )+
        pub(crate) static FORMS: &[&$crate::Form] = &[$(&forms::$name),+];
    };
}
pub(crate) use messages;
