//! Runs a credential plugin of a kubeconfig, as k8s.io/client-go `plugin/pkg/client/auth/exec/exec.go` does, but for a
//! bounded time and a bounded answer.
//!
//! What it writes to standard error goes to the user: it may ask for something there. What it answers is never repeated.

use std::{
    io::{IsTerminal, Read},
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use kube::config::{Cluster, ExecConfig, ExecInteractiveMode};
use secrecy::{ExposeSecret, SecretSlice, SecretString};
use serde_json::{Map, Value, json};

use super::{ConnectionError, login::Login};

/// Bytes that a plugin may answer.
const LONGEST_ANSWER: u64 = 1 << 20;
/// How long to wait before asking again whether a plugin that has answered has ended, too.
const POLL: Duration = Duration::from_millis(5);
/// As many times longer may one take that can ask the user.
const TIMES_WITH_A_TERMINAL: u32 = 5;
/// The group of what plugins are told and answer.
const GROUP: &str = "client.authentication.k8s.io/";

/// A plugin and what it is told.
#[derive(Debug)]
pub(super) struct Plugin {
    exec: ExecConfig,
    /// The program, as messages name it.
    command: String,
    /// `spec.cluster`, when it is to be told.
    cluster: Option<Value>,
    timeout: Duration,
}

impl Plugin {
    /// The plugin of a user.
    ///
    /// # Errors
    /// When it is not said well enough how to run it.
    pub(super) fn new(
        exec: ExecConfig,
        cluster: &Cluster,
        authority: Option<&[u8]>,
        timeout: Duration,
    ) -> Result<Self, ConnectionError> {
        let command = exec.command.clone().unwrap_or_default();
        if command.is_empty() {
            let reason = "the kubeconfig names a credential plugin (exec) without a command";
            return Err(ConnectionError::Config(reason.to_owned()));
        }
        let plugin = Self {
            cluster: exec
                .provide_cluster_info
                .then(|| cluster_info(cluster, authority)),
            exec,
            command,
            timeout,
        };
        match plugin.api_version() {
            "client.authentication.k8s.io/v1" | "client.authentication.k8s.io/v1beta1" => Ok(plugin),
            _ => Err(plugin.failed("its apiVersion in the kubeconfig is neither client.authentication.k8s.io/v1 nor v1beta1")),
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// When it cannot be run, takes too long, fails, or answers no credentials.
    pub(super) fn run(&self) -> Result<Login, ConnectionError> {
        let has_terminal = std::io::stdin().is_terminal();
        let asks = match &self.exec.interactive_mode {
            Some(ExecInteractiveMode::Never) => false,
            Some(ExecInteractiveMode::Always) if !has_terminal => {
                return Err(self.failed("it has to ask the user, and there is no terminal"));
            }
            _ => has_terminal,
        };
        let timeout = match asks {
            true => self.timeout.saturating_mul(TIMES_WITH_A_TERMINAL),
            false => self.timeout,
        };
        let mut child = self.spawn(asks)?;
        let outcome = answer(&mut child, timeout);
        if outcome.is_err() {
            kill(&mut child, asks);
        }
        let (answer, status) = outcome.map_err(|reason| self.failed(&reason))?;
        if !status.success() {
            return Err(self.failed(&format!("it failed: {status}")));
        }
        read(answer.expose_secret(), self.api_version()).map_err(|reason| self.failed(reason))
    }

    fn api_version(&self) -> &str {
        self.exec.api_version.as_deref().unwrap_or_default()
    }

    fn spawn(&self, asks: bool) -> Result<Child, ConnectionError> {
        let mut spec = Map::from_iter([("interactive".to_owned(), Value::Bool(asks))]);
        if let Some(cluster) = &self.cluster {
            spec.insert("cluster".to_owned(), cluster.clone());
        }
        let told =
            json!({"kind": "ExecCredential", "apiVersion": self.api_version(), "spec": spec});
        let mut command = Command::new(&self.command);
        command.args(self.exec.args.iter().flatten());
        for variable in self.exec.env.iter().flatten() {
            if let (Some(name), Some(value)) = (variable.get("name"), variable.get("value")) {
                command.env(name, value);
            }
        }
        command.env("KUBERNETES_EXEC_INFO", told.to_string());
        command.stdin(if asks {
            Stdio::inherit()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::piped());
        // A group of its own, so that its children can be ended with it; but only ours may read from the terminal.
        #[cfg(unix)]
        if !asks {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        command.spawn().map_err(|error| {
            let hint = self.exec.install_hint.as_deref().unwrap_or_default();
            let hint = super::super::answer::clean(hint, 1_000);
            match error.kind() {
                std::io::ErrorKind::NotFound if !hint.is_empty() => self.failed(&format!(
                    "there is no such program; the kubeconfig says: {hint}"
                )),
                std::io::ErrorKind::NotFound => self.failed("there is no such program"),
                kind => self.failed(&format!("it could not be run: {kind}")),
            }
        })
    }

    fn failed(&self, reason: &str) -> ConnectionError {
        ConnectionError::Plugin {
            command: self.command.clone(),
            reason: reason.to_owned(),
        }
    }
}

/// What a plugin is told of the cluster (k8s.io/client-go `pkg/apis/clientauthentication/v1`, Cluster).
fn cluster_info(cluster: &Cluster, authority: Option<&[u8]>) -> Value {
    use base64::{Engine, engine::general_purpose::STANDARD};
    let extensions = cluster.extensions.iter().flatten();
    let config = extensions
        .filter(|extension| extension.name == "client.authentication.k8s.io/exec")
        .map(|extension| extension.extension.clone())
        .next();
    let mut info = json!({
        "server": cluster.server,
        "tls-server-name": cluster.tls_server_name,
        "insecure-skip-tls-verify": cluster.insecure_skip_tls_verify,
        "certificate-authority-data": authority.map(|authority| STANDARD.encode(authority)),
        "proxy-url": cluster.proxy_url,
        "disable-compression": cluster.disable_compression,
        "config": config,
    });
    if let Some(fields) = info.as_object_mut() {
        fields.retain(|_, value| !value.is_null());
    }
    info
}

/// Waits for the answer and for the end.
fn answer(child: &mut Child, timeout: Duration) -> Result<(SecretSlice<u8>, ExitStatus), String> {
    let deadline = Instant::now() + timeout;
    let failed = |error: std::io::Error| format!("it could not be run: {}", error.kind());
    let too_slow = || format!("it took longer than {} seconds", timeout.as_secs_f32());
    let output = child.stdout.take().ok_or("it could not be run")?;
    let (sender, receiver) = mpsc::channel();
    thread::Builder::new()
        .spawn(move || {
            let mut answer = Vec::with_capacity(4096);
            let read = output.take(LONGEST_ANSWER + 1).read_to_end(&mut answer);
            // Nobody listens any more when it took too long.
            let _ = sender.send(read.map(|_| SecretSlice::from(answer)));
        })
        .map_err(failed)?;
    let answer = receiver.recv_timeout(timeout);
    let answer = answer.map_err(|_| too_slow())?.map_err(failed)?;
    if answer.expose_secret().len() as u64 > LONGEST_ANSWER {
        return Err(format!("it answered more than {LONGEST_ANSWER} bytes"));
    }
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok((answer, status));
        }
        if Instant::now() >= deadline {
            return Err(too_slow());
        }
        thread::sleep(POLL);
    }
}

/// Ends a plugin that has not been waited for yet, so that its number cannot be another's.
fn kill(child: &mut Child, asks: bool) {
    #[cfg(unix)]
    if !asks {
        let _ = rustix::process::kill_process_group(
            rustix::process::Pid::from_child(child),
            rustix::process::Signal::KILL,
        );
    }
    let _ = (child.kill(), asks);
    let _ = child.wait();
}

/// Reads the answer of a plugin.
fn read(answer: &[u8], api_version: &str) -> Result<Login, &'static str> {
    let answer: Value = serde_json::from_slice(answer).map_err(|_| "its answer is no JSON")?;
    let is = |field, wanted| answer.get(field).and_then(Value::as_str) == Some(wanted);
    if !is("kind", "ExecCredential") {
        return Err("its answer is no ExecCredential");
    }
    if !is("apiVersion", api_version) {
        let version = api_version.strip_prefix(GROUP).unwrap_or_default();
        return Err(match version {
            "v1" => "it did not answer in version v1, which the kubeconfig says",
            _ => "it did not answer in version v1beta1, which the kubeconfig says",
        });
    }
    let text = |field: &str| {
        let text = answer.pointer(&format!("/status/{field}"));
        let text = text.and_then(Value::as_str).unwrap_or_default();
        Some(text).filter(|text| !text.is_empty())
    };
    let expires = match text("expirationTimestamp").map(str::parse) {
        Some(Err(_)) => return Err("the expirationTimestamp that it answered is no time"),
        Some(Ok(time)) => Some(time),
        None => None,
    };
    let identity = match (text("clientCertificateData"), text("clientKeyData")) {
        (Some(certificate), Some(key)) => {
            Some(SecretString::from(format!("{key}\n{certificate}\n")))
        }
        (None, None) => None,
        _ => {
            return Err(
                "it answered a certificate without its key, or a key without its certificate",
            );
        }
    };
    let authorization = match text("token") {
        Some(token) => {
            Some(Login::bearer(token).ok_or("the token that it answered cannot be sent")?)
        }
        None if identity.is_none() => return Err("it answered neither a token nor a certificate"),
        None => None,
    };
    Ok(Login {
        authorization,
        identity,
        expires,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_credential_is_told_without_repeating_it() {
        let v1 = "client.authentication.k8s.io/v1";
        let of = |status: &str| {
            format!(r#"{{"kind":"ExecCredential","apiVersion":"{v1}","status":{status}}}"#)
        };
        for (answer, reason) in [
            ("hunter2".to_owned(), "no JSON"),
            (r#"{"kind":"Pod"}"#.to_owned(), "no ExecCredential"),
            (of("{}").replace("/v1", "/v1beta1"), "version v1,"),
            (of("{}"), "neither a token"),
            (of(r#"{"token":"hunter2\n"}"#), "cannot be sent"),
            (
                of(r#"{"clientKeyData":"hunter2"}"#),
                "without its certificate",
            ),
            (
                of(r#"{"token":"a","expirationTimestamp":"hunter2"}"#),
                "no time",
            ),
        ] {
            let error = read(answer.as_bytes(), v1).expect_err("no login");
            assert!(error.contains(reason), "{answer}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let login = read(of(r#"{"token":"a"}"#).as_bytes(), v1).expect("a login");
        assert!(login.authorization.is_some() && login.expires.is_none());
    }
}
