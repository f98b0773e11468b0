//! What servers and networks do wrong, and what comes of it: which refusal it is, whether the request is sent again, and
//! that neither time nor Secrets are lost. Cases of answers are data, in testdata/api_answers.

use std::{
    fs,
    io::{Read, Write},
    net::TcpListener,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use kubectl_olm::{
    cluster::{
        answer::{Again, ApiError, Refusal, RefusalKind},
        connection::{Connection, ConnectionSettings},
        request::{Force, Mode, Request},
        resource::{Resource, Scope},
    },
    concurrent::concurrently,
    manifest::ObjectKey,
};
use serde_json::{Value, json};

use super::{
    lying::{Act, Liar, answer, head},
    program::root,
};

const SECOND: Duration = Duration::from_secs(1);
const OBJECT: &str = r#"{"kind":"ConfigMap","apiVersion":"v1"}"#;

/// A connection to a server, as a kubeconfig names it.
fn connect(liar: &Liar) -> Connection {
    connect_with(liar, |_| {})
}

fn connect_with(liar: &Liar, change: impl FnOnce(&mut ConnectionSettings)) -> Connection {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let kubeconfig = folder.path().join("config");
    let server = format!("http://{}", liar.address());
    let content = json!({"current-context": "tests",
        "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": ""}}],
        "clusters": [{"name": "tests", "cluster": {"server": server}}]});
    fs::write(&kubeconfig, content.to_string()).expect("a file");
    let mut settings = ConnectionSettings {
        kubeconfig: Some(kubeconfig),
        ..ConnectionSettings::default()
    };
    change(&mut settings);
    Connection::open(&settings).expect("a connection")
}

fn resource(kind: &str) -> (Resource, ObjectKey) {
    let resource = Resource {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: format!("{}s", kind.to_lowercase()),
        scope: Scope::Namespaced,
    };
    let key = ObjectKey {
        group: String::new(),
        kind: kind.to_owned(),
        namespace: "ops".to_owned(),
        name: "a".to_owned(),
    };
    (resource, key)
}

fn get(kind: &str) -> Request {
    let (resource, key) = resource(kind);
    Request::get(&resource, &key)
}

fn apply(kind: &str) -> Request {
    let (resource, key) = resource(kind);
    Request::apply(&resource, &key, json!({}), Mode::Write, Force::No)
}

fn status(code: u16, reason: &str, message: &str) -> String {
    json!({"kind": "Status", "code": code, "reason": reason, "message": message}).to_string()
}

/// Answers the first request with this, and later ones with an object.
fn once(first: Vec<Act>) -> Liar {
    Liar::plain(move |request| match request.before {
        0 => first.clone(),
        _ => answer("200 OK", &[], OBJECT),
    })
}

