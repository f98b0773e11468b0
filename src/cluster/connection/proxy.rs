//! Which proxy stands before a server: the `proxy-url` of its cluster, else what the environment says as Go reads it
//! (golang.org/x/net `http/httpproxy`): by scheme, without `ALL_PROXY`, never for this machine, and `NO_PROXY` is about
//! servers.

use std::{env, net::IpAddr};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;

use super::ConnectionError;

/// The proxy before a server; nothing when it is asked itself. `variable` gives the variables of the environment.
///
/// # Errors
/// When what is named is no address of a proxy.
pub(super) fn before(
    server: &Uri,
    of_cluster: Option<&str>,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<Uri>, ConnectionError> {
    if let Some(url) = of_cluster.filter(|url| !url.is_empty()) {
        return parse(url, "the cluster's proxy-url").map(Some);
    }
    let variables = match server.scheme_str() {
        Some("https") => ["HTTPS_PROXY", "https_proxy"],
        _ => ["HTTP_PROXY", "http_proxy"],
    };
    let set = variables
        .into_iter()
        .find_map(|name| Some((name, variable(name)?)));
    let Some((name, value)) = set else {
        return Ok(None);
    };
    if is_this_machine(server) {
        return Ok(None);
    }
    let no = variable("NO_PROXY").or_else(|| variable("no_proxy"));
    // The matcher only says whether there is to be a proxy; any address does for that.
    let matcher = Matcher::builder().all("http://proxy.invalid");
    let matcher = matcher.no(no.unwrap_or_default()).build();
    match matcher.intercept(server) {
        Some(_) => parse(&value, name).map(Some),
        None => Ok(None),
    }
}

/// A variable of this process's environment; nothing when it is empty.
pub(super) fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

fn is_this_machine(server: &Uri) -> bool {
    let host = server.host().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']');
    let address: Option<IpAddr> = address.parse().ok();
    host == "localhost" || address.is_some_and(|address| address.is_loopback())
}

fn parse(url: &str, from: &str) -> Result<Uri, ConnectionError> {
    // The address may hold a password, so it is not repeated.
    let bad = |reason: &str| ConnectionError::Config(format!("{from} {reason}"));
    let url = match url.split_once("://") {
        None => format!("http://{url}"),
        // Names are looked up by the proxy either way.
        Some(("socks5h", rest)) => format!("socks5://{rest}"),
        Some(_) => url.to_owned(),
    };
    let uri: Uri = url.parse().map_err(|_| bad("is no URL"))?;
    match uri.scheme_str() {
        Some("http" | "https" | "socks5") if uri.host().is_some() => Ok(uri),
        _ => Err(bad("is none of http://, https:// or socks5:// and a host")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_is_read_as_go_reads_it() {
        for (server, variables, expected) in [
            ("https://api.corp:6443", &[][..], None),
            (
                "https://api.corp:6443",
                &[("HTTPS_PROXY", "http://p:1")],
                Some("http://p:1/"),
            ),
            (
                "https://api.corp:6443",
                &[("https_proxy", "p:1")],
                Some("http://p:1/"),
            ),
            (
                "https://api.corp:6443",
                &[("HTTPS_PROXY", "socks5h://p:1")],
                Some("socks5://p:1/"),
            ),
            (
                "https://api.corp:6443",
                &[("HTTP_PROXY", "http://p:1"), ("ALL_PROXY", "http://p:1")],
                None,
            ),
            (
                "http://api.corp:8001",
                &[("HTTP_PROXY", "http://p:1")],
                Some("http://p:1/"),
            ),
            (
                "https://api.corp:6443",
                &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "x, .corp")],
                None,
            ),
            (
                "https://10.1.2.3",
                &[("HTTPS_PROXY", "http://p:1"), ("no_proxy", "10.0.0.0/8")],
                None,
            ),
            // It is about servers, not about the proxy.
            (
                "https://api.corp:6443",
                &[("HTTPS_PROXY", "http://p:1"), ("NO_PROXY", "p")],
                Some("http://p:1/"),
            ),
            (
                "https://127.0.0.1:6443",
                &[("HTTPS_PROXY", "http://p:1")],
                None,
            ),
            ("https://[::1]:6443", &[("HTTPS_PROXY", "http://p:1")], None),
            (
                "https://localhost:6443",
                &[("HTTPS_PROXY", "http://p:1")],
                None,
            ),
        ] {
            let variable = |wanted: &str| {
                let found = variables.iter().find(|(name, _)| *name == wanted);
                found.map(|(_, value)| (*value).to_owned())
            };
            let server: Uri = server.parse().expect("a server");
            let proxy = before(&server, None, &variable).expect("a proxy or none");
            let proxy = proxy.map(|proxy| proxy.to_string());
            assert_eq!(proxy.as_deref(), expected, "{server} {variables:?}");
        }
        let server = Uri::from_static("https://127.0.0.1:6443");
        let bad = before(&server, Some("ftp://hunter2"), &|_| None).expect_err("no proxy");
        assert!(!bad.to_string().contains("hunter2"));
        let own = before(&server, Some("http://p:1"), &|_| None).expect("a proxy");
        assert!(own.is_some());
    }
}
