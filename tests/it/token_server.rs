//! A token server for registries, as the distribution project specifies it ("Token Authentication"): it says who may do
//! what with which repository, and remembers who asked.
//!
//! It decides by the name of a repository: everybody may pull what is below `public/`; [`USER`] may do everything but
//! with what is below `forbidden/`; and the first token for a repository below `stale/` has expired before it is given.
//! Who may not do something gets a token that grants nothing, as on Docker Hub; a wrong password gets status 401.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use rcgen::{CertificateParams, KeyPair, PKCS_ED25519, SigningKey};
use reqwest::Url;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::json;

use super::registry::{PASSWORD, USER};

/// What registries and the server call each other.
pub(crate) const ISSUER: &str = "tests";
pub(crate) const SERVICE: &str = "registry of the tests";
/// What stands for user and password where somebody has logged in by other means.
pub(crate) const IDENTITY_TOKEN: &str = "identity-4f1d6c0e";

/// How much longer than they say tokens are taken by a registry (`Leeway` in its `registry/auth/token/token.go`).
const LEEWAY: Duration = Duration::from_secs(60);
/// How long tokens are good for.
const LIFETIME: Duration = Duration::from_secs(300);

/// A running token server. It ends with the process.
pub(crate) struct TokenServer {
    /// `HOST:PORT`
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    certificate: String,
}

/// Somebody asked for a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Who said to be asking, by which password, if any.
    pub(crate) credential: Option<(String, String)>,
    /// What for: a repository and what is to be done with it.
    pub(crate) scope: String,
    /// The status of the answer.
    pub(crate) status: u16,
}

impl TokenServer {
    /// Starts one, that answers by TLS when it is given how.
    pub(crate) fn start(tls: Option<Arc<ServerConfig>>) -> Self {
        let key = KeyPair::generate_for(&PKCS_ED25519).expect("a key");
        let certificate = CertificateParams::new(vec![ISSUER.to_owned()])
            .and_then(|parameters| parameters.self_signed(&key))
            .expect("a certificate");
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the listener is bound");
        let asked = Arc::new(Mutex::new(vec![]));
        let server = Self {
            address: address.to_string(),
            asked: Arc::clone(&asked),
            certificate: certificate.pem(),
        };
        let signer = Arc::new(Signer {
            key,
            certificate: STANDARD.encode(certificate.der()),
        });
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (signer, asked, tls) = (Arc::clone(&signer), Arc::clone(&asked), tls.clone());
                thread::spawn(move || {
                    let _ = match tls {
                        Some(tls) => match ServerConnection::new(tls) {
                            Ok(tls) => answer(StreamOwned::new(tls, stream), &signer, &asked),
                            Err(_) => Ok(()),
                        },
                        None => answer(stream, &signer, &asked),
                    };
                });
            }
        });
        server
    }

    /// Its host and port.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The certificate that registries trust its tokens by, as PEM.
    pub(crate) fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Who has asked about a repository so far.
    pub(crate) fn asked(&self, repository: &str) -> Vec<Asked> {
        let asked = self.asked.lock().expect("no thread panics");
        let is_about = |asked: &&Asked| repository_of(&asked.scope) == repository;
        asked.iter().filter(is_about).cloned().collect()
    }
}

/// What tokens are signed with.
struct Signer {
    key: KeyPair,
    /// As DER, in base 64.
    certificate: String,
}

