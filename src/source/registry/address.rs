//! Hosts and addresses: what the user calls a host, which addresses are meant by it, how an address is shown, and
//! which hosts are this machine or a private network. Pure.
//!
//! `docker.io` is asked at `registry-1.docker.io`, as containers/image does (`docker/docker_client.go`,
//! `dockerRegistry`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use reqwest::Url;

/// The longest address that a message shows, in bytes.
const LONGEST_SHOWN: usize = 200;

/// A host as users write it: `HOST` or `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPort {
    host: String,
    port: Option<u16>,
}

impl HostPort {
    /// Reads a host; nothing when `text` is more than that, or is none.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(&format!("https://{}", endpoint(text))).ok()?;
        let has_only_a_host = url.path() == "/"
            && !text.contains(['/', '@', '?', '#', '\\'])
            && !text.contains(char::is_whitespace);
        let host = host_of(&url)?;
        has_only_a_host.then(|| Self {
            host,
            port: url.port(),
        })
    }

    /// Whether an address is at this host. Without a port, the one that goes with the scheme is meant.
    pub(super) fn has(&self, url: &Url) -> bool {
        // An address has no port where it is the one that goes with the scheme.
        host_of(url).as_ref() == Some(&self.host) && url.port() == self.port
    }
}

/// Where a registry is asked.
pub(super) fn endpoint(registry: &str) -> &str {
    match registry {
        "docker.io" | "index.docker.io" => "registry-1.docker.io",
        other => other,
    }
}

/// An address without what may be secret in it: no user, no query, no fragment; and cut.
pub(super) fn shown(url: &Url) -> String {
    let path = match url.path() {
        "/" => "",
        path => path,
    };
    cut(&format!("{}{path}", base(url)), LONGEST_SHOWN)
}

/// Scheme, host and port of an address.
pub(super) fn base(url: &Url) -> String {
    format!("{}://{}", url.scheme(), host_port(url))
}

/// Host and port of an address, the latter unless it goes with the scheme.
pub(super) fn host_port(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// At most `most` bytes of a text, with a mark where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    format!("{}…", text.get(..end.unwrap_or(0)).unwrap_or_default())
}

/// The host of an address, without the dot that may end a name.
fn host_of(url: &Url) -> Option<String> {
    let host = url.host_str()?.trim_end_matches('.').to_ascii_lowercase();
    (!host.is_empty()).then_some(host)
}

/// How far away a host is, as far as its name or number says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Reach {
    /// This machine, or what only it can see: loopback and link-local numbers, where clouds keep their metadata.
    Local,
    /// A number of a private network.
    Private,
    /// Any other name or number.
    Public,
}

impl Reach {
    /// How far away the host of an address is.
    pub(super) fn of(url: &Url) -> Self {
        let Some(host) = host_of(url) else {
            return Self::Local;
        };
        let number = host.trim_start_matches('[').trim_end_matches(']');
        match number.parse() {
            Ok(IpAddr::V4(number)) => Self::of_v4(number),
            Ok(IpAddr::V6(number)) => Self::of_v6(number),
            Err(_) if host == "localhost" || host.ends_with(".localhost") => Self::Local,
            Err(_) => Self::Public,
        }
    }

    fn of_v4(number: Ipv4Addr) -> Self {
        let [first, second, ..] = number.octets();
        let is_shared = first == 100 && (64..128).contains(&second);
        if number.is_loopback() || number.is_link_local() || first == 0 {
            Self::Local
        } else if number.is_private() || is_shared || number.is_multicast() || first >= 240 {
            Self::Private
        } else {
            Self::Public
        }
    }

    /// A number of version 4 may stand inside: mapped, compatible, or behind the prefix of NAT64.
    fn of_v6(number: Ipv6Addr) -> Self {
        let segments = number.segments();
        let [.., high, low] = segments;
        let is_wrapped = matches!(
            segments,
            [0, 0, 0, 0, 0, 0 | 0xffff, _, _] | [0x64, 0xff9b, 0, 0, 0, 0, _, _]
        );
        if number.is_loopback() || number.is_unspecified() || number.is_unicast_link_local() {
            Self::Local
        } else if is_wrapped {
            let [a, b] = high.to_be_bytes();
            let [c, d] = low.to_be_bytes();
            Self::of_v4(Ipv4Addr::new(a, b, c, d))
        } else if number.is_unique_local() || number.is_multicast() {
            Self::Private
        } else {
            Self::Public
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        Url::parse(text).expect("an address")
    }

    #[test]
    fn a_host_means_its_own_port_only() {
        let meant = |host: &str, address: &str| {
            let host = HostPort::parse(host).expect("a host");
            host.has(&url(address))
        };
        assert!(meant("quay.io", "https://quay.io/v2/"));
        assert!(meant("quay.io", "http://quay.io/v2/"));
        assert!(meant("QUAY.io:443", "https://quay.io./v2/"));
        assert!(meant("docker.io", "https://registry-1.docker.io/"));
        assert!(meant("[::1]:5000", "https://[::1]:5000/"));
        assert!(!meant("quay.io", "https://quay.io:5000/"));
        assert!(!meant("quay.io:5000", "https://quay.io/"));
        assert!(!meant("quay.io", "https://evil.quay.io/"));
        assert!(!meant("quay.io", "https://quay.io.evil/"));
    }

    #[test]
    fn what_is_more_than_a_host_is_none() {
        for text in [
            "",
            "https://quay.io",
            "quay.io/path",
            "user@quay.io",
            "quay.io?x",
            "quay.io:99999",
            "a b",
        ] {
            assert_eq!(HostPort::parse(text), None, "{text}");
        }
    }

    #[test]
    fn nothing_secret_is_shown() {
        let address = url("https://user:canary@h.example:8443/v2/a?token=canary#canary");
        assert_eq!(shown(&address), "https://h.example:8443/v2/a");
        let long = url(&format!("https://h.example/{}", "a".repeat(1000)));
        assert_eq!(shown(&long).len(), LONGEST_SHOWN + "…".len());
    }

    #[test]
    fn numbers_are_known_in_every_disguise() {
        for (host, reach) in [
            ("127.0.0.1", Reach::Local),
            ("2130706433", Reach::Local),
            ("0x7f.1", Reach::Local),
            ("0", Reach::Local),
            ("169.254.169.254", Reach::Local),
            ("localhost", Reach::Local),
            ("localhost.", Reach::Local),
            ("a.LOCALHOST", Reach::Local),
            ("[::1]", Reach::Local),
            ("[fe80::1]", Reach::Local),
            ("[::ffff:127.0.0.1]", Reach::Local),
            ("[64:ff9b::7f00:1]", Reach::Local),
            ("10.1.2.3", Reach::Private),
            ("172.16.0.1", Reach::Private),
            ("192.168.1.1", Reach::Private),
            ("100.64.0.1", Reach::Private),
            ("[fd00::1]", Reach::Private),
            ("8.8.8.8", Reach::Public),
            ("[2001:db8::1]", Reach::Public),
            ("quay.io", Reach::Public),
            ("127.0.0.1.nip.io", Reach::Public),
        ] {
            assert_eq!(
                Reach::of(&url(&format!("https://{host}/"))),
                reach,
                "{host}"
            );
        }
    }
}
