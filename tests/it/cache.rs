//! The cache: whatever happens to its files and to the runs that fill it, what it gives is what was put in.

use std::{
    env,
    fs::{self, File},
    io::{self, BufRead, BufReader, Read, Write},
    ops::Range,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime},
};

use kubectl_olm::{
    limits::Limits,
    oci::{
        digest::Digest,
        layer::{EntryKind, LayerEntry},
    },
    source::cache::{Cache, KeptLayer},
};
use nix::sys::resource::{Resource, setrlimit};
use tempfile::TempDir;

use super::{
    program::{Run, make_pipe, program},
    random::Random,
};

const REFERENCE: &str = "registry.example:5000/bundle:v1";
const BLOB: &[u8] = b"{\"schemaVersion\": 2}";
const PIECE: usize = 256 << 10;

fn wanted() -> Vec<String> {
    vec!["manifests".to_owned(), "metadata".to_owned()]
}

fn content(bytes: usize) -> Vec<u8> {
    let mut random = Random::new(bytes as u64);
    let bytes = (0..bytes).map(|_| random.below(256).to_le_bytes()[0]);
    bytes.collect()
}

fn entries(bytes: usize) -> Vec<LayerEntry> {
    let kind = EntryKind::File {
        position: 0,
        size: bytes as u64,
    };
    let path = "manifests/a.yaml".to_owned();
    vec![LayerEntry { path, kind }]
}

fn layer() -> Digest {
    Digest::of(b"a layer")
}

/// Keeps a layer of some content, in writes of all sizes.
fn keep_layer(cache: &Cache, content: &[u8], limits: &Limits) -> io::Result<KeptLayer> {
    let mut new = cache.new_layer(limits);
    let (mut rest, mut sizes) = (
        content,
        [1, 7_000, PIECE, 3 * PIECE + 5].into_iter().cycle(),
    );
    while !rest.is_empty() {
        let (some, more) = rest.split_at(sizes.next().expect("sizes").min(rest.len()));
        new.write_all(some)?;
        rest = more;
    }
    new.finish(&layer(), &wanted(), entries(content.len()))
}

fn part(kept: &KeptLayer, range: Range<usize>) -> io::Result<Vec<u8>> {
    let mut part = vec![];
    let range = range.start as u64..range.end as u64;
    kept.open(range)?.read_to_end(&mut part)?;
    Ok(part)
}

fn fill(cache: &Cache, bytes: usize) {
    cache.keep_blob(&Digest::of(BLOB), BLOB);
    cache.keep_tag(REFERENCE, &Digest::of(BLOB), Some("text/plain"));
    keep_layer(cache, &content(bytes), &Limits::DEFAULT).expect("a layer");
}

/// Asserts that all is in the cache, as it was put there.
fn is_full(cache: &Cache, bytes: usize) {
    assert_eq!(cache.blob(&Digest::of(BLOB)).as_deref(), Some(BLOB));
    let tag = (Digest::of(BLOB), Some("text/plain".to_owned()));
    assert_eq!(cache.tag(REFERENCE), Some(tag));
    let kept = cache.layer(&layer(), &wanted()).expect("a layer");
    assert_eq!(kept.entries(), entries(bytes));
    assert_eq!(part(&kept, 0..bytes).expect("its content"), content(bytes));
}

fn open(folder: &Path) -> Cache {
    let (cache, notice) = Cache::open(Some(folder.to_owned()));
    assert_eq!(notice, None);
    cache
}

fn new_cache() -> (TempDir, PathBuf, Cache) {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("kubectl-olm");
    let cache = open(&folder);
    (parent, folder, cache)
}

/// The files below a folder, and nothing else.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type().expect("a type").is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found.sort();
    found
}

