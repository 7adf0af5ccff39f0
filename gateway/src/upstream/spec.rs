//! How a server is reached, held to what can be: before anything is started or asked.

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use reach_schemas::card::limits::{ADDRESS_MAX, NAME_MAX, SPAN_MAX, TEXT_MAX};
use reach_schemas::server::{ARGUMENTS_MAX, SETTINGS_MAX};
use reach_schemas::{HeaderSource, ServerSpec, Span};

/// Headers that belong to the transport.
const RESERVED: [&str; 12] = [
    "accept",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// What a header's value may have, in bytes.
const VALUE_MAX: usize = 16 * 1024;

/// All that is wrong with how a server is to be reached; nothing if all is well.
#[must_use]
pub fn mistakes(spec: &ServerSpec) -> Vec<String> {
    let mut wrong = Vec::new();
    match (&spec.command, &spec.url) {
        (None, None) => wrong.push("names neither a command nor a url".to_owned()),
        (Some(_), Some(_)) => {
            wrong.push("names both a command and a url; a server is reached by one of them".to_owned())
        }
        (Some(command), None) if command.trim().is_empty() => wrong.push("command: is empty".to_owned()),
        (Some(_), None) => {
            if !spec.headers.is_empty() {
                wrong.push("headers: go with a url; a command is given `env` and `pass_env`".to_owned());
            }
        }
        (None, Some(url)) => {
            wrong.extend(address(url).err().map(|what| format!("url: {what}")));
            let is_for_command = !spec.args.is_empty() || !spec.env.is_empty() || !spec.pass_env.is_empty();
            if is_for_command || spec.cwd.is_some() {
                wrong.push("args, env, pass_env and cwd go with a command".to_owned());
            }
        }
    }
    sizes(spec, &mut wrong);
    for (name, source) in &spec.headers {
        wrong.extend(header(name, source).err().map(|what| format!("headers.{name}: {what}")));
    }
    let spans = [("start_timeout", Some(spec.start_timeout)), ("timeout", spec.timeout)];
    for (field, span) in spans.into_iter().filter_map(|(field, span)| Some((field, span?))) {
        if span == Span::ZERO || span > SPAN_MAX {
            wrong.push(format!("{field}: is {span}: it is more than nothing and at most {SPAN_MAX}"));
        }
    }
    wrong
}

fn sizes(spec: &ServerSpec, wrong: &mut Vec<String>) {
    let command = spec.command.as_deref().unwrap_or_default();
    let texts = spec.args.iter().map(String::as_str).chain([command, spec.cwd.as_deref().unwrap_or_default()]);
    let texts = texts.chain(spec.env.values().map(String::as_str));
    if texts.into_iter().any(|text| text.len() > TEXT_MAX || text.contains('\0')) {
        wrong.push(format!("command, args, env and cwd: each text has at most {TEXT_MAX} bytes, and none that is NUL"));
    }
    if spec.args.len() > ARGUMENTS_MAX {
        wrong.push(format!("args: has {} entries: at most {ARGUMENTS_MAX} are taken", spec.args.len()));
    }
    if [spec.env.len(), spec.pass_env.len(), spec.headers.len()].into_iter().any(|count| count > SETTINGS_MAX) {
        wrong.push(format!("env, pass_env and headers: have at most {SETTINGS_MAX} entries each"));
    }
    let is_variable = |name: &String| !name.is_empty() && name.len() <= NAME_MAX && !name.contains(['=', '\0']);
    if !spec.env.keys().chain(&spec.pass_env).all(is_variable) {
        wrong.push("env and pass_env: a name is empty, too long, or holds `=`".to_owned());
    }
}

/// The address, if it is one that can be posted to. A wrong one is not quoted: it may hold a password.
pub(super) fn address(url: &str) -> Result<Uri, String> {
    let uri = url.parse::<Uri>().ok().filter(|_| url.len() <= ADDRESS_MAX);
    let uri = uri.filter(|uri| matches!(uri.scheme_str(), Some("http" | "https")));
    let uri = uri.ok_or_else(|| "is not an http:// or https:// address with a host".to_owned())?;
    match uri.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("holds a user name or password: put them into a header, whose value is read from `env` or `file`"
                .to_owned())
        }
        Some(authority) if !authority.host().is_empty() => Ok(uri),
        Some(_) | None => Err("is not an http:// or https:// address with a host".to_owned()),
    }
}