#[test]
fn answers_are_told_apart_as_the_cases_say() {
    let cases = fs::read(root().join("testdata/api_answers/cases.json")).expect("the cases");
    let cases: Vec<Value> = serde_json::from_slice(&cases).expect("a list");
    for case in cases {
        let (name, expected) = (&case["name"], &case["expect"]);
        let is_secret = expected["secret"] == true;
        let request = apply(if is_secret { "Secret" } else { "ConfigMap" });
        let body = match &case["body"] {
            Value::String(text) => text.clone(),
            status => status.to_string(),
        };
        let code = case["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        let refusal = Refusal::read(&request, code.expect("a code"), body.as_bytes());
        let kind = format!("{:?}", refusal.kind);
        assert_eq!(kind, expected["kind"].as_str().expect("a kind"), "{name}");
        let again = match refusal.again() {
            Again::NotDone => "not-done",
            Again::PerhapsDone => "perhaps-done",
            Again::Never => "never",
        };
        assert_eq!(again, expected["again"].as_str().expect("again"), "{name}");
        let causes = refusal.causes.iter();
        if let Value::Array(managers) = &expected["managers"] {
            let found: Vec<_> = causes.clone().filter_map(|cause| cause.manager()).collect();
            assert_eq!(found, *managers, "{name}");
        }
        if let Value::Array(fields) = &expected["fields"] {
            let found: Vec<_> = causes.map(|cause| cause.field.as_str()).collect();
            assert_eq!(found, *fields, "{name}");
        }
        if let Value::String(message) = &expected["message"] {
            assert_eq!(refusal.message, *message, "{name}");
        }
        let part = expected["message_has"].as_str().unwrap_or_default();
        assert!(
            refusal.message.contains(part),
            "{name}: {}",
            refusal.message
        );
        let shown = format!("{refusal} {refusal:?}");
        assert!(!shown.contains("hunter2"), "{name}: {shown}");
    }
}

#[test]
fn a_pause_that_is_asked_for_is_made_and_never_longer_than_there_is_time() {
    let busy = |pause: &str| answer("429 Too Many Requests", &[("Retry-After", pause)], "");
    for pause in ["0", "-1", "abc", "", "Thu, 01 Jan 2015 00:00:00 GMT"] {
        let liar = once(busy(pause));
        let connection = connect(&liar);
        connection.send(&apply("ConfigMap")).expect(pause);
        assert_eq!(liar.requests().len(), 2, "{pause}");
    }
    let liar = once(busy("1"));
    let begun = Instant::now();
    connect(&liar).send(&get("ConfigMap")).expect("an answer");
    assert!(begun.elapsed() >= SECOND);
    for pause in [
        "86400",
        "18446744073709551615",
        "Mon, 01 Jan 9000 00:00:00 GMT",
    ] {
        let liar = once(busy(pause));
        let connection = connect(&liar);
        connection.end_after(SECOND);
        let error = connection.send(&get("ConfigMap")).expect_err(pause);
        assert_eq!(error.kind(), Some(RefusalKind::Unavailable));
        assert_eq!(liar.requests().len(), 1, "{pause}");
    }
}

#[test]
fn a_storm_of_errors_is_outlived_and_a_constant_one_is_given_up() {
    let count = Mutex::new(0);
    let storm = Liar::plain(move |_| {
        let mut count = count.lock().expect("a count");
        *count += 1;
        match *count % 3 {
            0 => answer(
                "500 Internal Server Error",
                &[],
                status(500, "InternalError", "no"),
            ),
            _ => answer("200 OK", &[], OBJECT),
        }
    });
    let connection = connect(&storm);
    let numbers: Vec<u32> = (0..60).collect();
    let answers = concurrently(&numbers, 16, |_| connection.send(&get("ConfigMap")));
    assert!(answers.iter().all(Result::is_ok));
    let down = Liar::plain(|_| answer("503 Service Unavailable", &[], ""));
    let connection = connect(&down);
    connection.end_after(6 * SECOND);
    let error = connection
        .send(&get("ConfigMap"))
        .expect_err("no answer")
        .to_string();
    assert!(
        error.contains("tried") && error.contains("times in"),
        "{error}"
    );
    assert!(down.requests().len() <= 8, "{}", down.requests().len());
}

#[test]
fn an_object_that_fits_no_schema_is_sent_once_and_a_secret_is_not_repeated() {
    let text = "failed to create typed patch object: .stringData.a: expected string, got hunter2";
    let liar =
        Liar::plain(move |_| answer("500 Internal Server Error", &[], status(500, "", text)));
    let error = connect(&liar)
        .send(&apply("Secret"))
        .expect_err("it is refused");
    assert_eq!(error.kind(), Some(RefusalKind::Invalid));
    assert_eq!(liar.requests().len(), 1);
    let shown = format!("{error} {error:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

#[test]
fn an_answer_that_breaks_off_is_never_taken_for_one() {
    let cut = |headers: &[(&str, &str)], body: &str| {
        vec![Act::Send([head("200 OK", headers), body.into()].concat())]
    };
    let broken = [
        vec![Act::Reset],
        vec![Act::Send(b"HTTP/1.1 200 ".to_vec())],
        cut(&[("Content-Length", "1000")], OBJECT),
        cut(
            &[("Transfer-Encoding", "chunked")],
            "26\r\n{\"kind\":\"Config",
        ),
        cut(&[], "{\"kind\":\"Config"),
        answer("504 Gateway Timeout", &[], ""),
    ];
    for first in broken {
        let shown = format!("{first:?}");
        let liar = once(first);
        connect(&liar).send(&apply("ConfigMap")).expect(&shown);
        assert_eq!(liar.requests().len(), 2, "{shown}");
    }
}

#[test]
fn an_answer_that_never_ends_is_given_up_in_time() {
    let trickle = |_: &_| {
        let begin = head("200 OK", &[("Content-Length", "1000")]);
        vec![Act::Send(begin), Act::Trickle(SECOND / 10, 100)]
    };
    let silence = |_: &_| vec![Act::Wait];
    for liar in [Liar::plain(trickle), Liar::plain(silence)] {
        let connection = connect_with(&liar, |settings| settings.request_timeout = Some(SECOND));
        let begun = Instant::now();
        let error = connection.send(&apply("ConfigMap")).expect_err("no answer");
        assert!(begun.elapsed() < 5 * SECOND);
        let error = error.to_string();
        assert!(
            error.contains("no whole answer in 1 seconds (tried 2 times"),
            "{error}"
        );
        assert!(error.contains("may have been made"), "{error}");
        // The server is told to give up before we do.
        assert!(
            liar.requests()
                .iter()
                .all(|request| request.target.contains("timeout=900ms"))
        );
    }
}

#[test]
fn what_is_no_kubernetes_is_told_at_once() {
    let page = "<html><form>log in, hunter2</form></html>";
    for (status, headers, body) in [
        ("200 OK", &[][..], page),
        ("200 OK", &[], ""),
        ("200 OK", &[], "[1]"),
        ("302 Found", &[("Location", "http://127.0.0.1:1/login")], ""),
    ] {
        let liar = Liar::plain(move |_| answer(status, headers, body));
        let error = connect(&liar).send(&get("ConfigMap")).expect_err(body);
        assert!(matches!(error, ApiError::NotKubernetes { .. }), "{error}");
        assert!(!error.to_string().contains("hunter2"));
        assert_eq!(liar.requests().len(), 1);
    }
}

#[test]
fn warnings_are_told_once_with_their_object() {
    let header = ("Warning", "299 - \"v1beta1 is \\\"old\\\"\"");
    let liar = Liar::plain(move |_| answer("200 OK", &[header], OBJECT));
    let connection = connect(&liar);
    for _ in 0..3 {
        connection.send(&apply("ConfigMap")).expect("an answer");
    }
    let warnings = connection.take_warnings();
    assert_eq!(warnings, ["configmap/a in ops: v1beta1 is \"old\""]);
    connection.send(&apply("ConfigMap")).expect("an answer");
    assert!(connection.take_warnings().is_empty());
}

#[test]
fn a_run_that_ends_waits_for_nothing() {
    let liar = Liar::plain(|_| answer("503 Service Unavailable", &[("Retry-After", "30")], ""));
    let connection = Arc::new(connect(&liar));
    let waiting = Arc::clone(&connection);
    let waiting = thread::spawn(move || waiting.send(&apply("ConfigMap")));
    while liar.requests().is_empty() {
        thread::sleep(SECOND / 100);
    }
    let begun = Instant::now();
    connection.stop();
    let error = waiting.join().expect("a thread").expect_err("no answer");
    assert!(begun.elapsed() < 2 * SECOND);
    assert!(error.to_string().contains("may have been made"), "{error}");
    let error = connection.send(&get("ConfigMap")).expect_err("it is over");
    assert!(matches!(error, ApiError::Stopped { .. }), "{error}");
    assert_eq!(liar.requests().len(), 1);
    // What has to be put in order is still sent.
    connection.end_after(SECOND);
    let _ = connection.send(&get("ConfigMap"));
    assert_eq!(liar.requests().len(), 2);
}

#[test]
fn a_server_that_was_never_reached_is_given_up_soon() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = closed.local_addr().expect("an address");
    drop(closed);
    let liar = Liar::plain(|_| vec![]);
    let connection = connect_with(&liar, |settings| {
        settings.server = Some(format!("http://{address}"));
    });
    let begun = Instant::now();
    let error = connection
        .send(&apply("ConfigMap"))
        .expect_err("no server")
        .to_string();
    assert!(begun.elapsed() < 3 * SECOND);
    assert!(
        error.contains("refused") && error.contains(&address.to_string()),
        "{error}"
    );
    assert!(!error.contains("may have been made"), "{error}");
}

#[test]
fn a_server_that_is_started_anew_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let serve = |listener: &TcpListener| {
        let (mut stream, _) = listener.accept().expect("a connection");
        let mut request = [0; 4096];
        let _ = stream.read(&mut request);
        let head = head("200 OK", &[("Content-Length", &OBJECT.len().to_string())]);
        let _ = stream.write_all(&[head, OBJECT.into()].concat());
    };
    let server = thread::spawn(move || {
        serve(&listener);
        drop(listener);
        thread::sleep(8 * SECOND);
        let again = TcpListener::bind(address).expect("the same port");
        serve(&again);
    });
    let liar = Liar::plain(|_| vec![]);
    let connection = connect_with(&liar, |settings| {
        settings.server = Some(format!("http://{address}"));
    });
    let told = Arc::new(Mutex::new(vec![]));
    let tell = Arc::clone(&told);
    connection.on_wait(move |line| tell.lock().expect("lines").push(line.to_owned()));
    connection
        .send(&get("ConfigMap"))
        .expect("the first answer");
    connection
        .send(&apply("ConfigMap"))
        .expect("the second answer");
    server.join().expect("a thread");
    let told = told.lock().expect("lines");
    assert!((1..=3).contains(&told.len()), "{told:?}");
    assert!(
        told.iter()
            .all(|line| line.starts_with("waiting for the API server: "))
    );
}

#[test]
fn a_list_is_read_to_its_end_and_begun_anew_when_it_is_too_old() {
    let liar = Liar::plain(|request| {
        let list = |name: &str, next: &str| {
            let list = json!({"kind": "ConfigMapList", "apiVersion": "v1",
                "metadata": {"continue": next}, "items": [{"metadata": {"name": name}}]});
            answer("200 OK", &[], list.to_string())
        };
        match (request.target.contains("continue=n%2F1"), request.before) {
            (false, _) => list("a", "n/1"),
            (true, 0) => answer("410 Gone", &[], status(410, "Expired", "too old")),
            (true, _) => list("b", ""),
        }
    });
    let (resource, _) = resource("ConfigMap");
    let all = connect(&liar).list_all(&Request::list(&resource, None, "a=b,c"));
    let all = all.expect("a list");
    let names: Vec<_> = all
        .iter()
        .map(|object| &object["metadata"]["name"])
        .collect();
    assert_eq!(names, ["a", "b"]);
    assert!(all.iter().all(|object| object["kind"] == "ConfigMap"));
    let targets: Vec<_> = liar
        .requests()
        .into_iter()
        .map(|request| request.target)
        .collect();
    assert_eq!(targets.len(), 4);
    assert!(
        targets
            .iter()
            .all(|target| target.contains("labelSelector=a%3Db%2Cc")),
        "{targets:?}"
    );
    let endless =
        Liar::plain(|_| answer("200 OK", &[], r#"{"metadata":{"continue":"x"},"items":[]}"#));
    let list = Request::list(&resource, None, "");
    let error = connect(&endless).list_all(&list).expect_err("no end");
    assert!(error.to_string().contains("does not end"), "{error}");
}

#[test]
fn a_list_that_fills_the_memory_is_given_up() {
    let many = format!(
        r#"{{"metadata":{{}},"items":[{}{{}}]}}"#,
        "{},".repeat(500_000)
    );
    let liar = Liar::plain(move |_| answer("200 OK", &[], &many));
    let (resource, _) = resource("ConfigMap");
    let list = Request::list(&resource, None, "");
    let error = connect(&liar).list_all(&list).expect_err("too many");
    let told = error.to_string();
    assert!(
        told.contains("more than 500000 objects") && told.contains("see what fills it"),
        "{told}"
    );
}

#[test]
fn an_old_server_is_asked_for_each_group_and_a_dead_one_is_remembered() {
    let liar = Liar::plain(|request| {
        let path = request.target.split('?').next().unwrap_or_default();
        let body = match path {
            "/api" => json!({"kind": "APIVersions", "versions": ["v1"]}),
            "/apis" => json!({"kind": "APIGroupList", "groups": [
                {"name": "dead.example.com", "versions": [{"version": "v1"}]}]}),
            "/api/v1" => json!({"kind": "APIResourceList", "resources": [
                {"name": "configmaps", "kind": "ConfigMap", "namespaced": true, "verbs": ["list"]}]}),
            _ => return answer("404 Not Found", &[], status(404, "NotFound", "gone")),
        };
        match request.header("accept") {
            Some("application/json") => answer("200 OK", &[], body.to_string()),
            _ if path == "/api" || path == "/apis" => answer(
                "406 Not Acceptable",
                &[],
                status(406, "NotAcceptable", "no"),
            ),
            _ => answer("200 OK", &[], body.to_string()),
        }
    });
    let resources = connect(&liar).resources().expect("resources");
    assert_eq!(resources.listed().len(), 1);
    assert!(resources.stale().contains("dead.example.com"));
}
