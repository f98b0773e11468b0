//! Real registries, started when the first test asks, one of each kind for all tests of a run.
//!
//! They are distribution's, and all serve the same storage: what is pushed can be had from each of them under the same
//! name, by its own rules of who may. A test takes repositories that no other test uses, and leaves them as they are.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, LazyLock},
    thread,
    time::{Duration, Instant},
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, IsCa, KeyPair,
};
use rustls::{
    ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer},
};
use serde_json::{Value, json};
use tempfile::NamedTempFile;

use super::{
    image_builder::{Compression, Format, Image, Parts, digest},
    program::tool,
    token_server::{ISSUER, SERVICE, TokenServer},
};

/// Who may pull where not everybody may.
pub(crate) const USER: &str = "olm-tests";
/// That user's password. It has what has a meaning in addresses, headers and files of credentials.
pub(crate) const PASSWORD: &str = "correct-horse:battery/staple";
/// The password, as `htpasswd -nbB -C 4` writes it.
const PASSWORD_HASH: &str = "$2a$04$R/z3VFfwayvJNvetwDXRx.G1QAuNLIQ5WbbrSeDLkGT1bH9R0bzpO";

/// How long a registry may take to get ready. It takes a tenth of a second.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs a registry until its standard input ends, which nothing ever writes to. It ends with the process of the tests,
/// however that ends, so that no registry and no folder outlives them.
const SUPERVISOR: &str = r#"
registry_program=$1 folder=$2
"$registry_program" serve registry.yaml > /dev/null 2> registry.log &
registry=$!
read -r _
kill -KILL $registry
wait
cd / && rm -rf "$folder"
"#;

static PLAIN: LazyLock<Registry> = LazyLock::new(|| Registry::start(Access::Anyone, Tls::Without));
static BASIC: LazyLock<Registry> =
    LazyLock::new(|| Registry::start(Access::Password, Tls::Without));
static TOKEN: LazyLock<Registry> = LazyLock::new(|| Registry::start(Access::Token, Tls::Without));
static TLS: LazyLock<Registry> = LazyLock::new(|| Registry::start(Access::Anyone, Tls::With));
static TLS_TOKEN: LazyLock<Registry> = LazyLock::new(|| Registry::start(Access::Token, Tls::With));
static AUTHORITY: LazyLock<Authority> = LazyLock::new(Authority::new);

/// A registry that asks for nothing, by HTTP.
pub(crate) fn plain() -> &'static Registry {
    &PLAIN
}

/// A registry that asks for [`USER`] and [`PASSWORD`], by HTTP.
pub(crate) fn basic_auth() -> &'static Registry {
    &BASIC
}

/// A registry that asks for a token of a server on another port, by HTTP.
pub(crate) fn token_auth() -> &'static Registry {
    &TOKEN
}

/// A registry that asks for nothing, by HTTPS.
pub(crate) fn tls() -> &'static Registry {
    &TLS
}

/// A registry that asks for a token of a server on another port, both by HTTPS.
pub(crate) fn tls_token_auth() -> &'static Registry {
    &TLS_TOKEN
}

/// The certificate of the authority that vouches for every server here, as PEM.
pub(crate) fn ca_pem() -> &'static str {
    &AUTHORITY.certificate
}

/// The same, as a file.
pub(crate) fn ca_file() -> NamedTempFile {
    file(ca_pem())
}

/// A file of credentials: for each place, such as `HOST:PORT/repository`, a user and password.
pub(crate) fn authfile(entries: &[(&str, &str, &str)]) -> NamedTempFile {
    let entry = |(place, user, password): &(&str, &str, &str)| {
        let auth = STANDARD.encode(format!("{user}:{password}"));
        ((*place).to_owned(), json!({"auth": auth}))
    };
    let auths: serde_json::Map<_, _> = entries.iter().map(entry).collect();
    file(&json!({"auths": auths}).to_string())
}

/// A temporary file of a text.
pub(crate) fn file(text: &str) -> NamedTempFile {
    let mut file = NamedTempFile::new().expect("a temporary file");
    file.write_all(text.as_bytes()).expect("a temporary file");
    file
}

