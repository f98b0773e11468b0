//! `kubectl olm rbac`: the rights that applying an install takes, and those that it grants.

use std::fmt::Write;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};

use super::{
    certificate_args::Passing,
    cluster::with_shared,
    compare::subject,
    failure::{Class, Failure},
    inputs::Inputs,
    installs::{self, Purpose},
    output::{self, Format as OutputFormat},
    parts::Parts,
    scope::ScopeArgs,
    text::{printable, problem_lines},
    wanted_args::WantedArgs,
};
use crate::{
    cluster::inventory::InstallName,
    manifest::{Manifest, yaml},
    review::rights::{self, Apply, Grant, Rights, Subject},
};

/// Print the rights that applying an install takes, or those that it grants
///
/// By default it prints the least roles that an account needs to apply this install and to remove it, which can be piped to
/// `kubectl apply`. Objects are named wherever that can be, so that the roles are for this version of the install alone. No
/// cluster is contacted.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  # The roles that a ServiceAccount needs to apply a bundle, bound to it
  kubectl olm rbac ./bundle -n ops --service-account ci/deployer | kubectl apply -f -

  # What does the operator get, and what of it should one know?
  kubectl olm rbac ./bundle -n ops --granted")]
pub(super) struct RbacArgs {
    /// Output: yaml or json; with --granted, text or json
    #[arg(short, long, value_name = "FORMAT", hide_possible_values = true)]
    output: Option<Form>,
    /// Print the rights that the install itself grants, and what one should know of it
    #[arg(long, conflicts_with_all = ["user", "service_account", "name"])]
    granted: bool,
    /// Name of the install, where it has another one than its package
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Bind the roles to a user too
    #[arg(long, value_name = "NAME", conflicts_with = "service_account")]
    user: Option<String>,
    /// Bind the roles to a ServiceAccount too
    #[arg(long, value_name = "NAMESPACE/NAME", value_parser = parse_account)]
    service_account: Option<Subject>,
    #[command(flatten)]
    scope: ScopeArgs,
    #[command(flatten)]
    wanted: WantedArgs,
}

/// How rights are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    Yaml,
    Json,
    Text,
}

fn parse_account(text: &str) -> Result<Subject, String> {
    match text.split_once('/') {
        Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() => Ok(Subject {
            kind: "ServiceAccount".to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }),
        _ => Err("write NAMESPACE/NAME".to_owned()),
    }
}

/// Runs the command.
///
/// # Errors
/// When something is refused, or the rights cannot be printed.
pub(super) fn run(args: &RbacArgs) -> Result<(), Failure> {
    let form = form(args)?;
    let parts = Parts::applied(args.scope.scope);
    let mut problems = vec![];
    let inputs = Inputs::read(&args.wanted, &mut problems)?;
    let wanted = inputs.wanted(&args.wanted, &parts, &mut problems)?;
    let sources = inputs.open_sources(&wanted, &args.wanted.install)?;
    let mut run = inputs.run(&args.wanted, &sources, (Purpose::Install, &parts));
    let passing = Passing::default();
    run.certificates = args.wanted.install.certificates.or(&passing);
    let rendered = installs::render(&wanted, run)?;
    problems.extend(rendered.outcome.told());
    output::tell_problems(&problems, "");
    // Nothing that could not be rendered grants nothing.
    if rendered.output.installs.is_empty() {
        return rendered.outcome.end(&wanted.installs);
    }
    let (output, _) = output::select(rendered.output, &OutputFormat::Yaml, &parts);
    let printed = if args.granted {
        let manifests: Vec<_> = output.manifests().cloned().collect();
        print_granted(&manifests, form)
    } else {
        needed(output, args).and_then(|manifests| print_roles(manifests, form))
    };
    rendered.outcome.end_after(printed, &wanted.installs)
}

fn form(args: &RbacArgs) -> Result<Form, Failure> {
    let (default, wrong, hint) = match args.granted {
        true => (Form::Text, Form::Yaml, "use text or json"),
        false => (Form::Yaml, Form::Text, "use yaml or json"),
    };
    match args.output {
        Some(form) if form == wrong => {
            let message = "-o: the rights cannot be printed so";
            Err(Failure::new(Class::Usage, message).with_hint(hint))
        }
        form => Ok(form.unwrap_or(default)),
    }
}