type Damage = (&'static str, fn(&Path, &[u8]));

/// What can happen to a file.
const DAMAGES: [Damage; 11] = [
    ("no bytes", |path, _| fs::write(path, b"").expect("a file")),
    ("one byte", |path, _| fs::write(path, b"k").expect("a file")),
    ("the first half", |path, whole| {
        fs::write(path, &whole[..whole.len() / 2]).expect("a file");
    }),
    ("a byte less", |path, whole| {
        fs::write(path, &whole[..whole.len() - 1]).expect("a file");
    }),
    ("a byte more", |path, whole| {
        fs::write(path, [whole, b"\0"].concat()).expect("a file");
    }),
    ("a file of holes", |path, _| {
        File::create(path)
            .expect("a file")
            .set_len(40 << 30)
            .expect("holes");
    }),
    ("a folder", |path, _| {
        fs::remove_file(path).expect("a file");
        fs::create_dir_all(path.join("a/b")).expect("a folder");
    }),
    ("a link to nothing", |path, _| {
        link(Path::new("/no/such/file"), path)
    }),
    ("a link to a foreign file", |path, _| {
        link(Path::new("/etc/passwd"), path)
    }),
    ("a link to a copy of it", |path, whole| {
        let copy = path.with_extension("copy");
        fs::write(&copy, whole).expect("a file");
        link(&copy, path);
    }),
    ("a pipe", |path, _| {
        fs::remove_file(path).expect("a file");
        make_pipe(path);
    }),
];

fn link(target: &Path, path: &Path) {
    fs::remove_file(path).expect("a file");
    symlink(target, path).expect("a link");
}

#[test]
fn damage_is_found_before_use_and_replaced() {
    const BYTES: usize = PIECE + 1_000;
    let (_parent, folder, cache) = new_cache();
    fill(&cache, BYTES);
    is_full(&cache, BYTES);
    let kept = files(&folder);
    assert_eq!(kept.len(), 3, "{kept:?}");
    let is_there = |cache: &Cache| {
        [
            cache.blob(&Digest::of(BLOB)).is_some(),
            cache.tag(REFERENCE).is_some(),
            cache.layer(&layer(), &wanted()).is_some(),
        ]
    };
    let passwd = fs::read("/etc/passwd").expect("a file");
    for path in &kept {
        let whole = fs::read(path).expect("a file");
        for (name, damage) in DAMAGES {
            damage(path, &whole);
            let found = is_there(&cache);
            assert_eq!(
                found.iter().filter(|is| !**is).count(),
                1,
                "{name} for {path:?}"
            );
            fill(&cache, BYTES);
            is_full(&cache, BYTES);
            let metadata = fs::symlink_metadata(path).expect("a file");
            assert!(metadata.is_file(), "{name} for {path:?}");
        }
        let mut random = Random::new(1);
        for _ in 0..100 {
            let mut changed = whole.clone();
            let at = random.below(whole.len());
            changed[at] ^= 1 << random.below(8);
            fs::write(path, &changed).expect("a file");
            let found = is_there(&cache);
            assert_eq!(
                found.iter().filter(|is| !**is).count(),
                1,
                "byte {at} of {path:?}"
            );
            fs::write(path, &whole).expect("a file");
        }
    }
    is_full(&cache, BYTES);
    assert_eq!(fs::read("/etc/passwd").expect("a file"), passwd);
    assert_eq!(cache.trouble(), None);
}

/// A file under another one's name is whole, but not what was asked for.
#[test]
fn a_file_is_only_what_its_name_says() {
    let (_parent, folder, cache) = new_cache();
    fill(&cache, 10);
    let kept = files(&folder);
    let others = [wanted()[..1].to_vec(), vec!["configs".to_owned()]];
    for wanted in &others {
        assert!(cache.layer(&layer(), wanted).is_none());
        let new = cache.new_layer(&Limits::DEFAULT);
        new.finish(&layer(), wanted, vec![]).expect("a layer");
    }
    cache.keep_tag("registry.example/other:v1", &layer(), None);
    for path in files(&folder).iter().filter(|path| !kept.contains(path)) {
        let twin = kept.iter().find(|other| other.parent() == path.parent());
        fs::copy(twin.expect("a file in the same folder"), path).expect("a file");
    }
    assert!(
        others
            .iter()
            .all(|wanted| cache.layer(&layer(), wanted).is_none())
    );
    assert_eq!(cache.tag("registry.example/other:v1"), None);
    let reversed: Vec<_> = wanted().into_iter().rev().collect();
    assert!(
        cache.layer(&layer(), &reversed).is_some(),
        "the order tells nothing"
    );
}

#[test]
fn a_part_of_a_large_layer_needs_no_other_part() {
    const BYTES: usize = 80 * PIECE + 100;
    let (_parent, folder, cache) = new_cache();
    keep_layer(&cache, &content(BYTES), &Limits::DEFAULT).expect("a layer");
    let [path] = files(&folder).try_into().expect("one file");
    let whole = fs::read(&path).expect("a file");
    let expected = content(BYTES);
    let start = whole
        .windows(64)
        .position(|at| at == &expected[..64])
        .expect("its content");
    // All pieces but the third and the last are spoilt.
    let mut changed = whole.clone();
    for piece in (0..80).filter(|piece| *piece != 3) {
        changed[start + piece * PIECE + 77] ^= 1;
    }
    fs::write(&path, &changed).expect("a file");
    let kept = cache.layer(&layer(), &wanted()).expect("a layer");
    for range in [
        3 * PIECE + 5..3 * PIECE + 500,
        3 * PIECE..4 * PIECE,
        BYTES - 100..BYTES,
        7..7,
    ] {
        assert_eq!(
            part(&kept, range.clone()).expect("a part"),
            &expected[range]
        );
    }
    assert!(kept.open(0..BYTES as u64 + 1).is_err());
    let error = part(&kept, 3 * PIECE..5 * PIECE).expect_err("a spoilt piece");
    assert!(
        error.to_string().contains("was damaged, and is removed"),
        "{error}"
    );
    assert!(
        cache.layer(&layer(), &wanted()).is_none(),
        "it is taken anew"
    );
    keep_layer(&cache, &expected, &Limits::DEFAULT).expect("a layer");
    let kept = cache.layer(&layer(), &wanted()).expect("a layer");
    assert_eq!(part(&kept, 10..BYTES).expect("a part"), &expected[10..]);
}

#[test]
fn nothing_is_there_before_it_is_finished() {
    let (_parent, folder, cache) = new_cache();
    let mut new = cache.new_layer(&Limits::DEFAULT);
    new.write_all(&content(3 * PIECE)).expect("space");
    assert!(cache.layer(&layer(), &wanted()).is_none());
    drop(new);
    assert!(files(&folder).is_empty());
    cache.keep_blob(&Digest::of(b"other"), BLOB);
    let large = vec![0; (4 << 20) + 1];
    cache.keep_blob(&Digest::of(&large), &large);
    assert!(
        files(&folder).is_empty(),
        "what is not of its digest, or too large"
    );
}

#[test]
fn without_a_cache_memory_serves() {
    let cache = Cache::none();
    let limits = Limits {
        catalog_bytes: 2 * PIECE as u64,
        ..Limits::DEFAULT
    };
    fill(&cache, 10);
    let expected = content(2 * PIECE);
    let kept = keep_layer(&cache, &expected, &limits).expect("a layer");
    assert_eq!(
        part(&kept, 5..2 * PIECE - 3).expect("a part"),
        &expected[5..2 * PIECE - 3]
    );
    assert!(cache.layer(&layer(), &wanted()).is_none());
    let error = keep_layer(&cache, &content(2 * PIECE + 1), &limits).expect_err("a limit");
    assert!(
        error.to_string().contains("over the limit of 524288 bytes"),
        "{error}"
    );
}

#[test]
fn a_folder_that_cannot_be_trusted_is_not_used() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let at = |name: &str| parent.path().join(name);
    for (name, mode) in [("all", 0o777), ("group", 0o775)] {
        fs::create_dir(at(name)).expect("a folder");
        fs::set_permissions(at(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    fs::write(at("file"), "").expect("a file");
    fs::create_dir(at("good")).expect("a folder");
    symlink(at("good"), at("link")).expect("a link");
    // What belongs to another user, for root and for anybody else.
    let foreign = if fs::metadata(parent.path()).expect("a folder").uid() == 0 {
        fs::create_dir(at("foreign")).expect("a folder");
        std::os::unix::fs::chown(at("foreign"), Some(1), None).expect("root may");
        at("foreign")
    } else {
        PathBuf::from("/usr")
    };
    let cases = [
        (
            at("all"),
            "can be written to by others (its mode is 777): empty it and chmod 700",
        ),
        (at("group"), "can be written to by others (its mode is 775)"),
        (at("file"), "is not a folder"),
        (at("link"), "is a link"),
        (at("file").join("below"), "cannot be made"),
        (PathBuf::from("/proc/kubectl-olm"), "cannot be made"),
        (foreign, "belongs to another user"),
    ];
    for (folder, reason) in cases {
        let (cache, notice) = Cache::open(Some(folder.clone()));
        let notice = notice.expect(reason);
        let place = format!("because {} {reason}", folder.display());
        assert!(notice.contains(&place), "{notice}");
        assert!(notice.contains("XDG_CACHE_HOME"), "{notice}");
        fill(&cache, 10);
        assert_eq!(cache.blob(&Digest::of(BLOB)), None);
    }
    assert!(
        files(parent.path())
            .iter()
            .all(|path| *path == at("file") || *path == at("link"))
    );
}

/// What a test does in a process of its own, which is this program started again.
const JOB: &str = "CACHE_TEST_JOB";

/// Starts this test alone, to do a job with the cache in a folder. `shell` is what comes first.
fn start(job: &str, folder: &Path, shell: &str) -> Child {
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("{shell} exec \"$@\""))
        .arg("sh");
    command.arg(env::current_exe().expect("this program"));
    command.args(["cache::a_job_of_another_test", "--exact", "--nocapture"]);
    command.env(JOB, job).env("CACHE_TEST_FOLDER", folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().expect("this program starts")
}

fn succeeds(job: Child) {
    let output = job.wait_with_output().expect("an end");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stdout)
    );
}

#[test]
fn a_job_of_another_test() {
    let Ok(job) = env::var(JOB) else { return };
    let folder = PathBuf::from(env::var_os("CACHE_TEST_FOLDER").expect("a folder"));
    let cache = open(&folder);
    match job.as_str() {
        "fill" => {
            for _ in 0..20 {
                fill(&cache, 3 * PIECE);
                is_full(&cache, 3 * PIECE);
            }
            assert_eq!(cache.trouble(), None);
        }
        "wait" => {
            let mut new = cache.new_layer(&Limits::DEFAULT);
            new.write_all(&content(3 * PIECE)).expect("space");
            println!("written");
            // Until it is killed.
            let _ = io::stdin().read(&mut [0]);
        }
        "full" => full(&cache),
        other => panic!("no job {other}"),
    }
}

/// Nothing more fits, after a while, and the answer is the same.
fn full(cache: &Cache) {
    setrlimit(Resource::RLIMIT_FSIZE, 5 * PIECE as u64, 5 * PIECE as u64).expect("less");
    let expected = content(9 * PIECE);
    let kept = keep_layer(cache, &expected, &Limits::DEFAULT).expect("a layer");
    assert_eq!(part(&kept, 0..9 * PIECE).expect("its content"), expected);
    assert!(cache.layer(&layer(), &wanted()).is_none());
    let limits = Limits {
        catalog_bytes: PIECE as u64,
        ..Limits::DEFAULT
    };
    let error = keep_layer(cache, &expected, &limits).expect_err("neither has room");
    let text = error.to_string();
    assert!(
        text.contains("the cache takes no more (file too large)"),
        "{text}"
    );
    assert!(text.contains("limit of 262144 bytes in memory"), "{text}");
    // The content fits, what stands behind it does not.
    let expected = content(5 * PIECE - 30);
    let kept = keep_layer(cache, &expected, &Limits::DEFAULT).expect("a layer");
    assert_eq!(
        part(&kept, 0..expected.len()).expect("its content"),
        expected
    );
    setrlimit(Resource::RLIMIT_FSIZE, 10, 10).expect("less");
    fill(cache, 100);
    assert_eq!(cache.blob(&Digest::of(BLOB)), None);
    let trouble = cache.trouble().expect("a notice");
    assert!(
        trouble.contains("not everything could be kept"),
        "{trouble}"
    );
    assert_eq!(cache.trouble(), None, "one notice is enough");
}

#[test]
fn a_full_disk_changes_no_answer() {
    let (_parent, folder, _cache) = new_cache();
    succeeds(start("full", &folder, ""));
    assert!(files(&folder).is_empty(), "{:?}", files(&folder));
}

#[test]
fn several_runs_fill_it_at_once() {
    let (_parent, folder, cache) = new_cache();
    let jobs: Vec<_> = (0..3).map(|_| start("fill", &folder, "")).collect();
    jobs.into_iter().for_each(succeeds);
    is_full(&cache, 3 * PIECE);
    assert_eq!(files(&folder).len(), 3);
}

#[test]
fn only_its_owner_can_read_it() {
    let parent = tempfile::tempdir().expect("a temporary folder");
    let folder = parent.path().join("new/kubectl-olm");
    succeeds(start("fill", &folder, "umask 000;"));
    let mut pending = vec![parent.path().join("new")];
    while let Some(path) = pending.pop() {
        let metadata = fs::symlink_metadata(&path).expect("metadata");
        let mode = metadata.mode() & 0o7777;
        assert_eq!(
            mode,
            if metadata.is_dir() { 0o700 } else { 0o600 },
            "{path:?}"
        );
        if metadata.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
    }
}

#[test]
fn what_a_killed_run_left_behind_goes_and_what_runs_stays() {
    let (_parent, folder, _cache) = new_cache();
    let mut job = start("wait", &folder, "");
    let output = BufReader::new(job.stdout.take().expect("its output"));
    assert!(
        output
            .lines()
            .any(|line| line.expect("a line").contains("written"))
    );
    open(&folder);
    let kept = cache_command(&folder, &["prune", "--all"]);
    assert!(kept.stdout.starts_with("0 entries"), "{}", kept.stdout);
    let [path] = files(&folder).try_into().expect("one file");
    assert!(path.starts_with(folder.join("tmp")), "{path:?}");
    job.kill().expect("it runs");
    job.wait().expect("an end");
    let listed = cache_command(&folder, &["list", "-o", "json"]);
    assert!(
        listed.stdout.contains("\"kind\": \"leftover\""),
        "{}",
        listed.stdout
    );
    open(&folder);
    assert!(files(&folder).is_empty());
}

/// Runs `cache` with the folder, which is called `kubectl-olm`.
fn cache_command(folder: &Path, arguments: &[&str]) -> Run {
    let mut command = program();
    command.env("XDG_CACHE_HOME", folder.parent().expect("a parent"));
    let output = command.arg("cache").args(arguments).output();
    output.expect("the program starts").into()
}

#[test]
fn what_is_kept_is_shown() {
    let (_parent, folder, cache) = new_cache();
    let run = cache_command(&folder, &[]);
    assert_eq!(
        run.stdout,
        format!("0 entries of 0 B in {}\n", folder.display())
    );
    fill(&cache, 3 * PIECE);
    fs::write(folder.join("blobs/sha256/\u{1b}[31m"), "x").expect("a file");
    let run = cache_command(&folder, &[]);
    let lines: Vec<_> = run.stdout.lines().collect();
    let expected: [&[&str]; 6] = [
        &["KIND", "SIZE", "LAST USED", "WHAT", "ABOUT"],
        &["tag", "B", "ago", REFERENCE, "sha256:"],
        &["blob", "20 B", "sha256:", "manifest or configuration"],
        &[
            "layer",
            "768.3",
            "KiB",
            "sha256:",
            "for manifests, metadata",
        ],
        &[
            "unknown",
            "1 B",
            "\\u{1b}[31m",
            "not what belongs in blobs/sha256",
        ],
        &["4 entries of 768", "KiB in", "/kubectl-olm"],
    ];
    assert_eq!(lines.len(), expected.len(), "{}", run.stdout);
    for (line, texts) in lines.iter().zip(expected) {
        assert!(
            texts.iter().all(|text| line.contains(text)),
            "{texts:?} are not in {line}"
        );
    }
    let run = cache_command(&folder, &["list", "-o", "json"]);
    let value: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(value["entries"][0]["name"], REFERENCE);
    assert_eq!(value["entries"].as_array().map(Vec::len), Some(4));
    assert_eq!(value["folder"], folder.display().to_string());
}

#[test]
fn what_was_not_used_for_long_is_pruned() {
    let (_parent, folder, cache) = new_cache();
    fill(&cache, PIECE);
    let age = |path: &Path, days: u64| {
        let time = SystemTime::now() - Duration::from_hours(24 * days);
        File::open(path)
            .expect("a file")
            .set_modified(time)
            .expect("a time");
    };
    files(&folder).iter().for_each(|path| age(path, 31));
    // What is used is young again.
    let kept = cache.layer(&layer(), &wanted()).expect("a layer");
    let dry = cache_command(&folder, &["prune", "--dry-run"]);
    assert!(dry.stdout.contains("2 entries of"), "{}", dry.stdout);
    assert!(
        dry.stdout.contains("would be removed from"),
        "{}",
        dry.stdout
    );
    assert_eq!(files(&folder).len(), 3);
    let run = cache_command(&folder, &["prune"]);
    assert!(run.stdout.contains("were removed from"), "{}", run.stdout);
    let [layer_file] = files(&folder).try_into().expect("one file");
    age(&layer_file, 8);
    let run = cache_command(&folder, &["prune", "--older-than", "9d"]);
    assert!(run.stdout.starts_with("0 entries"), "{}", run.stdout);
    let run = cache_command(&folder, &["prune", "--older-than", "1w"]);
    assert!(run.stdout.contains("1 entry of"), "{}", run.stdout);
    assert!(files(&folder).is_empty());
    // Whoever had it open reads on.
    assert_eq!(part(&kept, 0..PIECE).expect("its content"), content(PIECE));
    fill(&cache, PIECE);
    cache_command(&folder, &["prune", "--all"]);
    assert!(files(&folder).is_empty());
}

#[test]
fn the_command_needs_a_folder_that_can_be_trusted() {
    let (_parent, folder, _cache) = new_cache();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).expect("a mode");
    for arguments in [&["prune", "--all"][..], &["list"]] {
        let run = cache_command(&folder, arguments);
        assert_eq!(run.code, 2, "{}", run.stdout);
        assert!(
            run.stderr.contains("can be written to by others"),
            "{}",
            run.stderr
        );
    }
    let mut command = program();
    command.env_remove("XDG_CACHE_HOME").arg("cache");
    let run = Run::from(command.output().expect("the program starts"));
    assert_eq!(run.code, 2, "{}", run.stdout);
    assert!(
        run.stderr.contains("set XDG_CACHE_HOME or HOME"),
        "{}",
        run.stderr
    );
}