/// Pushes the bundle in a folder to `repository:tag`, and gives the digest of its image.
pub(crate) fn push_bundle(folder: &Path, name: &str) -> String {
    let image = Image::of_bundle(folder, Format::Oci, Compression::Gzip);
    push(&image.parts(), name)
}

/// Pushes an image to `repository:tag`, and gives its digest. Every registry has it then.
pub(crate) fn push(image: &Parts, name: &str) -> String {
    let (repository, tag) = name.split_once(':').expect("a repository and a tag");
    for blob in &image.blobs {
        push_blob(repository, blob);
    }
    let below = image.below.iter();
    let below = below.map(|document| (document.digest(), document));
    for (reference, document) in below.chain([(tag.to_owned(), &image.top)]) {
        let target = format!("/v2/{repository}/manifests/{reference}");
        let answer = send(
            "PUT",
            &target,
            Some(&document.media_type),
            &document.content,
        );
        assert!(answer.starts_with("HTTP/1.1 201"), "{target}: {answer}");
    }
    image.top.digest()
}

fn push_blob(repository: &str, blob: &[u8]) {
    let target = format!("/v2/{repository}/blobs/uploads/");
    let answer = send("POST", &target, None, &[]);
    let mut lines = answer.lines();
    let place = lines.find_map(|line| line.strip_prefix("Location: "));
    let place = place.unwrap_or_else(|| panic!("{target}: {answer}"));
    let host = format!("http://{}", plain().address());
    let place = place.strip_prefix(&host).unwrap_or(place);
    let target = format!("{place}&digest={}", digest(blob));
    let answer = send("PUT", &target, Some("application/octet-stream"), blob);
    assert!(answer.starts_with("HTTP/1.1 201"), "{target}: {answer}");
}

/// Sends a request to the registry that asks for nothing, and gives its whole answer.
fn send(method: &str, target: &str, media_type: Option<&str>, body: &[u8]) -> String {
    let address = plain().address();
    let mut stream = TcpStream::connect(&address).expect("the registry listens");
    let (length, media_type) = (body.len(), media_type.unwrap_or_default());
    let head = format!(
        "{method} {target} HTTP/1.1\r\nHost: {address}\r\nContent-Type: {media_type}\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n"
    );
    stream
        .write_all(head.as_bytes())
        .expect("the registry reads");
    stream.write_all(body).expect("the registry reads");
    let mut answer = vec![];
    stream
        .read_to_end(&mut answer)
        .expect("the registry answers");
    String::from_utf8(answer).expect("its answer is text")
}

/// Who may pull.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Anyone,
    Password,
    Token,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tls {
    With,
    Without,
}

/// A running registry.
pub(crate) struct Registry {
    folder: PathBuf,
    port: u16,
    tokens: Option<TokenServer>,
    /// Kept for its standard input, whose end is the end of the registry.
    _supervisor: Child,
}

impl Registry {
    /// Its host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// What names an image in it on the command line.
    pub(crate) fn image(&self, name: &str) -> String {
        format!("docker://{}/{name}", self.address())
    }

    /// The server that gives tokens for it.
    pub(crate) fn token_server(&self) -> &TokenServer {
        self.tokens.as_ref().expect("it asks for tokens")
    }

    /// What was asked for of a repository so far, such as `GET manifests/v1`, in order. A request stands here before it
    /// is answered. What was pushed does not.
    pub(crate) fn log(&self, repository: &str) -> Vec<String> {
        let log = fs::read_to_string(self.folder.join("registry.log")).expect("it has a log");
        let prefix = format!("/v2/{repository}/");
        let lines = log.lines();
        let requests = lines.filter_map(|line| {
            let line: Value = serde_json::from_str(line).ok()?;
            if line["msg"] != "authorizing request" {
                return None;
            }
            let method = line["http.request.method"].as_str()?;
            let target = line["http.request.uri"].as_str()?.strip_prefix(&prefix)?;
            matches!(method, "GET" | "HEAD").then(|| format!("{method} {target}"))
        });
        requests.collect()
    }

