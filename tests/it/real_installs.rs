//! Real bundles through the life of an install, on a real control plane: applied, compared, applied again, upgraded,
//! removed; and the cluster is as it was.
//!
//! Which ones is a rule: of nine packages of the corpus five, in their two newest versions.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    process::Command,
    time::Instant,
};

use rayon::prelude::*;
use semver::Version;
use serde_json::Value;

use super::{
    cluster::{NOTHING, cluster},
    corpus::{cases, corpus},
    faults::FaultProxy,
    program::{Run, program},
    snapshot::Snapshot,
};

/// Of so many packages of the corpus every second one is taken, beginning with the first.
const ROUND: usize = 9;

/// What the kinds are called that the tools of a cluster define. A package that brings them too is refused.
const OF_TOOLS: [&str; 2] = [".monitoring.coreos.com", ".cert-manager.io"];

/// How many installs live at once. Most of the time they wait for the controllers.
const AT_ONCE: usize = 8;

/// What may be said to an upgrade that is refused for it. The refusal names it.
const ALLOWED: [&str; 3] = [
    "--crd-upgrade-safety none",
    "--recreate",
    "--force-conflicts",
];

/// A package of the corpus.
pub(crate) struct Package {
    /// Its bundles, the oldest first; one at least.
    pub(crate) bundles: Vec<PathBuf>,
    pub(crate) name: String,
}

/// Those packages of the corpus that are installed.
pub(crate) fn packages(corpus: &Path) -> Vec<Package> {
    let mut versions: BTreeMap<String, Vec<Version>> = BTreeMap::new();
    for case in cases(corpus) {
        let version = Version::parse(&case.version).expect("a version");
        versions.entry(case.operator).or_default().push(version);
    }
    let packages = versions.into_iter().enumerate();
    let packages = packages.filter(|(number, _)| (number % ROUND).is_multiple_of(2));
    let of_package = |(_, (name, mut versions)): (usize, (String, Vec<Version>))| {
        versions.sort();
        let folder = corpus.join("bundles").join(&name);
        let bundles = versions
            .iter()
            .map(|version| folder.join(version.to_string()));
        Package {
            bundles: bundles.collect(),
            name,
        }
    };
    packages.map(of_package).collect()
}

/// An install of a package in a namespace of its own, which it makes.
struct Install<'p> {
    package: &'p Package,
    namespace: String,
}

