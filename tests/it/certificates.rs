//! Certificates that are made for clusters without cert-manager: what is kept, what is made anew, and whether clients
//! accept them.
//!
//! `testdata/certificates/<situation>.yaml` is as `command_lines.rs` says. The certificates in them are valid for a
//! hundred years, and were made by openssl.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Stdio, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use kubectl_olm::render::certificates::{Pair, Supply, Unusable, keep_or_make, make, usable};
use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject},
};
use secrecy::ExposeSecret;
use serde_json::json;

use super::{
    command_lines,
    program::{program, run},
    random::Random,
};

const BUNDLE: &str = "testdata/bundles/queue-operator";

#[test]
fn each_case_prints_what_it_expects() {
    command_lines::check("testdata/certificates");
}

fn names() -> [String; 2] {
    ["queue-service.ops", "queue-service.ops.svc"].map(str::to_owned)
}

fn days(days: i64) -> SignedDuration {
    SignedDuration::from_hours(24 * days)
}

/// As now, but for what is not told in whole seconds.
fn now() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().expect("a time")
}

/// A connection of a client that trusts some authorities to a server with a pair: why it fails.
fn connect(pair: &Pair, authorities: &str, name: &str) -> Result<(), String> {
    let certificates = |text: &str| -> Vec<_> {
        let found = CertificateDer::pem_slice_iter(text.as_bytes());
        found.map(|found| found.expect("a certificate")).collect()
    };
    let key = PrivateKeyDer::from_pem_slice(pair.key().expose_secret().as_bytes()).expect("a key");
    let server = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(certificates(pair.certificate()), key)
        .expect("a certificate and its key");
    let mut roots = RootCertStore::empty();
    for authority in certificates(authorities) {
        roots.add(authority).expect("an authority");
    }
    let client = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
    let mut server = ServerConnection::new(Arc::new(server)).expect("a server");
    while client.is_handshaking() || server.is_handshaking() {
        let mut sent = vec![];
        while client.wants_write() {
            client.write_tls(&mut sent).expect("a message");
        }
        server.read_tls(&mut sent.as_slice()).expect("a message");
        server
            .process_new_packets()
            .map_err(|error| error.to_string())?;
        let mut sent = vec![];
        while server.wants_write() {
            server.write_tls(&mut sent).expect("a message");
        }
        client.read_tls(&mut sent.as_slice()).expect("a message");
        client
            .process_new_packets()
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

#[test]
fn clients_accept_what_is_made_for_its_names_and_by_its_ca_only() {
    let (pair, other) = (make_now(), make_now());
    for name in names() {
        assert_eq!(connect(&pair, pair.authorities(), &name), Ok(()));
    }
    let elsewhere = connect(&pair, pair.authorities(), "queue-service.other.svc");
    assert!(elsewhere.unwrap_err().contains("not valid for name"));
    let unknown = connect(&pair, other.authorities(), "queue-service.ops.svc");
    assert!(unknown.is_err());
}

/// Made at the real time, which connections are judged by.
fn make_now() -> Pair {
    make(&names(), Timestamp::now()).expect("a pair")
}

#[test]
fn a_pair_is_kept_until_30_days_before_two_years_are_over() {
    let pair = make(&names(), now()).expect("a pair");
    let after = |passed| usable(&pair, &names(), now() + passed);
    let second = SignedDuration::from_secs(1);
    assert_eq!(after(days(0)), Ok(()));
    assert_eq!(after(days(700)), Ok(()));
    assert_eq!(after(days(700) + second), Err(Unusable::ExpiresSoon));
    assert_eq!(after(days(730)), Err(Unusable::ExpiresSoon));
    assert_eq!(after(days(730) + second), Err(Unusable::Expired));
    assert_eq!(after(days(-1)), Err(Unusable::NotValidYet));
}

/// Pods go on with the old certificate until they have the new one.
#[test]
fn a_renewed_ca_stands_beside_the_one_before_and_no_older_one() {
    let supplied = |found, passed| {
        keep_or_make(Ok(Some(found)), &names(), Timestamp::now() + passed).expect("a pair")
    };
    let (first, mut pair) = (make_now(), make_now());
    pair = match supplied(pair.clone(), days(710)) {
        Supply::Renewed(renewed, Unusable::ExpiresSoon) => {
            assert!(renewed.authorities().ends_with(pair.authorities()));
            assert_eq!(connect(&pair, renewed.authorities(), &names()[0]), Ok(()));
            renewed
        }
        other => panic!("{other:?}"),
    };
    let Supply::Renewed(again, _) = supplied(pair, days(1420)) else {
        panic!("it is kept too long");
    };
    assert_eq!(again.authorities().matches("BEGIN CERTIFICATE").count(), 2);
    // Of one that is over, nothing stays.
    let Supply::Renewed(late, Unusable::Expired) = supplied(first, days(800)) else {
        panic!("it is over");
    };
    assert_eq!(late.authorities().matches("BEGIN CERTIFICATE").count(), 1);
}

#[test]
fn a_secret_gives_back_the_pair_that_it_was_made_of() {
    use base64::{Engine, prelude::BASE64_STANDARD};
    let pair = make(&names(), now()).expect("a pair");
    let encode = |text: &str| BASE64_STANDARD.encode(text);
    let data = json!({
        "tls.crt": encode(pair.certificate()),
        "tls.key": encode(pair.key().expose_secret()),
        "ca.crt": encode(pair.authorities()),
    });
    let data = data.as_object().expect("a map");
    let found = Pair::of_secret(data).expect("a pair").expect("a pair");
    assert_eq!(found.certificate(), pair.certificate());
    assert_eq!(found.authorities(), pair.authorities());
    assert_eq!(usable(&found, &names(), now()), Ok(()));
    let shown = format!(
        "{found:?} {:?}",
        keep_or_make(Ok(Some(found.clone())), &names(), now())
    );
    let key = pair.key().expose_secret();
    assert!(key.lines().all(|line| !shown.contains(line)), "{shown}");
    for damage in [json!(null), json!(7), json!("!"), json!(encode("hello"))] {
        for name in ["tls.crt", "tls.key", "ca.crt"] {
            let mut data = data.clone();
            data.insert(name.to_owned(), damage.clone());
            let supply = keep_or_make(Pair::of_secret(&data), &names(), now()).expect("a pair");
            assert!(matches!(supply, Supply::Renewed(..)), "{name}: {damage}");
        }
    }
    let none = Pair::of_secret(json!({"password": "eA=="}).as_object().expect("a map"));
    assert!(matches!(none, Ok(None)));
}

#[test]
fn nothing_that_is_found_and_no_time_is_too_strange() {
    let pair = make(&names(), now()).expect("a pair");
    let texts = [
        pair.certificate(),
        pair.key().expose_secret(),
        pair.authorities(),
    ];
    let mut random = Random::new(8);
    for _ in 0..300 {
        let [mut certificate, mut key, mut authorities] =
            texts.map(|text| text.as_bytes().to_vec());
        let damaged = match random.below(3) {
            0 => &mut certificate,
            1 => &mut key,
            _ => &mut authorities,
        };
        let at = random.below(damaged.len());
        match random.below(3) {
            0 => damaged.truncate(at),
            1 => damaged[at] = u8::try_from(random.below(256)).expect("a byte"),
            _ => drop(damaged.remove(at)),
        }
        let found = Pair::found(Some(certificate), Some(key), Some(authorities));
        let supply = keep_or_make(found, &names(), now()).expect("a pair");
        assert_eq!(usable(&supply.into_pair(), &names(), now()), Ok(()));
    }
    for time in [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
        make(&names(), time).expect("a pair");
        let _ = usable(&pair, &names(), time);
    }
}

fn render(folder: &Path) -> [String; 6] {
    let folder = folder.to_str().expect("a path");
    let certificates = ["--certs", "self-signed", "--cert-dir", folder];
    let [first, second, third, fourth] = certificates.map(str::to_owned);
    [
        "render".to_owned(),
        BUNDLE.to_owned(),
        first,
        second,
        third,
        fourth,
    ]
}

#[test]
fn runs_at_once_render_the_same_and_keys_are_the_owners_alone() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("new/certs");
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let mut program = program();
            program.args(render(&folder)).stdout(Stdio::piped());
            program
                .stderr(Stdio::null())
                .spawn()
                .expect("the program starts")
        })
        .collect();
    let outputs: Vec<_> = runs
        .into_iter()
        .map(|run| run.wait_with_output().expect("the program ends").stdout)
        .collect();
    assert!(!outputs[0].is_empty());
    assert!(outputs.iter().all(|output| *output == outputs[0]));
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let keys = fs::read_dir(&folder).expect("a folder").flatten();
    let keys: Vec<_> = keys
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "key"))
        .collect();
    assert_eq!(
        keys.iter().map(|key| mode(key)).collect::<Vec<_>>(),
        [0o600]
    );
    // What can be used is only read.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o500)).expect("modes");
    let again = run(render(&folder));
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).expect("modes");
    assert_eq!(again.stdout.as_bytes(), outputs[0]);
}