    fn start(access: Access, tls: Tls) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let storage = match (access, tls) {
            (Access::Anyone, Tls::Without) => folder.join("storage"),
            _ => plain().folder.join("storage"),
        };
        let tokens = (access == Access::Token)
            .then(|| TokenServer::start((tls == Tls::With).then(|| AUTHORITY.server())));
        write_configuration(&folder, &storage, tokens.as_ref(), access, tls);
        let mut supervisor = Command::new("/bin/sh");
        supervisor.args(["-c", SUPERVISOR, "supervisor"]);
        supervisor.arg(tool("registry")).arg(&folder);
        supervisor.env_clear().env("OTEL_TRACES_EXPORTER", "none");
        // In a process group of its own, it is spared by a Ctrl-C that ends the tests, and lives to end the registry.
        supervisor
            .current_dir(&folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0);
        let supervisor = supervisor.spawn().expect("/bin/sh starts");
        let port = wait_for_port(&folder.join("registry.log"));
        Self {
            folder,
            port,
            tokens,
            _supervisor: supervisor,
        }
    }
}

/// Waits until a registry says which port it took. It listens before it says so.
fn wait_for_port(log: &Path) -> u16 {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let text = fs::read_to_string(log).unwrap_or_default();
        let said = text.split_once("listening on 127.0.0.1:");
        let digits = said.and_then(|(_, rest)| rest.split([',', '"']).next());
        if let Some(port) = digits.and_then(|digits| digits.parse().ok()) {
            return port;
        }
        assert!(
            Instant::now() < deadline,
            "the registry is not ready after {} s:\n{text}",
            PATIENCE.as_secs()
        );
        thread::sleep(Duration::from_millis(20));
    }
}

fn write_configuration(
    folder: &Path,
    storage: &Path,
    tokens: Option<&TokenServer>,
    access: Access,
    tls: Tls,
) {
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).expect("the temporary folder takes a file");
        path
    };
    let mut configuration = json!({
        "version": "0.1",
        "log": {"level": "debug", "formatter": "json", "accesslog": {"disabled": true}},
        "storage": {"filesystem": {"rootdirectory": storage}},
        "http": {"addr": "127.0.0.1:0", "secret": "shared, as the storage is"},
    });
    if tls == Tls::With {
        configuration["http"]["tls"] = json!({
            "certificate": write("certificate.pem", &AUTHORITY.server_certificate),
            "key": write("key.pem", &AUTHORITY.server_key),
        });
    }
    if access == Access::Password {
        let passwords = write("htpasswd", &format!("{USER}:{PASSWORD_HASH}\n"));
        configuration["auth"] = json!({"htpasswd": {"realm": "tests", "path": passwords}});
    }
    if let Some(tokens) = tokens {
        let scheme = if tls == Tls::With { "https" } else { "http" };
        configuration["auth"] = json!({"token": {
            "realm": format!("{scheme}://{}/token", tokens.address()),
            "issuer": ISSUER,
            "service": SERVICE,
            "rootcertbundle": write("tokens.pem", tokens.certificate()),
        }});
    }
    // JSON is YAML.
    write("registry.yaml", &configuration.to_string());
}

/// Who vouches for the servers, and the certificate that they show.
struct Authority {
    certificate: String,
    server_certificate: String,
    server_key: String,
    server_certificate_der: CertificateDer<'static>,
    server_key_der: Vec<u8>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::new(vec![]).expect("parameters");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.distinguished_name = DistinguishedName::new();
        let name = "authority of the tests";
        parameters.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let issuer = CertifiedIssuer::self_signed(parameters, key).expect("a certificate");
        let names = ["localhost", "127.0.0.1"].map(str::to_owned);
        let server_key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new(names)
            .and_then(|parameters| parameters.signed_by(&server_key, &issuer))
            .expect("a certificate");
        Self {
            certificate: issuer.pem(),
            server_certificate: server.pem(),
            server_key: server_key.serialize_pem(),
            server_certificate_der: server.der().clone(),
            server_key_der: server_key.serialize_der(),
        }
    }

    /// How a server of ours shows its certificate.
    fn server(&self) -> Arc<ServerConfig> {
        let key = PrivateKeyDer::try_from(self.server_key_der.clone()).expect("a key");
        let certificates = vec![self.server_certificate_der.clone()];
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                let builder = builder.with_no_client_auth();
                builder.with_single_cert(certificates, key)
            });
        Arc::new(config.expect("a certificate and its key"))
    }
}
