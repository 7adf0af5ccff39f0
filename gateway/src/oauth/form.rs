//! Forms (`application/x-www-form-urlencoded`), read strictly: a parameter that comes twice is refused (RFC 6749, section 3.2).

use std::collections::BTreeMap;

use http::{HeaderMap, header};

use super::Refused;

/// How many parameters a form may have.
const PARAMETERS_MAX: usize = 32;

/// The parameters of a form.
#[derive(Debug)]
pub(super) struct Form(BTreeMap<String, String>);

impl Form {
    pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Self, Refused> {
        let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let kind = kind.split(';').next().unwrap_or_default().trim();
        if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Refused::new("invalid_request", "the body must be application/x-www-form-urlencoded"));
        }
        let mut read = BTreeMap::new();
        for (name, value) in url::form_urlencoded::parse(body) {
            if read.len() >= PARAMETERS_MAX {
                return Err(Refused::new(
                    "invalid_request",
                    format!("there are more than {PARAMETERS_MAX} parameters"),
                ));
            }
            if read.insert(name.to_string(), value.into_owned()).is_some() {
                return Err(Refused::new("invalid_request", "a parameter comes twice"));
            }
        }
        Ok(Self(read))
    }

    /// A parameter; one that is empty is none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub(super) fn required(&self, name: &str) -> Result<&str, Refused> {
        self.get(name).ok_or_else(|| Refused::new("invalid_request", format!("`{name}` is missing")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, body: &str) -> Result<Form, Refused> {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, kind.parse().unwrap())]);
        Form::read(&headers, body.as_bytes())
    }

    #[test]
    fn a_form_is_read_strictly() {
        let kind = "application/x-www-form-urlencoded; charset=utf-8";
        let form = read(kind, "a=1&b=x%20y+z&c=").unwrap();
        assert_eq!(
            (form.get("a"), form.get("b"), form.get("c"), form.get("d")),
            (Some("1"), Some("x y z"), None, None)
        );
        assert!(read(kind, "a=1&a=1").unwrap_err().description.contains("twice"));
        assert!(read("application/json", "{}").is_err());
        let many: String = (0..40).map(|number| format!("a{number}=1&")).collect();
        assert!(read(kind, &many).is_err());
    }
}
