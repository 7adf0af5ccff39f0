//! TLS on the port, with real certificates and clients that are not ours.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use reach_gateway::config;
use reach_gateway::gateway::Settings;
use reach_gateway::transport::{HttpSettings, Tls, TlsFiles};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::python::run;
use crate::common::{Running, start_with};

/// An authority, and the files of what it signed.
pub(crate) struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).unwrap();
        Self { folder, issuer }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Signs a certificate; its files are called after it.
    pub(crate) fn sign(&self, file: &str, name: &str) {
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let cert = params.signed_by(&key, &self.issuer).unwrap();
        std::fs::write(self.path(&format!("{file}.pem")), cert.pem()).unwrap();
        std::fs::write(self.path(&format!("{file}.key")), key.serialize_pem()).unwrap();
    }

    pub(crate) fn files(&self, file: &str, client_ca: Option<&Self>) -> TlsFiles {
        TlsFiles {
            cert: self.path(&format!("{file}.pem")),
            key: self.path(&format!("{file}.key")),
            client_ca: client_ca.map(|authority| authority.path("ca.pem")),
        }
    }

    fn client(&self) -> reqwest::ClientBuilder {
        crate::common::peer::client();
        let root = reqwest::Certificate::from_pem(self.issuer.pem().as_bytes()).unwrap();
        reqwest::Client::builder().no_proxy().tls_certs_only([root])
    }

    fn identity(&self, file: &str) -> reqwest::Identity {
        let both = [".pem", ".key"].map(|end| std::fs::read(self.path(&format!("{file}{end}"))).unwrap());
        reqwest::Identity::from_pem(&both.concat()).unwrap()
    }
}

pub(crate) async fn serving(tls: Arc<Tls>) -> Running {
    start_with(Settings::default(), HttpSettings { tls: Some(tls), ..HttpSettings::default() }).await
}

pub(crate) fn url(running: &Running, path: &str) -> String {
    format!("https://localhost:{}{path}", running.address.port())
}

async fn ask(client: &reqwest::Client, running: &Running) -> Result<(u16, reqwest::Version), reqwest::Error> {
    let frame = json!({ "jsonrpc": "2.0", "id": 1, "method": "agent/list" });
    let answer = client.post(url(running, "/rpc")).json(&frame).send().await?;
    let (status, version) = (answer.status().as_u16(), answer.version());
    assert_eq!(answer.json::<Value>().await?["result"], json!({ "agents": [] }));
    Ok((status, version))
}

