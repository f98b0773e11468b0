//! Where a password may go. A registry names, in its `realm`, the server that gives tokens; anybody who can answer in
//! its place can name any. Pure.
//!
//! Docker, containers/image and oci-client send the password wherever the realm points. Here it goes to the registry's
//! own scheme, host and port, to hosts that the user named, and to two pairs that are known to everybody.

use reqwest::Url;

use super::address::{self, HostPort, Reach};

/// Registries whose token server is known to be another host.
const KNOWN: [(&str, &str); 2] = [
    ("registry-1.docker.io", "auth.docker.io"),
    ("registry.gitlab.com", "gitlab.com"),
];

/// What would be sent to a token server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carrying {
    /// A password, or a token that is as good as one.
    Password,
    /// Nothing that is secret.
    Nothing,
}

/// Why nothing is sent to a realm.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RealmError {
    /// It breaks a rule that has no exception.
    Refused(&'static str),
    /// The password would go to this host, which is not the registry's and which nobody named.
    Foreign(String),
}

/// The address to ask for a token.
///
/// # Errors
/// When nothing may be sent there.
pub(super) fn token_server(
    realm: &str,
    registry: &Url,
    named: &[HostPort],
    carrying: Carrying,
) -> Result<Url, RealmError> {
    let mut server = Url::parse(realm).map_err(|_| RealmError::Refused("that is no address"))?;
    server.set_fragment(None);
    if server.scheme() != "https" && !(server.scheme() == "http" && registry.scheme() == "http") {
        return Err(RealmError::Refused("only https is allowed there"));
    }
    if !server.username().is_empty() || server.password().is_some() {
        return Err(RealmError::Refused(
            "an address with a user in it is not used",
        ));
    }
    if server.origin() == registry.origin()
        || named.iter().any(|host| host.has(&server))
        || is_known(registry, &server)
    {
        return Ok(server);
    }
    if carrying == Carrying::Password {
        return Err(RealmError::Foreign(address::host_port(&server)));
    }
    let is_near = Reach::of(&server) != Reach::Public;
    if is_near && server.host() != registry.host() {
        return Err(RealmError::Refused(
            "a registry may not point into this machine or a private network",
        ));
    }
    Ok(server)
}

fn is_known(registry: &Url, server: &Url) -> bool {
    let is_plain = |url: &Url| url.scheme() == "https" && url.port().is_none();
    let pair = (registry.host_str(), server.host_str());
    is_plain(registry)
        && is_plain(server)
        && KNOWN
            .iter()
            .any(|(from, to)| pair == (Some(from), Some(to)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Registry, realm, what becomes of it with a password, and without: it goes there, asks the user before, or never
    /// goes.
    const CASES: &str = "
        https://r.example             https://r.example/token           goes   goes
        https://r.example             https://r.example:443/token?a=b   goes   goes
        https://r.example:5000        https://r.example:5000/t          goes   goes
        https://r.example             https://r.example:8443/token      asks   goes
        https://r.example             https://auth.r.example/token      asks   goes
        https://r.example             https://r.example.evil/token      asks   goes
        https://r.example             https://evil.example/token        asks   goes
        https://r.example             https://named.example/token       goes   goes
        https://r.example             https://named.example:8443/token  asks   goes
        https://r.example             http://named.example/token        never  never
        https://r.example             http://r.example/token            never  never
        https://r.example             http://evil.example/token         never  never
        https://r.example             https://user@r.example/token      never  never
        https://r.example             https://u:p@evil.example/token    never  never
        https://r.example             https://r.example@evil.example/   never  never
        https://r.example             file:///etc/passwd                never  never
        https://r.example             /token                            never  never
        https://r.example             -                                 never  never
        https://r.example             https://localhost/token           asks   never
        https://r.example             https://127.0.0.1:8080/token      asks   never
        https://r.example             https://[::1]/token               asks   never
        https://r.example             https://169.254.169.254/t         asks   never
        https://r.example             https://10.0.0.1/token            asks   never
        https://10.0.0.1:5000         https://10.0.0.1:5001/token       asks   goes
        https://10.0.0.1:5000         https://10.0.0.2/token            asks   never
        https://registry-1.docker.io  https://auth.docker.io/token      goes   goes
        https://registry-1.docker.io  https://auth.docker.io:8443/      asks   goes
        https://registry.gitlab.com   https://gitlab.com/jwt/auth       goes   goes
        https://r.example             https://auth.docker.io/token      asks   goes
        http://r.example:5000         http://r.example:5000/token       goes   goes
        http://r.example:5000         http://r.example:5001/token       asks   goes
        http://127.0.0.1:5000         http://127.0.0.1:5001/token       asks   goes
        http://127.0.0.1:5000         http://localhost:5001/token       asks   never
    ";

    #[test]
    fn where_a_password_may_go() {
        let named = [HostPort::parse("named.example").expect("a host")];
        for case in CASES.lines().filter(|line| !line.trim().is_empty()) {
            let words: Vec<_> = case.split_whitespace().collect();
            let [registry, realm, with, without] = words[..] else {
                panic!("{case}");
            };
            let registry = Url::parse(registry).expect("an address");
            for (carrying, expected) in [(Carrying::Password, with), (Carrying::Nothing, without)] {
                let given = token_server(realm, &registry, &named, carrying);
                let outcome = match &given {
                    Ok(_) => "goes",
                    // What the user would name is the host in the realm.
                    Err(RealmError::Foreign(host)) if realm.contains(&format!("//{host}/")) => {
                        "asks"
                    }
                    Err(RealmError::Foreign(_)) => "asks for another",
                    Err(RealmError::Refused(_)) => "never",
                };
                assert_eq!(outcome, expected, "{case} {carrying:?}: {given:?}");
            }
        }
    }
}
