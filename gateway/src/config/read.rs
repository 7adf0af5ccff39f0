//! Reading the file: every key by itself, so that one that is wrong hides no other mistake.

use std::collections::BTreeSet;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use toml::Table;

use super::{Config, File, Flags, Mistakes, check};

/// Who said what.
#[derive(Debug, Clone, Default)]
pub struct Said {
    file: Value,
    by_flags: BTreeSet<&'static str>,
}

impl Said {
    /// What the file says under a key.
    #[must_use]
    pub fn of(&self, key: &str) -> Option<&Value> {
        key.split('.').try_fold(&self.file, |value, name| value.get(name))
    }

    /// Whether the command line said it.
    #[must_use]
    pub fn by_flags(&self, key: &str) -> bool {
        self.by_flags.contains(key)
    }
}

impl Flags {
    /// The keys that the command line says.
    fn keys(&self) -> BTreeSet<&'static str> {
        let Self { listen, data, log_format, otlp, mcp_tools } = self;
        let said = [
            ("listen", listen.is_some()),
            ("data", data.is_some()),
            ("telemetry.log_format", log_format.is_some()),
            ("telemetry.otlp", otlp.is_some()),
            ("mcp.tools", mcp_tools.is_some()),
        ];
        said.into_iter().filter(|(_, is_said)| *is_said).map(|(key, _)| key).collect()
    }
}

/// Reads a file, if one is named, and puts the command line on top.
///
/// # Errors
/// All that is wrong, with the place and what would be right.
pub fn load(path: Option<&Path>, flags: Flags) -> Result<Config, Mistakes> {
    let Some(path) = path else { return read("", flags) };
    let text = std::fs::read_to_string(path)
        .map_err(|error| Mistakes(vec![format!("{} cannot be read: {error}", path.display())]))?;
    read(&text, flags).map_err(|Mistakes(mistakes)| match &mistakes[..] {
        // One that is no TOML has no keys to name.
        [only] if text.parse::<Table>().is_err() => Mistakes(vec![format!("{}: {only}", path.display())]),
        _ => Mistakes(mistakes),
    })
}

/// Reads the text of a file, and puts the command line on top.
///
/// # Errors
/// All that is wrong, with the place and what would be right.
pub fn read(text: &str, flags: Flags) -> Result<Config, Mistakes> {
    let table: Table = text.parse().map_err(|error: toml::de::Error| Mistakes(vec![error.to_string()]))?;
    let file = serde_json::to_value(&table).map_err(|error| Mistakes(vec![error.to_string()]))?;
    let said = Said { file, by_flags: flags.keys() };
    let (sound, mut mistakes) = sound(table);
    let file = match File::deserialize(sound) {
        Ok(file) => file,
        Err(error) if mistakes.is_empty() => return Err(Mistakes(vec![plainly(error.message())])),
        Err(_) => File::default(),
    };
    match check(file, flags) {
        Ok(config) if mistakes.is_empty() => Ok(Config { said, ..config }),
        Ok(_) => Err(Mistakes(mistakes)),
        Err(Mistakes(more)) => {
            mistakes.extend(more);
            Err(Mistakes(mistakes))
        }
    }
}

/// The part of a file that can be read, and what is wrong with the rest.
fn sound(table: Table) -> (Table, Vec<String>) {
    let (mut sound, mut mistakes) = (Table::new(), Vec::new());
    for (key, value) in table {
        let mut try_one = |name: String, one: toml::Value| match alone(&key, one.clone()) {
            Ok(_) => Some(one),
            Err(why) => {
                mistakes.push(format!("{name}: {why}"));
                None
            }
        };
        // A section is one even if nothing stands in it.
        let section = value.as_table().filter(|_| alone(&key, Table::new().into()).is_ok()).cloned();
        let kept = match section {
            Some(section) => {
                let kept = section.into_iter().filter_map(|(name, member)| {
                    let one = Table::from_iter([(name.clone(), member.clone())]);
                    try_one(format!("{key}.{name}"), one.into()).map(|_| (name, member))
                });
                Some(toml::Value::Table(kept.collect()))
            }
            None => try_one(key.clone(), value),
        };
        if let Some(kept) = kept {
            sound.insert(key, kept);
        }
    }
    (sound, mistakes)
}

/// Reads one key as if there were no other.
fn alone(key: &str, value: toml::Value) -> Result<File, String> {
    let table = Table::from_iter([(key.to_owned(), value)]);
    File::deserialize(table).map_err(|error| plainly(error.message().trim()))
}

/// What the reader says, without the names that types have in Rust.
fn plainly(message: &str) -> String {
    let (said, expected) = message.rsplit_once("expected ").unwrap_or((message, ""));
    match expected {
        "usize" | "u8" | "u16" | "u32" | "u64" | "i32" | "i64" => format!("{said}expected a whole number"),
        "f32" | "f64" => format!("{said}expected a number"),
        _ => message.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_expected_is_told_in_words() {
        for (text, says) in [
            ("open_max = \"many\"", "open_max: invalid type: string \"many\", expected a whole number"),
            ("[limits]\nbody_max = -1", "limits.body_max: invalid value: integer `-1`, expected a whole number"),
            ("listen = 7", "expected"),
        ] {
            let Err(Mistakes(mistakes)) = read(text, Flags::default()) else { panic!("{text} was taken") };
            assert!(mistakes[0].contains(says), "{mistakes:?}");
        }
    }
}
