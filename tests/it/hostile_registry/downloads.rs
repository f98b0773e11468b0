//! Downloads that break off.

use std::{
    io::Read,
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use kubectl_olm::source::{
    credentials::Credentials,
    mirrors::Mirrors,
    registry::{ErrorClass::Network, Progress, Registries},
};

use super::{always, anonymous, answer, assert_error, blob, bytes, descriptor, image, plain};
use crate::lying::{Act, Liar, Request, head};

const SIZE: usize = 100_000;

/// The head of an answer with everything from where it is asked for.
fn part(request: &Request, size: usize) -> Vec<u8> {
    let from = request.from();
    let length = (size - from).to_string();
    let range = format!("bytes {from}-{}/{size}", size - 1);
    match from {
        0 => head("200 OK", &[("Content-Length", &length)]),
        _ => head(
            "206 Part",
            &[("Content-Length", &length), ("Content-Range", &range)],
        ),
    }
}

/// What is left, up to so many bytes.
fn piece(content: &[u8], request: &Request, most: usize) -> Act {
    let rest = &content[request.from()..];
    Act::Send(rest[..most.min(rest.len())].to_vec())
}

#[test]
fn a_download_goes_on_where_it_broke_off() {
    let content = bytes(SIZE);
    let given = content.clone();
    let server = Liar::plain(move |request| {
        let mut acts = vec![
            Act::Send(part(request, SIZE)),
            piece(&given, request, 18_000),
        ];
        if request.before % 2 == 1 {
            acts.push(Act::Reset);
        }
        acts
    });
    let (read, ended) = blob(
        &anonymous(plain(&[&server])),
        &image(&server),
        &descriptor(&content),
    );
    ended.expect("the whole blob");
    assert!(read == content, "the content differs");
    let requests = server.requests();
    assert!(requests.len() >= 6, "{}", requests.len());
    assert!(requests.iter().skip(1).all(|request| request.from() > 0));
}

#[test]
fn a_server_that_begins_anew_is_heard_again_from_where_it_broke_off() {
    let content = bytes(SIZE);
    let given = content.clone();
    let server = Liar::plain(move |request| match request.before {
        0 => {
            let length = SIZE.to_string();
            let head = head("200 OK", &[("Content-Length", &length)]);
            vec![Act::Send(head), Act::Send(given[..SIZE / 2].to_vec())]
        }
        _ => answer("200 OK", &[], &given),
    });
    let (read, ended) = blob(
        &anonymous(plain(&[&server])),
        &image(&server),
        &descriptor(&content),
    );
    ended.expect("the whole blob");
    assert!(read == content, "the content differs");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_server_that_goes_on_elsewhere_is_refused() {
    let content = bytes(SIZE);
    for (range, place) in [
        (format!("bytes 7-{}/{SIZE}", SIZE - 1), "byte 7"),
        ("nonsense".to_owned(), "nowhere"),
    ] {
        let given = content.clone();
        let server = Liar::plain(move |request| match request.before {
            0 => vec![
                Act::Send(part(request, SIZE)),
                piece(&given, request, 50_000),
            ],
            _ => answer("206 Part", &[("Content-Range", &range)], "x"),
        });
        let expected = descriptor(&content);
        let (read, ended) = blob(&anonymous(plain(&[&server])), &image(&server), &expected);
        assert!(read == content[..50_000], "the content differs");
        let message = format!(
            "blob {} of org/app from {} broke off at 50000 of {SIZE} bytes: it goes on at {place} instead of byte 50000",
            expected.digest,
            server.address(),
        );
        assert_error(ended, Network, &message);
        assert_eq!(server.requests().len(), 2);
    }
}

#[test]
fn two_attempts_without_progress_end_a_download() {
    let content = bytes(SIZE);
    let expected = descriptor(&content);
    let cut = |server: &Liar, reason: &str| {
        let host = server.address();
        format!(
            "blob {} of org/app from {host} broke off at 1000 of {SIZE} bytes: {reason}",
            expected.digest
        )
    };
    thread::scope(|scope| {
        for (rest, reason) in [
            (vec![], "the connection was closed too early"),
            (vec![Act::Wait], "nothing came for 1 s"),
            (
                vec![Act::Trickle(Duration::from_millis(50), 100)],
                "less than 1024 bytes came in a second",
            ),
        ] {
            let (given, expected, cut) = (content.clone(), &expected, &cut);
            scope.spawn(move || {
                let server = Liar::plain(move |request| {
                    let begin = Act::Send(part(request, SIZE));
                    match request.before {
                        0 => vec![begin, piece(&given, request, 1000)],
                        _ => [vec![begin], rest.clone()].concat(),
                    }
                });
                let (_, ended) = blob(&anonymous(plain(&[&server])), &image(&server), expected);
                let error = ended.expect_err("an error");
                if reason.starts_with("less") {
                    // How many bytes a trickle gave until it was given up is left to chance.
                    assert!(error.to_string().ends_with(reason), "{error}");
                } else {
                    assert_error::<()>(Err(error), Network, &cut(&server, reason));
                }
                assert_eq!(server.requests().len(), 3);
            });
        }
    });
}

/// More than the buffers of the system and of the client hold.
const MUCH_KIBIBYTES: usize = 64 << 10;

#[test]
fn a_download_that_nobody_reads_waits_and_stops_when_it_is_dropped() {
    let size: usize = 1 << 30;
    let server =
        Liar::plain(move |request| vec![Act::Send(part(request, size)), Act::Flood(size >> 10)]);
    let mut expected = descriptor(b"");
    expected.size = size as u64;
    let registries = anonymous(plain(&[&server]));
    let mut reader = registries
        .blob(&image(&server), &expected)
        .expect("a download");
    reader.read_exact(&mut [0; 1000]).expect("some bytes");
    let mut before = usize::MAX;
    while before != server.flooded() {
        before = server.flooded();
        thread::sleep(Duration::from_millis(100));
    }
    drop(reader);
    // The one that asked for TLS is over as well.
    server.wait_for_ends(2);
    assert!(
        server.flooded() < MUCH_KIBIBYTES,
        "{} KiB",
        server.flooded()
    );
}

#[test]
fn an_empty_blob_is_one_too() {
    let server = Liar::plain(always(answer("200 OK", &[], "")));
    let (read, ended) = blob(
        &anonymous(plain(&[&server])),
        &image(&server),
        &descriptor(b""),
    );
    ended.expect("the whole blob");
    assert_eq!(read, b"");
}

/// Writes down what it is told.
#[derive(Debug, Default)]
struct Told(Mutex<Vec<String>>);

impl Told {
    fn tell(&self, words: String) {
        self.0.lock().expect("no thread has failed").push(words);
    }
}

impl Progress for Told {
    fn begin(&self, what: &str, bytes: Option<u64>) -> u64 {
        self.tell(format!("{what}: {bytes:?}"));
        7
    }

    fn advance(&self, id: u64, bytes: u64) {
        self.tell(format!("{id}: {bytes}"));
    }

    fn end(&self, id: u64) {
        self.tell(format!("{id}: over"));
    }
}

#[test]
fn a_download_tells_how_it_goes() {
    let server = Liar::plain(always(answer("200 OK", &[], "content")));
    let told = Arc::new(Told::default());
    let progress = Arc::clone(&told) as Arc<dyn Progress>;
    let settings = plain(&[&server]);
    let registries = Registries::new(settings, Credentials::none(), Mirrors::none(), progress);
    let registries = registries.expect("settings that make sense");
    let expected = descriptor(b"content");
    blob(&registries, &image(&server), &expected)
        .1
        .expect("the whole blob");
    // The task that tells it is the last that holds the other end.
    drop(registries);
    while Arc::strong_count(&told) > 1 {
        thread::yield_now();
    }
    let told = told.0.lock().expect("no thread has failed").clone();
    let digits = &expected.digest.hex()[..12];
    let begins = format!("{digits} of {}/org/app: Some(7)", server.address());
    assert_eq!(told, [begins.as_str(), "7: 7", "7: over"]);
}