/// The roles of each install, with the namespaces that they are in and their bindings.
fn needed(output: output::Output, args: &RbacArgs) -> Result<Vec<Manifest>, Failure> {
    let user = args.user.as_ref().map(|name| Subject {
        kind: "User".to_owned(),
        namespace: String::new(),
        name: name.clone(),
    });
    let subject = user.or_else(|| args.service_account.clone());
    let (mut namespaces, mut roles, mut notes) = (vec![], vec![], vec![]);
    for (about, objects) in with_shared(output) {
        if about.name.is_empty() {
            continue;
        }
        let given = args.name.as_deref().filter(|_| about.id.is_some());
        let name = given.unwrap_or(&about.name);
        let name = format!("{name}{}", args.scope.suffix());
        let install = InstallName::new(&about.namespace, &name)
            .map_err(|reason| Failure::new(Class::Usage, reason))?;
        let manifests: Vec<_> = objects.into_iter().map(|(_, manifest)| manifest).collect();
        let inventory = install.secret();
        let Rights {
            namespaces: made,
            roles: needed,
            notes: told,
        } = rights::to_apply(
            &manifests,
            Apply {
                namespace: &install.namespace,
                name: &roles_name(&install, &about),
                inventory: &inventory,
            },
        );
        for namespace in made {
            let is_there = |other: &Manifest| other.name() == namespace.name();
            if !namespaces.iter().any(is_there) {
                namespaces.push(namespace);
            }
        }
        notes.extend(told);
        if let Some(subject) = &subject {
            roles.extend(rights::bindings(&needed, subject));
        }
        roles.extend(needed);
    }
    output::tell_problems(&notes, "");
    // Roles come before the bindings that name them.
    roles.sort_by_key(|role| (role.kind().ends_with("Binding"), role.key()));
    namespaces.extend(roles);
    Ok(namespaces)
}

/// What roles are named after: the install and its version, so that those of two versions can stand side by side while one
/// becomes the other.
fn roles_name(install: &InstallName, about: &output::About) -> String {
    match about.bundle.version.as_str() {
        "" => install.name.clone(),
        version => format!("{}.{version}", install.name),
    }
}

fn print_roles(manifests: Vec<Manifest>, form: Form) -> Result<(), Failure> {
    let values = manifests.into_iter().map(Manifest::into_value);
    if form == Form::Json {
        let items: Vec<_> = values.collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
        return output::print_text(&output::json(&list));
    }
    let mut text = String::new();
    for value in values {
        text += "---\n";
        yaml::write(&value, &mut text);
    }
    output::print_text(&text)
}

fn print_granted(manifests: &[Manifest], form: Form) -> Result<(), Failure> {
    let (grants, dangers) = (rights::granted(manifests), rights::dangers(manifests));
    if form == Form::Json {
        let dangers = dangers.iter().map(|danger| {
            json!({"rule": danger.rule, "object": danger.object, "message": danger.message})
        });
        let value = json!({
            "grants": grants.iter().map(value).collect::<Vec<_>>(),
            "dangers": dangers.collect::<Vec<_>>(),
        });
        return output::print_text(&output::json(&value));
    }
    let mut text = String::new();
    for of_subject in grants.chunk_by(|one, next| one.subject == next.subject) {
        let who = of_subject.first().map(|grant| grant.subject.to_string());
        let _ = writeln!(text, "{}", printable(&who.unwrap_or_default()));
        for grant in of_subject {
            push_grant(grant, &mut text);
        }
    }
    if grants.is_empty() {
        text += "it grants no rights\n";
    }
    if !dangers.is_empty() {
        text += "\nTo know before saying yes:\n";
        text += &problem_lines(&dangers, "  ");
    }
    output::print_text(&text)
}

/// A role and its rules; those that one should know of are marked.
fn push_grant(grant: &Grant, text: &mut String) {
    let place = match grant.namespace.as_str() {
        "" => "in the whole cluster".to_owned(),
        namespace => format!("in {namespace}"),
    };
    let role = format!("{} {}", grant.role.kind, grant.role.name);
    let _ = writeln!(text, "  {place}, by {}", printable(&role));
    let Some(rules) = &grant.role.rules else {
        text.push_str("    what it allows, only the cluster knows\n");
        return;
    };
    for rule in rules {
        let mark = if rights::is_dangerous(rule, &grant.namespace) {
            "!"
        } else {
            " "
        };
        let _ = writeln!(text, "  {mark} {}", printable(&rule.words()));
    }
}

fn value(grant: &Grant) -> Value {
    let rules = grant.role.rules.as_ref();
    let dangers = grant.dangers.iter();
    let dangers = dangers.map(|danger| json!({"rule": danger.rule, "message": danger.text}));
    json!({
        "subject": subject(&grant.subject),
        "namespace": grant.namespace,
        "role": {"kind": grant.role.kind, "name": grant.role.name},
        "rules": rules.map(|rules| rules.iter().map(rights::Rule::to_value).collect::<Vec<_>>()),
        "dangers": dangers.collect::<Vec<_>>(),
    })
}
