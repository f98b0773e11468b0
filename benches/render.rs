//! What rendering costs, beside its limit, in one run: `cargo bench`.
//!
//! The work is that of OLM's own renderer as it was measured: read the folder, validate, render, print YAML, with the
//! cert-manager provider. The bundles are those of the corpus that `OLM_CORPUS` names (by default `../shared/corpus`),
//! else those of `testdata`. The limit is what any reader on the same parser pays: libyaml's events of the same bytes.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark reads, prints, and stops where it cannot go on"
)]

use std::{
    fs,
    io::Cursor,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use kubectl_olm::{
    bundle::{self, Bundle, check::Facts},
    limits::Limits,
    manifest::yaml,
    render::{self, RenderOptions, certificates::CertManager, overrides::Overrides},
    source::{self, Settings, Sources},
};
use nix::{
    sys::resource::{UsageWho, getrusage},
    time::{ClockId, clock_gettime},
};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ROUNDS: usize = 5;
const STARTS: u32 = 200;

/// The steps of a render, and the CPU time that each took.
const STEPS: [&str; 4] = ["read and parse", "check", "render", "print YAML"];

#[derive(Default)]
struct Cost {
    steps: [Duration; 4],
    bytes_out: usize,
}

impl Cost {
    fn total(&self) -> Duration {
        self.steps.iter().sum()
    }
}

fn main() {
    // As the program does.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
    let (folder, bundles) = bundles();
    println!(
        "{} bundles below {}, {ROUNDS} rounds, the fastest counts",
        bundles.len(),
        folder.display()
    );
    // First, while this process is small: a child counts what its parent held when it was made.
    whole_process(&bundles);
    let costs: Vec<_> = bundles
        .iter()
        .map(|(path, watched)| fastest(path, watched))
        .collect();
    tell_totals(&costs);
    println!(
        "peak memory of this process: {} MiB",
        peak(UsageWho::RUSAGE_SELF)
    );
    let (mut limit, mut bytes) = (Duration::ZERO, 0);
    for (path, _) in &bundles {
        let (time, read) = events(path);
        (limit, bytes) = (limit + time, bytes + read);
    }
    tell_steps(&costs, limit, bytes);
}

/// The bundles to render, with the namespaces that they watch.
fn bundles() -> (PathBuf, Vec<(PathBuf, Vec<String>)>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let named = std::env::var_os("OLM_CORPUS").map(PathBuf::from);
    let corpus = named.unwrap_or_else(|| root.join("../shared/corpus"));
    let folder = if corpus.exists() {
        corpus.join("bundles")
    } else {
        root.join("testdata/bundles")
    };
    let bundles = source::folders_with(&folder, bundle::FOLDERS[0]).expect("bundles");
    let bundles = if corpus.exists() {
        with_modes(&corpus, &bundles)
    } else {
        bundles.into_iter().map(|path| (path, vec![])).collect()
    };
    (folder, bundles)
}

fn tell_totals(costs: &[Cost]) {
    let mut totals: Vec<_> = costs.iter().map(Cost::total).collect();
    totals.sort();
    let count = u32::try_from(totals.len()).expect("a count");
    let sum: Duration = totals.iter().sum();
    let at = |share: usize| milliseconds(totals[(totals.len() - 1) * share / 100]);
    println!(
        "CPU a bundle: mean {}, median {}, p90 {}, max {}",
        milliseconds(sum / count),
        at(50),
        at(90),
        at(100)
    );
}

/// Where the time goes, and how it compares with the limit: libyaml's events of all the bytes.
fn tell_steps(costs: &[Cost], limit: Duration, bytes: usize) {
    let count = u32::try_from(costs.len()).expect("a count");
    let sum: Duration = costs.iter().map(Cost::total).sum();
    let of_step = |step: usize| -> Duration { costs.iter().map(|cost| cost.steps[step]).sum() };
    let written: usize = costs.iter().map(|cost| cost.bytes_out).sum();
    println!(
        "bytes a bundle: mean {} kB in, {} kB out",
        bytes / costs.len() / 1000,
        written / costs.len() / 1000
    );
    for (step, name) in STEPS.iter().enumerate() {
        let time = of_step(step);
        let share = 100.0 * time.as_secs_f64() / sum.as_secs_f64();
        println!("  {name:15} {share:3.0} %  {}", milliseconds(time / count));
    }
    let rate = |bytes: usize, time: Duration| bytes as f64 / 1e6 / time.as_secs_f64();
    println!(
        "reading runs at {:.0} MB/s, printing at {:.0} MB/s",
        rate(bytes, of_step(0)),
        rate(written, of_step(3))
    );
    println!(
        "limit: libyaml's events alone {} a bundle, {:.0} MB/s; the whole render takes {:.2} of that",
        milliseconds(limit / count),
        rate(bytes, limit),
        sum.as_secs_f64() / limit.as_secs_f64(),
    );
}

/// The bundles of the corpus with the namespaces that its table says they watch.
fn with_modes(corpus: &Path, bundles: &[PathBuf]) -> Vec<(PathBuf, Vec<String>)> {
    let table = fs::read_to_string(corpus.join("cases.tsv")).unwrap_or_default();
    let watched = |path: &PathBuf| {
        let row = table.lines().find(|line| {
            let mut fields = line.split('\t');
            let ends = [fields.next(), fields.next()]
                .into_iter()
                .flatten()
                .collect::<PathBuf>();
            path.ends_with(ends)
        });
        let fields: Vec<_> = row.unwrap_or_default().split('\t').collect();
        match fields.as_slice() {
            [_, _, "AllNamespaces", ..] | [] | [_] => vec![],
            [_, _, _, watched, ..] => vec![(*watched).to_owned()],
            _ => vec![],
        }
    };
    bundles
        .iter()
        .map(|path| (path.clone(), watched(path)))
        .collect()
}

fn fastest(path: &Path, watched: &[String]) -> Cost {
    let rounds = (0..ROUNDS).map(|_| round(path, watched));
    rounds.min_by_key(Cost::total).unwrap_or_default()
}

fn round(path: &Path, watched: &[String]) -> Cost {
    let mut cost = Cost::default();
    let mut clock = cpu();
    let mut step = |cost: &mut Cost, step: usize| {
        let now = cpu();
        cost.steps[step] = now - clock;
        clock = now;
    };
    let files = Sources::new(Settings::offline())
        .files(path, &bundle::FOLDERS)
        .expect("a bundle");
    let bundle = Bundle::parse(files, &Limits::DEFAULT, &mut vec![]).expect("a good bundle");
    step(&mut cost, 0);
    assert!(
        bundle::check::check(&bundle, &Facts::default())
            .iter()
            .all(|problem| !problem.is_error())
    );
    step(&mut cost, 1);
    let options = RenderOptions {
        namespace: "operators".to_owned(),
        namespaces: vec![],
        watched: watched.to_vec(),
        certificates: Box::new(CertManager),
        overrides: Overrides::default(),
        csv: None,
    };
    let rendered = render::render(bundle, &options).expect("it renders");
    step(&mut cost, 2);
    let mut text = String::new();
    for manifest in rendered.manifests {
        text.clear();
        yaml::write(&manifest.into_value(), &mut text);
        cost.bytes_out += text.len();
    }
    step(&mut cost, 3);
    cost
}

/// What libyaml's events of the same bytes take, and how many bytes those are.
fn events(path: &Path) -> (Duration, usize) {
    let files = Sources::new(Settings::offline())
        .files(path, &["manifests"])
        .expect("a bundle");
    let paths = files.paths_in("manifests");
    let texts: Vec<_> = paths.iter().filter_map(|path| files.get(path)).collect();
    let pass = || {
        let begun = cpu();
        for text in &texts {
            let mut input = Cursor::new(text);
            let mut parser = libyaml_safer::Parser::new();
            parser.set_input(&mut input);
            for event in parser {
                std::hint::black_box(event).expect("YAML");
            }
        }
        cpu() - begun
    };
    let fastest = (0..ROUNDS).map(|_| pass()).min().unwrap_or_default();
    (fastest, texts.iter().map(|text| text.len()).sum())
}

/// The program as a whole, from its start to its end, on the bundle of median size.
fn whole_process(bundles: &[(PathBuf, Vec<String>)]) {
    let size = |path: &Path| -> u64 {
        let files = fs::read_dir(path.join("manifests"))
            .expect("a bundle")
            .flatten();
        files
            .filter_map(|file| file.metadata().ok())
            .map(|metadata| metadata.len())
            .sum()
    };
    let mut by_size: Vec<_> = bundles
        .iter()
        .map(|(path, watched)| (size(path), path, watched))
        .collect();
    by_size.sort();
    let (bytes, path, watched) = &by_size[by_size.len() / 2];
    let begun = Instant::now();
    for _ in 0..STARTS {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kubectl-olm"));
        command.arg("render").arg(path).args(["-n", "operators"]);
        command.args(
            watched
                .iter()
                .flat_map(|namespace| ["--watch-namespace", namespace]),
        );
        let status = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .expect("the program starts");
        assert!(status.success());
    }
    println!(
        "one bundle of {} kB as a whole process: {} wall, {} MiB peak",
        bytes / 1000,
        milliseconds(begun.elapsed() / STARTS),
        peak(UsageWho::RUSAGE_CHILDREN),
    );
}

/// The CPU time of this thread.
fn cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)
        .expect("the system has this clock")
        .into()
}

fn peak(who: UsageWho) -> i64 {
    getrusage(who).expect("the system tells").max_rss() / 1024
}

fn milliseconds(duration: Duration) -> String {
    format!("{:.2} ms", duration.as_secs_f64() * 1000.0)
}
