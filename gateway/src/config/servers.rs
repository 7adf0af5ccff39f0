//! `[[mcp_servers]]` of the configuration.

use std::collections::BTreeSet;

use reach_schemas::ServerSpec;

use crate::upstream::spec;

/// Checks the servers, each by itself and their names together.
pub(super) fn check(servers: Vec<toml::Value>, mistakes: &mut Vec<String>) -> Vec<ServerSpec> {
    let mut names = BTreeSet::new();
    let mut checked = Vec::with_capacity(servers.len());
    for (at, server) in servers.into_iter().enumerate() {
        match read(&server) {
            Ok(spec) => {
                let wrong = spec::mistakes(&spec);
                mistakes.extend(wrong.into_iter().map(|what| format!("mcp_servers[{at}] ({}): {what}", spec.name)));
                if !names.insert(spec.name.clone()) {
                    mistakes.push(format!("mcp_servers[{at}]: there are two servers of the name {}", spec.name));
                }
                checked.push(spec);
            }
            Err(what) => mistakes.push(format!("mcp_servers[{at}]: {what}")),
        }
    }
    checked
}

/// A server written in TOML is the same as in JSON.
fn read(server: &toml::Value) -> Result<ServerSpec, String> {
    let text = serde_json::to_string(server).map_err(|error| error.to_string())?;
    serde_json::from_str(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_all(text: &str) -> Result<Vec<ServerSpec>, String> {
        #[derive(serde::Deserialize)]
        struct File {
            mcp_servers: Vec<toml::Value>,
        }
        let mut mistakes = Vec::new();
        let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
        let checked = check(file.mcp_servers, &mut mistakes);
        if mistakes.is_empty() { Ok(checked) } else { Err(mistakes.join("\n")) }
    }

    #[test]
    fn the_servers_that_the_page_shows_are_read() {
        let page = include_str!("../../../docs/mcp-servers.md");
        let shown = page.split_once("```toml\n").and_then(|(_, rest)| rest.split_once("```")).unwrap().0;
        let servers = read_all(shown).unwrap();
        assert!(servers.len() > 1 && servers[0].command.is_some() && servers[1].url.is_some());
    }

    #[test]
    fn every_mistake_names_its_server() {
        let said = read_all(
            "[[mcp_servers]]\nname = \"a\"\n[[mcp_servers]]\nname = \"a\"\nurl = \"x\"\n[[mcp_servers]]\nnam = 1\n",
        );
        let said = said.unwrap_err();
        for part in [
            "mcp_servers[0] (a): names neither",
            "mcp_servers[1]: there are two",
            "mcp_servers[1] (a): url:",
            "mcp_servers[2]: unknown field `nam`",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
