//! Completion: scripts for shells, and the program that kubectl itself asks for candidates.

use std::ffi::{OsStr, OsString};

use clap::{Args, CommandFactory, ValueEnum};
use clap_complete::{Shell, engine, generate};

use super::{
    Cli,
    failure::{Class, Failure},
    output,
};

/// The name under which kubectl looks for a plugin's completion on the PATH.
pub(super) const COMPLETER: &str = "kubectl_complete-olm";

/// What kubectl finds under that name when it is not a link to this program.
const SHIM: &str = "#!/bin/sh\nexec kubectl-olm __complete \"$@\"\n";

/// Cobra's directives: "do not offer files", the same and "the word goes on", and "offer files".
const NO_FILES: u8 = 4;
const GOES_ON: u8 = 6;
const FILES: u8 = 0;

/// Print a completion script
///
/// For `kubectl olm <TAB>`, kubectl wants a program `kubectl_complete-olm` on the PATH: print it with
/// `completion kubectl`. The other scripts complete `kubectl-olm`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # Let kubectl complete `kubectl olm`
  kubectl olm completion kubectl > ~/.local/bin/kubectl_complete-olm
  chmod +x ~/.local/bin/kubectl_complete-olm

  # Let bash complete `kubectl-olm`
  source <(kubectl olm completion bash)")]
pub(super) struct CompletionArgs {
    /// For whom
    #[arg(value_name = "SHELL")]
    shell: For,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum For {
    Kubectl,
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
}

/// Runs the command.
///
/// # Errors
/// When standard output cannot take the script.
pub(super) fn run(args: &CompletionArgs) -> Result<(), Failure> {
    let shell = match args.shell {
        For::Kubectl => return output::print_text(SHIM),
        For::Bash => Shell::Bash,
        For::Elvish => Shell::Elvish,
        For::Fish => Shell::Fish,
        For::Powershell => Shell::PowerShell,
        For::Zsh => Shell::Zsh,
    };
    let mut script = vec![];
    generate(shell, &mut Cli::command(), "kubectl-olm", &mut script);
    output::print_text(&String::from_utf8_lossy(&script))
}

/// Prints the candidates for the last of the words, as Cobra does: one a line, then the directive.
///
/// # Errors
/// When standard output cannot take them.
pub(super) fn complete(words: Vec<OsString>) -> Result<(), Failure> {
    let mut words = words;
    if words.is_empty() {
        words.push(OsString::new());
    }
    let last = words.len();
    // As everywhere in kubectl, flags are offered to those who have typed a dash.
    let offers_flags = words
        .last()
        .is_some_and(|word| word.to_string_lossy().starts_with('-'));
    let all = [OsString::from("kubectl-olm")]
        .into_iter()
        .chain(words)
        .collect();
    let found = engine::complete(&mut Cli::command(), all, last, None);
    let found =
        found.map_err(|error| Failure::new(Class::Bug, format!("cannot complete: {error}")))?;
    let is_flag = |word: &OsStr| word.to_string_lossy().starts_with('-');
    let found = found
        .into_iter()
        .filter(|found| offers_flags || !is_flag(found.get_value()));
    let mut text = String::new();
    let mut directive = FILES;
    for candidate in found {
        let goes_on = candidate.get_value().to_string_lossy().ends_with(':');
        directive = directive.max(if goes_on { GOES_ON } else { NO_FILES });
        text.push_str(&candidate.get_value().to_string_lossy());
        if let Some(help) = candidate.get_help() {
            text.push('\t');
            text.push_str(help.to_string().lines().next().unwrap_or_default());
        }
        text.push('\n');
    }
    text.push_str(&format!(":{directive}\n"));
    output::print_text(&text)
}
