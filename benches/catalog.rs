//! What catalogs cost, beside the limits, in one run: `cargo bench --bench catalog`.
//!
//! The program is run as users run it, each time measured by a small process of its own, on the real catalogs of the
//! corpus (`OLM_CORPUS`, by default `../shared/corpus`) and on large ones made of them: every package under many names,
//! as JSON and as YAML, as one file and as one for each package. `BENCH_BYTES` says how large, by default 1 GB of JSON.
//! The limits are what any reader must do at least: read the bytes, pass over their structure, read them into types.
//! Beside them stands what opm takes, as it was measured once: 2.3 s of CPU and 170 MiB for the packages of 20 MB YAML.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark reads, prints, and stops where it cannot go on"
)]

mod made;

use std::{
    env, fs,
    io::{BufWriter, Read, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use kubectl_olm::{
    catalog::Catalog,
    limits::Limits,
    manifest::yaml,
    resolve::{self, Request, Rules, Wanted},
    source::{Settings, Sources},
};
use nix::sys::{
    resource::{UsageWho, getrusage},
    time::TimeValLike,
};
use rayon::prelude::*;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::{Value, ser::PrettyFormatter};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// What opm takes for a byte of YAML when it lists packages.
const OPM_SECONDS_A_BYTE: f64 = 2.3 / 20e6;

const ROUNDS: usize = 5;

fn main() {
    let arguments: Vec<_> = env::args().skip(1).collect();
    if let [measure, command @ ..] = arguments.as_slice()
        && measure == "--measure"
    {
        return measure_command(command);
    }
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let corpus = env::var_os("OLM_CORPUS").map(PathBuf::from);
    let corpus = corpus.unwrap_or_else(|| root().join("../shared/corpus"));
    let real = corpus.join("catalogs");
    assert!(
        real.is_dir(),
        "{} is missing: name the corpus with OLM_CORPUS",
        real.display()
    );
    println!("real catalogs, YAML, {ROUNDS} rounds, the least CPU counts");
    for version in ["v4.14", "v4.19"] {
        small(&real.join(version));
    }
    let made = root().join("target/bench-catalogs");
    let packages = make(&real, &made);
    for form in ["one.json", "json", "one.yaml", "yaml"] {
        large(&made.join(form), &packages);
    }
    limits(&made.join("one.json"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What a run of the program cost.
#[derive(Clone, Copy)]
struct Cost {
    wall: Duration,
    cpu: Duration,
    peak: u64,
}

/// Runs the program in a process that has no other child, and prints what the system says it took.
fn measure_command(command: &[String]) {
    let (program, arguments) = command.split_first().expect("a program");
    let begun = Instant::now();
    let status = Command::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .status();
    let wall = begun.elapsed();
    assert!(status.expect("the program starts").success());
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("the system tells");
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    println!("{} {cpu} {}", wall.as_micros(), usage.max_rss());
}

fn cost(cache: &Path, arguments: &[&str]) -> Cost {
    let output = Command::new(env::current_exe().expect("this program"))
        .args(["--measure", env!("CARGO_BIN_EXE_kubectl-olm")])
        .args(arguments)
        .env("XDG_CACHE_HOME", cache)
        .stderr(Stdio::inherit())
        .output()
        .expect("it runs");
    let text = String::from_utf8(output.stdout).expect("numbers");
    let numbers: Vec<u64> = text
        .split_whitespace()
        .map(|number| number.parse().expect("a number"))
        .collect();
    let [wall, cpu, peak] = numbers.try_into().expect("three numbers");
    Cost {
        wall: Duration::from_micros(wall),
        cpu: Duration::from_micros(cpu),
        peak: peak / 1024,
    }
}

/// The fastest of some rounds, each with an empty cache.
fn cold(arguments: &[&str]) -> Cost {
    let round = |_| cost(tempfile::tempdir().expect("a folder").path(), arguments);
    let rounds = (0..ROUNDS).map(round);
    rounds.min_by_key(|cost| cost.wall).expect("a round")
}

fn small(catalog: &Path) {
    let bytes = size(catalog);
    let opened = open(catalog);
    let package = opened.packages().next().expect("a package");
    let source = catalog.to_str().expect("a path");
    let opm = OPM_SECONDS_A_BYTE * bytes as f64;
    for arguments in [
        &["catalog", "list", "--catalog", source][..],
        &["catalog", "show", package, "--catalog", source],
    ] {
        let cost = cold(arguments);
        println!(
            "  {} of {:.1} MB: {}, {} CPU, {} MiB; opm {:.2} s CPU, {:.0} times as much",
            arguments[..2].join(" "),
            bytes as f64 / 1e6,
            milliseconds(cost.wall),
            milliseconds(cost.cpu),
            cost.peak,
            opm,
            opm / cost.cpu.as_secs_f64(),
        );
    }
}

fn large(catalog: &Path, packages: &[String]) {
    let bytes = size(catalog) as f64;
    let name = catalog
        .file_name()
        .and_then(|name| name.to_str())
        .expect("a name");
    println!("{name}, {:.0} MB, {} packages", bytes / 1e6, packages.len());
    let package = packages.get(packages.len() / 2).expect("a package");
    let source = catalog.to_str().expect("a path");
    let show = ["catalog", "show", package, "--catalog", source];
    let first = cold(&show);
    println!(
        "  show, cold: {}, {} CPU, {} MiB, {:.0} MB/s",
        milliseconds(first.wall),
        milliseconds(first.cpu),
        first.peak,
        bytes / 1e6 / first.wall.as_secs_f64()
    );
    let cache = tempfile::tempdir().expect("a folder");
    cost(cache.path(), &show);
    let rounds = (0..ROUNDS).map(|_| cost(cache.path(), &show));
    let again = rounds.min_by_key(|cost| cost.wall).expect("a round");
    println!(
        "  show, indexed: {}, {} MiB",
        milliseconds(again.wall),
        again.peak
    );
    let begun = Instant::now();
    let catalogs = [open(catalog)];
    let resolve = |package: &&String| {
        let wanted = Wanted {
            package: (*package).clone(),
            catalog: None,
            rules: Rules::Subscription {
                channel: None,
                starting_csv: None,
            },
        };
        let request = Request {
            wanted: vec![wanted],
            ..Request::default()
        };
        resolve::resolve(&catalogs.iter().collect::<Vec<_>>(), &request).is_ok()
    };
    let chosen = packages.par_iter().filter(resolve).count();
    println!(
        "  every package resolved, opening the catalog included: {}; {chosen} with all they need",
        milliseconds(begun.elapsed())
    );
}

/// What any reader of the bytes takes at least.
fn limits(catalog: &Path) {
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Typed {
        schema: String,
        #[serde(default)]
        name: String,
        #[serde(default)]
        package: String,
        #[serde(default)]
        properties: Vec<Property>,
        #[serde(default)]
        entries: Vec<Value>,
    }
    #[derive(Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Property {
        r#type: String,
        value: Value,
    }
    let mut file = fs::File::open(catalog).expect("a catalog");
    let mut piece = vec![0; 1 << 20];
    let begun = Instant::now();
    while file.read(&mut piece).expect("readable") > 0 {}
    let bytes = size(catalog) as f64 / 1e6;
    let tell = |what: &str, time: Duration| {
        println!(
            "  {what}: {}, {:.0} MB/s",
            milliseconds(time),
            bytes / time.as_secs_f64()
        );
    };
    println!("limits for the JSON, one thread");
    tell("read the bytes", begun.elapsed());
    let text = fs::read(catalog).expect("readable");
    let begun = Instant::now();
    let documents = serde_json::Deserializer::from_slice(&text).into_iter::<IgnoredAny>();
    for document in documents {
        document.expect("JSON");
    }
    tell("pass over the structure", begun.elapsed());
    let begun = Instant::now();
    let documents = serde_json::Deserializer::from_slice(&text).into_iter::<Typed>();
    for document in documents {
        std::hint::black_box(document.expect("JSON"));
    }
    tell("read into types", begun.elapsed());
}

/// Makes the large catalogs, unless they are there; gives the names of their packages.
fn make(real: &Path, made: &Path) -> Vec<String> {
    let bytes: u64 =
        env::var("BENCH_BYTES").map_or(1_000_000_000, |bytes| bytes.parse().expect("a number"));
    let done = made.join(format!("made-{bytes}"));
    if let Ok(names) = fs::read_to_string(&done) {
        return names.lines().map(str::to_owned).collect();
    }
    println!(
        "making catalogs of {} MB in {}",
        bytes / 1_000_000,
        made.display()
    );
    let _ = fs::remove_dir_all(made);
    for form in ["json", "yaml"] {
        fs::create_dir_all(made.join(form)).expect("a folder");
    }
    let one = |form: &str| {
        let file = fs::File::create(made.join(form)).expect("a file");
        BufWriter::new(file)
    };
    let (mut one_json, mut one_yaml) = (one("one.json"), one("one.yaml"));
    let packages = made::real_packages(real);
    let (mut names, mut written) = (vec![], 0);
    for round in 0.. {
        for (name, documents) in &packages {
            let new = format!("{name}-{round}");
            let (mut json, mut yaml) = (vec![], String::new());
            for document in documents {
                let document = made::renamed(document.clone(), &new);
                let format = PrettyFormatter::with_indent(b"    ");
                let mut writer = serde_json::Serializer::with_formatter(&mut json, format);
                serde::Serialize::serialize(&document, &mut writer).expect("JSON");
                json.push(b'\n');
                yaml.push_str("---\n");
                yaml::write(&document, &mut yaml);
            }
            written += json.len() as u64;
            one_json.write_all(&json).expect("space");
            one_yaml.write_all(yaml.as_bytes()).expect("space");
            fs::write(made.join("json").join(format!("{new}.json")), json).expect("space");
            fs::write(made.join("yaml").join(format!("{new}.yaml")), yaml).expect("space");
            names.push(new);
        }
        if written >= bytes {
            break;
        }
    }
    names.sort();
    one_json.flush().expect("space");
    one_yaml.flush().expect("space");
    // What changed just now is not kept in the index.
    std::thread::sleep(Duration::from_secs(3));
    fs::write(done, names.join("\n")).expect("space");
    names
}

fn open(catalog: &Path) -> Catalog {
    let source = Sources::new(Settings::offline())
        .catalog(catalog, None)
        .expect("a catalog")
        .content;
    Catalog::read("catalog", 0, source.content, &Limits::DEFAULT).expect("a catalog")
}

fn size(path: &Path) -> u64 {
    let source = Sources::new(Settings::offline())
        .catalog(path, None)
        .expect("a catalog")
        .content;
    source.content.files().iter().map(|(_, size)| size).sum()
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.1} ms", duration.as_secs_f64() * 1000.0)
}