#[test]
fn real_bundles_are_installed_upgraded_and_removed() {
    let Some(corpus) = corpus() else { return };
    // What is of these kinds in bundles is for others to see to.
    cluster().define("cert-manager.yaml");
    cluster().define("monitoring.yaml");
    let packages = packages(&corpus);
    let of_package = |(number, package)| Install {
        package,
        namespace: format!("life-{number}"),
    };
    let installs: Vec<_> = packages.iter().enumerate().map(of_package).collect();
    assert!(installs.len() >= 50, "only {} packages", installs.len());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(AT_ONCE);
    let begin = Instant::now();
    let lives: Vec<_> = pool.build().expect("threads").install(|| {
        let lives = installs.par_iter().with_max_len(1).map(|install| {
            let life = install.live();
            life.map_err(|reason| format!("{}: {reason}", install.package.name))
        });
        lives.collect()
    });
    let upgraded = lives.iter().flatten().flatten().count();
    let failures: Vec<_> = lives.into_iter().filter_map(Result::err).collect();
    println!(
        "{} packages were installed, {upgraded} of them upgraded, in {:?}",
        installs.len(),
        begin.elapsed()
    );
    assert!(
        failures.is_empty(),
        "{}:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

impl Install<'_> {
    /// From nothing to nothing; gives what had to be said to the upgrade, if there was one.
    fn live(&self) -> Result<Option<Vec<&'static str>>, String> {
        let bundles = &self.package.bundles;
        let newest = bundles.last().expect("a bundle");
        let first = &bundles[bundles.len().saturating_sub(2)];
        let names = self.cluster_wide([first, newest])?;
        let before = self.snapshot(&names);
        if names
            .iter()
            .any(|name| OF_TOOLS.iter().any(|tools| name.ends_with(tools)))
        {
            self.is_refused(first)?;
            before.compare(&self.snapshot(&names))?;
            return Ok(None);
        }
        ok(self
            .with("apply", first)
            .args(["--wait", "--timeout", "120s"]))?;
        self.is_available()?;
        self.is_settled(first)?;
        let mut said = None;
        if first != newest {
            said = Some(self.upgrade(newest)?);
            self.is_settled(newest)?;
        }
        let mut cleanup = program();
        cleanup.args([
            "cleanup",
            &self.package.name,
            "-n",
            &self.namespace,
            "--yes",
        ]);
        ok(cleanup.env("KUBECONFIG", cluster().kubeconfig()))?;
        before.compare(&self.snapshot(&names))?;
        Ok(said)
    }

    /// A command about a bundle.
    fn with(&self, word: &str, bundle: &Path) -> Command {
        let mut command = program();
        command.arg(word).arg(bundle);
        command.args(["-n", &self.namespace, "--create-namespace"]);
        command.args(["--certs", "self-signed"]);
        command.args(["--name", &self.package.name]);
        command.env("KUBECONFIG", cluster().kubeconfig());
        command
    }

    /// The names of the objects in the whole cluster that bundles bring, and those of the kinds that others define.
    fn cluster_wide(&self, bundles: [&Path; 2]) -> Result<BTreeSet<String>, String> {
        let mut names = BTreeSet::from([self.namespace.clone()]);
        for bundle in bundles {
            let mut render = program();
            render.arg("render").arg(bundle);
            render.args(["-n", &self.namespace, "-o", "json", "--certs", "none"]);
            let list: Value =
                serde_json::from_str(&ok(&mut render)?).map_err(|error| error.to_string())?;
            let objects = list["items"].as_array().into_iter().flatten();
            let objects = objects.filter(|object| object["metadata"]["namespace"].is_null());
            names.extend(
                objects.filter_map(|object| object["metadata"]["name"].as_str().map(str::to_owned)),
            );
        }
        Ok(names)
    }

    fn snapshot(&self, names: &BTreeSet<String>) -> Snapshot {
        let mut parts: Vec<_> = names.iter().map(String::as_str).collect();
        parts.extend(OF_TOOLS);
        let taken = Snapshot::take(cluster(), &[&self.namespace], &parts);
        taken.without(|object| {
            let place = object
                .split(' ')
                .nth(1)
                .and_then(|name| name.split_once('/'));
            place.is_some_and(|(namespace, name)| namespace.is_empty() && !names.contains(name))
        })
    }

    /// What others define is not taken from them without being asked to.
    fn is_refused(&self, bundle: &Path) -> Result<(), String> {
        let run = Run::from(
            self.with("apply", bundle)
                .output()
                .expect("the program starts"),
        );
        let is_told = ["nothing says whose it is; --adopt", "nothing was changed"];
        match run.code == 5 && is_told.iter().all(|words| run.stderr.contains(words)) {
            true => Ok(()),
            false => Err(format!("exit code {}: {}", run.code, run.stderr)),
        }
    }

    fn is_available(&self) -> Result<(), String> {
        let path = format!("/apis/apps/v1/namespaces/{}/deployments", self.namespace);
        let (_, list) = cluster().send("GET", &path, NOTHING);
        let deployments = list["items"].as_array().into_iter().flatten();
        let is_available = |deployment: &&Value| {
            let mut conditions = deployment["status"]["conditions"]
                .as_array()
                .into_iter()
                .flatten();
            let replicas = &deployment["spec"]["replicas"];
            replicas == 0
                || conditions.any(|condition| {
                    condition["type"] == "Available" && condition["status"] == "True"
                })
        };
        match deployments
            .filter(|deployment| !is_available(deployment))
            .count()
        {
            0 => Ok(()),
            count => Err(format!(
                "{count} Deployments are not available after --wait"
            )),
        }
    }

    /// Nothing differs, applying it again writes nothing but the Lease, and it is shown as whole.
    fn is_settled(&self, bundle: &Path) -> Result<(), String> {
        let proxy = FaultProxy::start(cluster());
        let kubeconfig = proxy.kubeconfig(cluster().token());
        let differs = ok(self.with("diff", bundle).env("KUBECONFIG", &kubeconfig))?;
        if !differs.is_empty() {
            return Err(format!("differs after it was applied:\n{differs}"));
        }
        ok(self.with("apply", bundle).env("KUBECONFIG", &kubeconfig))?;
        let mut writes = proxy.writes();
        writes.retain(|request| !request.path.contains("/leases"));
        if !writes.is_empty() {
            let writes = writes
                .iter()
                .map(|request| format!("{} {}", request.method, request.path));
            return Err(format!(
                "applied again, it writes {}",
                writes.collect::<Vec<_>>().join(", ")
            ));
        }
        let mut status = program();
        status.args(["status", "-n", &self.namespace, "-o", "json"]);
        let status = ok(status.env("KUBECONFIG", cluster().kubeconfig()))?;
        let status: Value = serde_json::from_str(&status).map_err(|error| error.to_string())?;
        let install = &status["installs"][0];
        let nothing = serde_json::json!([]);
        let is_whole = ["drift", "notReady", "notChecked"]
            .iter()
            .all(|field| install[field] == nothing);
        let version = install["version"].as_str().unwrap_or_default();
        if is_whole && !version.is_empty() {
            return Ok(());
        }
        Err(format!("the status is {install:#}"))
    }

    /// Upgrades, and when that is refused says what the refusal names; gives what was said.
    fn upgrade(&self, bundle: &Path) -> Result<Vec<&'static str>, String> {
        let mut said = vec![];
        loop {
            let mut apply = self.with("apply", bundle);
            apply.args(["--yes", "--wait", "--timeout", "120s"]);
            apply.args(said.iter().flat_map(|said: &&str| said.split(' ')));
            let run = Run::from(apply.output().expect("the program starts"));
            let mut named = ALLOWED.iter().filter(|flag| run.stderr.contains(*flag));
            match (run.code, named.find(|flag| !said.contains(flag))) {
                (0, _) => return Ok(said),
                (3 | 5, Some(flag)) if run.stderr.contains("nothing was changed") => {
                    said.push(flag)
                }
                (code, _) => {
                    return Err(format!(
                        "upgrade with {said:?}: exit code {code}: {}",
                        run.stderr
                    ));
                }
            }
        }
    }
}

/// What a command prints that has to succeed.
fn ok(command: &mut Command) -> Result<String, String> {
    let run = Run::from(command.output().expect("the program starts"));
    match run.code {
        0 => Ok(run.stdout),
        code => {
            let word = command
                .get_args()
                .next()
                .unwrap_or_default()
                .to_string_lossy();
            Err(format!(
                "{word}: exit code {code}: {}{}",
                run.stderr, run.stdout
            ))
        }
    }
}
