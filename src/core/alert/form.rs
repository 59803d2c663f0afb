//! Forms in which services take notices.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use windrow_words::alert as say;

use crate::template::{
    Conversion, Item, Place, Placeholder, Roots, Source, Template, TemplateFault, ValueFault,
};

crate::slugs! {
    /// Form of a notice.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum Form {
        /// All members of the notice, as JSON.
        #[default]
        Json = "json",
        /// Message of Slack's incoming webhooks, which Mattermost, Rocket.Chat and Discord (`/slack`) take too.
        Slack = "slack",
        /// Plain text: title, text and link on lines of their own.
        Text = "text",
    }
}

/// Body of a notice with its media type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wording {
    /// Media type, for `content-type`.
    pub media: &'static str,
    /// Text that is sent as the body.
    pub body: String,
}

const JSON: &str = "application/json";

impl Form {
    /// Writes a notice, whose members are the strings `title`, `text` and `url` and any others.
    pub fn write(self, notice: &Value) -> Wording {
        let member = |name: &str| notice[name].as_str().unwrap_or_default();
        let (title, text, url) = (member("title"), member("text"), member("url"));
        match self {
            Form::Json => Wording {
                media: JSON,
                body: notice.to_string(),
            },
            Form::Slack => {
                let text = format!("*{}*\n{}\n<{}|Open>", escaped(title), escaped(text), escaped(url));
                Wording {
                    media: JSON,
                    body: json!({ "text": text }).to_string(),
                }
            }
            Form::Text => Wording {
                media: "text/plain;charset=utf-8",
                body: format!("{title}\n{text}\n{url}\n"),
            },
        }
    }
}

/// Escapes the three characters that Slack's messages give a meaning.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Checks a template of a notice.
///
/// # Errors
/// If it isn't JSON with placeholders of members, which any notice can fill.
pub fn check_template(template: &str) -> Result<(), TemplateFault> {
    let template = Template::parse(template, Place::Json, &mut Roots::default())?;
    let is_safe = |one: &Placeholder| {
        // A notice is flat: no pointer leads deeper.
        let is_member = matches!(&one.source, Source::Member(member) if !member.written().starts_with('/'));
        is_member && matches!(one.conversion, None | Some(Conversion::Text))
    };
    match template.placeholders().all(is_safe) {
        true => Ok(()),
        false => Err(TemplateFault(say::only_members("{title}", "{text}"))),
    }
}

impl Wording {
    /// Fills a template with the members of a notice. Those that events of its kind lack are empty: no notice is lost
    /// for the sake of its form.
    ///
    /// # Errors
    /// If a member doesn't fit its place.
    pub fn of_template(template: &str, notice: &Value, id: &str) -> Result<Wording, ValueFault> {
        let mut roots = Roots::default();
        let template = Template::parse(template, Place::Json, &mut roots)
            .map_err(|fault| ValueFault(fault.to_string()))?;
        let mut notice = notice.clone();
        for name in roots.names() {
            if notice[name].is_null() {
                notice[name] = "".into();
            }
        }
        let data = notice.to_string();
        let mut body = String::new();
        template.render(&Item::new(&roots, Some(&data), 0, id, 1), &mut body)?;
        Ok(Wording { media: JSON, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice() -> Value {
        json!({"type": "alert.stopped", "title": "a <b> & c", "text": "why", "url": "http://x/tasks/t1"})
    }

    #[test]
    fn slack_takes_no_markup_from_names() {
        let written = Form::Slack.write(&notice());
        let body: Value = serde_json::from_str(&written.body).expect("JSON");
        assert_eq!(
            body["text"],
            "*a &lt;b&gt; &amp; c*\nwhy\n<http://x/tasks/t1|Open>"
        );
    }

    #[test]
    fn a_template_is_filled_with_members_as_json() {
        let filled = Wording::of_template(r#"{"msg": {title}, "n": "t: {type}"}"#, &notice(), "d1");
        assert_eq!(
            filled.map(|filled| filled.body).as_deref(),
            Ok(r#"{"msg": "a <b> & c", "n": "t: alert.stopped"}"#)
        );
    }

    #[test]
    fn a_template_that_some_notice_could_not_fill_is_refused_and_what_one_lacks_is_empty() {
        let lacks = r#"{"task": {task}, "of": "{business}"}"#;
        let filled = Wording::of_template(lacks, &notice(), "d1").map(|filled| filled.body);
        assert_eq!(filled.as_deref(), Ok(r#"{"task": "", "of": ""}"#));
        assert!(check_template(lacks).is_ok() && check_template(r#"[{title:text}]"#).is_ok());
        for wrong in [
            "{title",
            "[{param.x}]",
            "[{secret.x}]",
            "[{index}]",
            "[{failed:number}]",
            "[{/a/b}]",
        ] {
            assert!(check_template(wrong).is_err(), "{wrong}");
        }
    }
}