#[tokio::test]
async fn http_1_and_2_are_agreed_upon_within_tls_and_plain_text_is_not_spoken() {
    let authority = Authority::new("ours");
    authority.sign("port", "gateway");
    let running = serving(Arc::new(Tls::open(authority.files("port", None)).unwrap())).await;
    let newest = authority.client().build().unwrap();
    assert_eq!(ask(&newest, &running).await.unwrap(), (200, reqwest::Version::HTTP_2));
    let older = authority.client().http1_only().build().unwrap();
    assert_eq!(ask(&older, &running).await.unwrap(), (200, reqwest::Version::HTTP_11));
    for client in [&newest, &older] {
        let card = client.get(url(&running, "/mcp/server-card")).send().await.unwrap().json::<Value>().await.unwrap();
        assert_eq!(card["remotes"][0]["url"], url(&running, "/mcp"), "it names itself as it was called");
    }
    let stranger = Authority::new("theirs").client().build().unwrap();
    assert!(ask(&stranger, &running).await.unwrap_err().is_connect());
    let mut plain = TcpStream::connect(running.address).await.unwrap();
    plain.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    // Whether it is reset or closed, nothing of HTTP is said.
    let _ = plain.read_to_end(&mut answer).await;
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn a_caller_without_a_certificate_of_the_authority_is_not_let_in() {
    let (authority, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    authority.sign("port", "gateway");
    authority.sign("caller", "agent");
    theirs.sign("caller", "agent");
    let running = serving(Arc::new(Tls::open(authority.files("port", Some(&authority))).unwrap())).await;
    let known = authority.client().identity(authority.identity("caller")).build().unwrap();
    assert_eq!(ask(&known, &running).await.unwrap().0, 200);
    assert!(ask(&authority.client().build().unwrap(), &running).await.is_err(), "none was shown");
    let foreign = authority.client().identity(theirs.identity("caller")).build().unwrap();
    assert!(ask(&foreign, &running).await.is_err(), "one of another authority was shown");
}

#[tokio::test]
async fn a_new_certificate_is_shown_once_it_is_read_and_a_broken_one_changes_nothing() {
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    old.sign("port", "gateway");
    new.sign("port", "gateway");
    let tls = Arc::new(Tls::open(old.files("port", None)).unwrap());
    let running = serving(Arc::clone(&tls)).await;
    let (of_old, of_new) = (old.client().build().unwrap(), new.client().build().unwrap());
    assert_eq!(ask(&of_old, &running).await.unwrap().0, 200);
    assert!(ask(&of_new, &running).await.is_err());
    std::fs::copy(new.path("port.pem"), old.path("port.pem")).unwrap();
    let mismatched = tls.reload().unwrap_err().to_string();
    assert!(mismatched.contains("do not make a certificate"), "{mismatched}");
    assert_eq!(ask(&old.client().build().unwrap(), &running).await.unwrap().0, 200);
    std::fs::copy(new.path("port.key"), old.path("port.key")).unwrap();
    tls.reload().unwrap();
    assert_eq!(ask(&of_new, &running).await.unwrap().0, 200);
    assert_eq!(ask(&of_old, &running).await.unwrap().0, 200, "what is open stays open");
    assert!(ask(&old.client().build().unwrap(), &running).await.is_err());
}

#[tokio::test]
async fn a_handshake_that_is_never_finished_ends_in_time() {
    let authority = Authority::new("ours");
    authority.sign("port", "gateway");
    let tls = Some(Arc::new(Tls::open(authority.files("port", None)).unwrap()));
    let settings = HttpSettings { tls, first_request_timeout: Duration::from_millis(100), ..HttpSettings::default() };
    let running = start_with(Settings::default(), settings).await;
    for said in [&b""[..], b"\x16\x03\x01\x02\x00"] {
        let mut silent = TcpStream::connect(running.address).await.unwrap();
        silent.write_all(said).await.unwrap();
        let mut rest = Vec::new();
        let ended = tokio::time::timeout(Duration::from_secs(20), silent.read_to_end(&mut rest)).await;
        assert!(ended.is_ok(), "it was kept waiting");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pythons_tls_gets_in_with_its_certificate() {
    let authority = Authority::new("ours");
    authority.sign("port", "gateway");
    authority.sign("caller", "agent");
    let running = serving(Arc::new(Tls::open(authority.files("port", Some(&authority))).unwrap())).await;
    let script = r#"
import http.client, json, ssl, sys
port, ca, cert, key = sys.argv[1:]
context = ssl.create_default_context(cafile=ca)
context.load_cert_chain(cert, key)
context.set_alpn_protocols(["http/1.1"])
connection = http.client.HTTPSConnection("localhost", int(port), context=context, timeout=30)
frame = {"jsonrpc": "2.0", "id": 1, "method": "agent/list"}
connection.request("POST", "/rpc", json.dumps(frame), {"content-type": "application/json"})
answer = connection.getresponse()
assert connection.sock.selected_alpn_protocol() == "http/1.1", connection.sock.selected_alpn_protocol()
assert connection.sock.version() == "TLSv1.3", connection.sock.version()
print(answer.status, answer.read().decode())
"#;
    let mut python = Command::new("python3");
    python.args(["-c", script, &running.address.port().to_string()]);
    for file in ["ca.pem", "caller.pem", "caller.key"] {
        python.arg(authority.path(file));
    }
    let said = tokio::task::spawn_blocking(move || run(&mut python, "")).await.unwrap().unwrap();
    assert_eq!(said.trim(), r#"200 {"jsonrpc":"2.0","id":1,"result":{"agents":[]}}"#);
}

#[test]
fn what_is_wrong_with_the_settings_is_told_with_the_file_and_never_with_what_is_in_it() {
    let authority = Authority::new("ours");
    authority.sign("port", "gateway");
    let told = |listen: &str, tls: &str| {
        let file: config::File = toml::from_str(&format!("listen = {listen:?}\n[tls]\n{tls}")).unwrap();
        config::check(file, config::Flags::default()).map_err(|mistakes| mistakes.to_string())
    };
    let line = |name: &str, path: &Path| format!("{name} = {:?}\n", path.display().to_string());
    let (cert, key) = (line("cert", &authority.path("port.pem")), line("key", &authority.path("port.key")));
    let client_ca = line("client_ca", &authority.path("ca.pem"));
    let home = "127.0.0.1:0";
    assert!(told(home, "").unwrap().http.tls.is_none());
    assert!(told(home, &format!("{cert}{key}")).unwrap().http.tls.is_some());
    for (tls, part) in [
        (cert.clone(), "tls.key: is missing"),
        (key.clone(), "tls.cert: is missing"),
        (client_ca.clone(), "tls.client_ca: needs"),
        (format!("{cert}{}", line("key", &authority.path("port.pem"))), "port.pem cannot be used"),
        (format!("{cert}{}", line("key", &authority.path("gone"))), "gone cannot be used"),
    ] {
        let said = told(home, &tls).unwrap_err();
        assert!(said.contains(part) && !said.contains("-----"), "{said}");
    }
    let plain = told("0.0.0.0:0", "").unwrap_err();
    assert!(plain.contains("could be read on the way") && plain.contains("not asked who they are"), "{plain}");
    let meant = told("0.0.0.0:0", "plain_text_beyond_loopback = true").unwrap_err();
    assert!(!meant.contains("could be read") && meant.contains("not asked who they are"), "{meant}");
    let open = told("0.0.0.0:0", &format!("{cert}{key}")).unwrap_err();
    assert!(!open.contains("could be read") && open.contains("not asked who they are"), "{open}");
    assert!(told("0.0.0.0:0", &format!("{cert}{key}{client_ca}")).is_ok());
}