fn header(name: &str, source: &HeaderSource) -> Result<(), String> {
    let parsed = name.parse::<HeaderName>().map_err(|_| "is no name of a header".to_owned())?;
    if RESERVED.contains(&parsed.as_str()) || parsed.as_str().starts_with("mcp-") {
        return Err("belongs to the transport".to_owned());
    }
    match (&source.env, &source.file) {
        (Some(_), None) | (None, Some(_)) => Ok(()),
        (Some(_), Some(_)) | (None, None) => Err("names one of `env` and `file`".to_owned()),
    }
}

/// The headers, with their values read now.
///
/// # Errors
/// One cannot be read, or is no value of a header. It is not shown.
pub(super) fn headers(spec: &ServerSpec) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for (name, source) in &spec.headers {
        let value = value(source).map_err(|what| format!("the header {name}: {what}"))?;
        let name = name.parse::<HeaderName>().map_err(|_| format!("the header {name}: is no name of one"))?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn value(source: &HeaderSource) -> Result<HeaderValue, String> {
    let text = match (&source.env, &source.file) {
        (Some(name), _) => {
            std::env::var(name).map_err(|_| format!("the environment variable {name} is not set, or is no text"))?
        }
        (None, Some(path)) => {
            std::fs::read_to_string(path).map_err(|error| format!("{path} cannot be read: {error}"))?
        }
        (None, None) => String::new(),
    };
    let text = format!("{}{}", source.prefix, text.trim_end());
    let value = HeaderValue::from_str(&text).ok().filter(|_| text.len() <= VALUE_MAX);
    let mut value = value.ok_or_else(|| "its value cannot stand in a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(spec: &serde_json::Value, expected: &str) {
        let mut spec = spec.clone();
        spec["name"] = json!("x");
        let said = mistakes(&serde_json::from_value(spec).unwrap()).join("; ");
        assert!(if expected.is_empty() { said.is_empty() } else { said.contains(expected) }, "{said}");
    }

    #[test]
    fn a_server_is_a_command_or_an_address() {
        check(&json!({ "command": "npx", "args": ["-y"], "env": { "A": "b" }, "pass_env": ["TOKEN"] }), "");
        check(&json!({ "url": "https://mcp.example/mcp", "headers": { "Authorization": { "env": "T" } } }), "");
        check(&json!({}), "neither");
        check(&json!({ "command": "x", "url": "http://h/" }), "both");
        check(&json!({ "command": " " }), "is empty");
        check(&json!({ "url": "ftp://h/" }), "is not an http");
        check(&json!({ "url": "http://me:pass@h/" }), "holds a user name");
        check(&json!({ "url": "http://h/", "args": ["x"] }), "go with a command");
        check(&json!({ "command": "x", "headers": { "A": { "env": "T" } } }), "go with a url");
        check(&json!({ "url": "http://h/", "headers": { "Mcp-Name": { "env": "T" } } }), "belongs to the transport");
        check(&json!({ "url": "http://h/", "headers": { "A": { "env": "T", "file": "f" } } }), "names one of");
        check(&json!({ "command": "x", "env": { "A=": "b" } }), "holds `=`");
        check(&json!({ "command": "x", "timeout": "0s" }), "more than nothing");
    }

    #[test]
    fn a_secret_is_read_where_it_is_kept_and_never_shown() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        let spec: ServerSpec = serde_json::from_value(json!({
            "name": "x", "url": "http://h/",
            "headers": { "Authorization": { "file": path.to_str().unwrap(), "prefix": "Bearer " } },
        }))
        .unwrap();
        assert!(headers(&spec).unwrap_err().contains("cannot be read"));
        std::fs::write(&path, "s3cret\n").unwrap();
        let read = headers(&spec).unwrap();
        assert_eq!(read["authorization"], "Bearer s3cret");
        assert!(!format!("{read:?}").contains("s3cret"));
    }
}
