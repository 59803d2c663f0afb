//! Response formats: pages, CSV, exports, timestamps and common headers.

pub mod costs;
pub(crate) mod export;
pub(crate) mod held;
pub(crate) mod html;
pub mod page;
pub(crate) mod response;
pub mod result_rows;
pub mod sample;
pub(crate) mod silent;
pub mod time;

/// Conversion of a domain type into an API type. API types belong to another crate, so they can't have methods here.
pub(crate) trait Of<T> {
    /// Converts a domain value into its API form.
    fn of(thing: T) -> Self;
}

impl Of<&windrow_words::Message> for api::Message {
    fn of(message: &windrow_words::Message) -> Self {
        let value = |arg| serde_json::to_value(arg).unwrap_or_default();
        api::Message {
            code: message.code().to_owned(),
            args: message
                .args()
                .map(|(name, arg)| (name.to_owned(), value(arg)))
                .collect(),
        }
    }
}
