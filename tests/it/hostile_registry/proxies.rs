//! Proxies of the environment. The environment belongs to a whole process, so each case runs this test binary again.

use std::process::Command;

use kubectl_olm::source::registry::ErrorClass::Network;

use super::{PASSWORD, always, anonymous, answer, basic, good, reference, settings};
use crate::lying::Liar;

/// Names the image that a child asks for, and whether TLS is needed.
const IMAGE: &str = "KUBECTL_OLM_TEST_IMAGE";

/// Asks for a manifest in a process with this environment, and gives what became of it.
fn ask(image: &str, environment: &[(&str, &str)]) -> String {
    let child = Command::new(std::env::current_exe().expect("this binary"))
        .args([
            "--exact",
            "hostile_registry::proxies::in_another_process",
            "--nocapture",
        ])
        .env_clear()
        .env(IMAGE, image)
        .envs(environment.iter().copied())
        .output()
        .expect("this binary runs");
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    let line = text
        .lines()
        .find_map(|line| line.split_once("GIVEN "))
        .map(|(_, given)| given.to_owned());
    line.unwrap_or_else(|| panic!("{text}{}", String::from_utf8_lossy(&child.stderr)))
}

/// Does what `ask` asks for; on its own it has nothing to do.
#[test]
fn in_another_process() {
    let Ok(image) = std::env::var(IMAGE) else {
        return;
    };
    let image = reference(&image);
    let mut settings = settings();
    if image.registry.as_deref() != Some("registry.invalid:443") {
        settings.insecure = vec![image.registry.clone().unwrap_or_default()];
    }
    let given = match anonymous(settings).manifest(&image) {
        Ok(_) => "a manifest".to_owned(),
        Err(error) => {
            assert_eq!(error.class(), Network);
            assert!(!format!("{error:?}").contains(PASSWORD), "{error:?}");
            format!("{error}; {}", error.hint().unwrap_or_default())
        }
    };
    println!("\nGIVEN {given}");
}

#[test]
fn a_proxy_of_the_environment_is_asked_with_its_password() {
    let proxy = Liar::plain(always(good()));
    let address = format!("http://me:{PASSWORD}@{}", proxy.address());
    let given = ask(
        "registry.invalid:80/org/app:v1",
        &[("http_proxy", &address)],
    );
    assert_eq!(given, "a manifest");
    let asked = &proxy.requests()[0];
    assert_eq!(
        asked.target,
        "http://registry.invalid/v2/org/app/manifests/v1"
    );
    assert_eq!(
        asked.header("proxy-authorization").map(str::to_owned),
        basic("me", PASSWORD)
    );
}

#[test]
fn a_proxy_that_wants_to_know_who_asks_is_told_without_its_password() {
    let proxy = Liar::plain(always(answer("407 Who Is There", &[], "")));
    let address = format!("http://me:{PASSWORD}@{}", proxy.address());
    for variable in ["HTTPS_PROXY", "ALL_PROXY"] {
        let given = ask("registry.invalid:443/org/app:v1", &[(variable, &address)]);
        assert_eq!(
            given,
            "cannot reach https://registry.invalid: the proxy answered 407: it wants a user and a password; \
             put the proxy's user and password into HTTPS_PROXY, or the host into NO_PROXY"
        );
    }
    let requests = proxy.requests();
    assert!(requests.iter().all(|request| request.method == "CONNECT"));
    assert_eq!(requests.len(), 2);
}

#[test]
fn hosts_that_need_no_proxy_are_asked_themselves() {
    let proxy = Liar::plain(always(answer("502 Nobody", &[], "")));
    let server = Liar::plain(always(good()));
    let address = format!("http://{}", proxy.address());
    let near = server.address();
    let named = near.replace("127.0.0.1", "localhost");
    for (host, none) in [
        (&near, "127.0.0.1"),
        (&near, "10.0.0.0/8, 127.0.0.0/8"),
        (&named, "example.com,localhost"),
    ] {
        let environment = [
            ("HTTP_PROXY", address.as_str()),
            ("HTTPS_PROXY", &address),
            ("NO_PROXY", none),
        ];
        let given = ask(&format!("{host}/org/app:v1"), &environment);
        assert_eq!(given, "a manifest", "{none}");
    }
    assert_eq!(proxy.requests().len(), 0);
}