impl Signer {
    /// A token for one repository.
    fn token(&self, user: &str, scope: &str, actions: &[&str], begun: SystemTime) -> String {
        let seconds = |time: SystemTime| {
            let since = time.duration_since(UNIX_EPOCH).expect("a time after 1970");
            since.as_secs()
        };
        let header = json!({"typ": "JWT", "alg": "EdDSA", "x5c": [self.certificate]});
        let claims = json!({
            "iss": ISSUER, "sub": user, "aud": SERVICE, "jti": format!("{:x}", fastrand::u64(..)),
            "iat": seconds(begun), "nbf": seconds(begun), "exp": seconds(begun + LIFETIME),
            "access": [{"type": "repository", "name": repository_of(scope), "actions": actions}],
        });
        let [header, claims] =
            [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let signed = format!("{header}.{claims}");
        let signature = self.key.sign(signed.as_bytes()).expect("a signature");
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Answers the one request of a connection.
fn answer(
    stream: impl Read + Write,
    signer: &Signer,
    asked: &Mutex<Vec<Asked>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let request = Request::read(&mut stream)?;
    let (status, body) = decide(
        &request,
        signer,
        &mut asked.lock().expect("no thread panics"),
    );
    let reason = if status == 200 { "OK" } else { "Unauthorized" };
    let length = body.len();
    let stream = stream.get_mut();
    write!(
        stream,
        "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n{body}"
    )?;
    stream.flush()
}

fn decide(request: &Request, signer: &Signer, asked: &mut Vec<Asked>) -> (u16, String) {
    let scope = request.value("scope").unwrap_or_default();
    let repository = repository_of(&scope);
    let credential = request.credential();
    let known = [
        (USER.to_owned(), PASSWORD.to_owned()),
        (String::new(), IDENTITY_TOKEN.to_owned()),
    ];
    let is_refused = credential
        .as_ref()
        .is_some_and(|credential| !known.contains(credential))
        || request.value("service").is_none_or(|name| name != SERVICE);
    let is_first = !asked
        .iter()
        .any(|asked| asked.scope == scope && asked.status == 200);
    asked.push(Asked {
        credential: credential.clone(),
        scope: scope.clone(),
        status: if is_refused { 401 } else { 200 },
    });
    if is_refused {
        let error = json!({"errors": [{"code": "UNAUTHORIZED", "message": "incorrect username or password"}]});
        return (401, error.to_string());
    }
    let may_pull = match credential {
        Some(_) => !repository.starts_with("forbidden/"),
        None => repository.starts_with("public/"),
    };
    let actions = if may_pull { &["pull"][..] } else { &[] };
    let mut begun = SystemTime::now();
    if repository.starts_with("stale/") && is_first {
        begun -= LIFETIME + 2 * LEEWAY;
    }
    let user = credential.map_or_else(String::new, |(user, _)| user);
    let token = signer.token(&user, &scope, actions, begun);
    let body = json!({"token": token, "access_token": token, "expires_in": LIFETIME.as_secs()});
    (200, body.to_string())
}

/// The repository of a scope such as `repository:team/operator:pull`.
fn repository_of(scope: &str) -> &str {
    scope.split(':').nth(1).unwrap_or_default()
}

struct Request {
    /// The parameters of the address, and those of a form.
    parameters: Vec<(String, String)>,
    authorization: Option<String>,
}

impl Request {
    fn read(stream: &mut impl BufRead) -> std::io::Result<Self> {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let (mut authorization, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            stream.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "authorization" => authorization = Some(value.trim().to_owned()),
                "content-length" => length = value.trim().parse().unwrap_or(0),
                _ => {}
            }
        }
        let mut form = String::new();
        stream.take(length).read_to_string(&mut form)?;
        let pairs = |query: &str| {
            let url = Url::parse(&format!("http://localhost/?{query}")).expect("an address");
            let pairs = url.query_pairs().into_owned();
            pairs.collect::<Vec<_>>()
        };
        let query = target.split_once('?').map_or("", |(_, query)| query);
        let mut parameters = pairs(query);
        parameters.extend(pairs(&form));
        Ok(Self {
            parameters,
            authorization,
        })
    }

    fn value(&self, name: &str) -> Option<String> {
        let mut parameters = self.parameters.iter();
        let (_, value) = parameters.find(|(known, _)| known == name)?;
        Some(value.clone())
    }

    /// A user and password, or no user and an identity token.
    fn credential(&self) -> Option<(String, String)> {
        if let Some(token) = self.value("refresh_token") {
            return Some((String::new(), token));
        }
        let encoded = self.authorization.as_deref()?.strip_prefix("Basic ")?;
        let decoded = STANDARD.decode(encoded).ok()?;
        let text = String::from_utf8(decoded).ok()?;
        let (user, password) = text.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }
}
