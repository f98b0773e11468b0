//! What an API server answers, and what kind of failure that is.
//!
//! Kinds of failure are told by code, reason and causes together, never by the code alone: server-side apply gives 500
//! for objects that no server will ever take, and 409 for four different things.

use std::fmt;

use serde_json::Value;

use super::request::{Privacy, Request};

/// An answer that is what was asked for. It may hold data of a Secret, so `Debug` does not show its body.
#[derive(Clone, PartialEq)]
pub struct Answer {
    /// The HTTP status: server-side apply, dry or not, answers 201 where the object did not exist and 200 where it did.
    pub code: u16,
    /// The object or list.
    pub body: Value,
    /// How many bytes that was.
    pub bytes: usize,
}

impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Answer")
            .field("code", &self.code)
            .finish_non_exhaustive()
    }
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ApiError {
    /// The server refused it, and said so.
    #[error("{0}")]
    Refused(Refusal),
    /// The server could not be reached, or gave no whole answer in time; what was asked for may have been done.
    #[error("{about}: {reason}")]
    Unreachable {
        /// What the request was about.
        about: String,
        /// What happened and how long it was tried, in one line.
        reason: String,
    },
    /// The answer is none of a Kubernetes API.
    #[error("{about}: the answer is none of a Kubernetes API: {reason}")]
    NotKubernetes {
        /// What the request was about.
        about: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The run was interrupted, or ran out of time, before the request was sent.
    #[error("{about}: not asked for, as the run ended")]
    Stopped {
        /// What the request was about.
        about: String,
    },
}

impl ApiError {
    /// Whether the same request may be answered otherwise later.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.again() != Again::Never,
            Self::Unreachable { .. } | Self::NotKubernetes { .. } => true,
            Self::Stopped { .. } => false,
        }
    }
}

/// A refusal of the server (`metav1.Status`). Its texts are clean: no control characters, no data of Secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What the request was about.
    pub about: String,
    /// The HTTP status.
    pub code: u16,
    /// `reason` of the Status.
    pub reason: String,
    /// `message` of the Status.
    pub message: String,
    /// `details.causes`.
    pub causes: Vec<Cause>,
    /// What kind of refusal it is.
    pub kind: RefusalKind,
}

/// A cause of a refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// `reason`: `FieldManagerConflict`, `FieldValueInvalid`, `NamespaceTerminating`, ...
    pub reason: String,
    /// The field: `.spec.replicas`.
    pub field: String,
    /// What is said about it.
    pub message: String,
}

impl Cause {
    /// The field manager that a field belongs to, of a conflict about it. The text is made in k8s.io/apimachinery
    /// `pkg/util/managedfields/internal/conflict.go`.
    #[must_use]
    pub fn manager(&self) -> Option<&str> {
        let after = self.message.strip_prefix(CONFLICT_WITH)?;
        let end = after.char_indices().find(|(at, character)| {
            *character == '"' && !after.get(..*at).unwrap_or_default().ends_with('\\')
        });
        end.and_then(|(at, _)| after.get(..at))
    }
}

/// How the message of a conflict about a field begins.
const CONFLICT_WITH: &str = "conflict with \"";

/// What kind of refusal it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// 401: the credentials are not accepted.
    Credentials,
    /// 403: the user may not do that. What it would take is in the message.
    Forbidden,
    /// 403 or 409: the namespace is being deleted.
    NamespaceTerminating,
    /// 404 for the object, its namespace or its kind.
    NotFound,
    /// 409: others have set fields to other values; `causes` have one for each.
    FieldConflict,
    /// 409: the object has been changed, or is another one (`resourceVersion`, `uid`).
    Changed,
    /// 409: it is there already.
    AlreadyExists,
    /// 422: a field that cannot be changed is to be changed.
    Immutable,
    /// 422, 400, or 500 for a body that the schema has no place for: it is never taken as it is.
    Invalid,
    /// 413 or 422: it is too large.
    TooLarge,
    /// A webhook failed that was to be called, or a policy denied it.
    Admission,
    /// The server could not do it now; it was tried for as long as that helps.
    Unavailable,
    /// Anything else.
    Other,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.about, self.message)
    }
}

impl ApiError {
    /// What happened, without what it was about.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.message.clone(),
            Self::Unreachable { reason, .. } => reason.clone(),
            Self::NotKubernetes { reason, .. } => {
                format!("the answer is none of a Kubernetes API: {reason}")
            }
            Self::Stopped { .. } => "not asked for, as the run ended".to_owned(),
        }
    }

    /// The kind of refusal, when the server refused.
    #[must_use]
    pub fn kind(&self) -> Option<RefusalKind> {
        match self {
            Self::Refused(refusal) => Some(refusal.kind),
            _ => None,
        }
    }

    /// Whether there is no such path, as of a kind that is not served, or not in that version. Of an object that is not there
    /// a server says so in a Status.
    #[must_use]
    pub fn is_missing_path(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.kind == RefusalKind::NotFound && refusal.reason.is_empty()
            }
            _ => false,
        }
    }

    /// Whether it says that the webhook fails which converts custom resources from the version in which they are stored.
    #[must_use]
    pub fn is_conversion(&self) -> bool {
        match self {
            Self::Refused(refusal) => refusal.message.contains("conversion webhook for "),
            _ => false,
        }
    }

    /// Whether it says that an object or its namespace is not there.
    #[must_use]
    pub fn is_missing_object(&self) -> bool {
        self.kind() == Some(RefusalKind::NotFound) && !self.is_missing_path()
    }

    /// Whether it says that the namespace of an object is not there.
    #[must_use]
    pub fn is_missing_namespace(&self) -> bool {
        match self {
            Self::Refused(refusal) => {
                refusal.kind == RefusalKind::NotFound && refusal.message.contains("namespaces ")
            }
            _ => false,
        }
    }
}

/// Whether sending a request again may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Again {
    /// It may, and nothing has been done so far.
    NotDone,
    /// It may, but what was asked for may have been done already.
    PerhapsDone,
    /// It does not: the answer will be the same.
    Never,
}

impl Refusal {
    /// Reads an answer whose code says that the request was not carried out. The body need not be a Status: what stands
    /// before API servers answers as it likes.
    #[must_use]
    pub fn read(request: &Request, code: u16, body: &[u8]) -> Self {
        let status: Value = serde_json::from_slice(body).unwrap_or_default();
        let is_status = text(&status, "kind") == "Status";
        let told = if is_status {
            text(&status, "message")
        } else {
            ""
        };
        let reason = clean(text(&status, "reason"), LONGEST_NAME);
        let causes: Vec<_> = status
            .pointer("/details/causes")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .take(MOST_CAUSES)
            .map(|cause| Cause {
                reason: clean(text(cause, "reason"), LONGEST_NAME),
                field: clean(text(cause, "field"), LONGEST_NAME),
                message: clean(text(cause, "message"), LONGEST_MESSAGE),
            })
            .collect();
        let about_kind = status.pointer("/details/kind").and_then(Value::as_str);
        let said = Said {
            code,
            reason: &reason,
            message: told,
            causes: &causes,
            about: about_kind.unwrap_or_default(),
        };
        let kind = said.kind();
        let message = match clean(told, LONGEST_MESSAGE) {
            message if message.is_empty() => {
                format!("the server answered {code} and did not say why")
            }
            message => message,
        };
        let refusal = Self {
            about: request.about.clone(),
            code,
            reason,
            message,
            causes,
            kind,
        };
        match request.privacy {
            Privacy::Open => refusal,
            Privacy::Secret => refusal.without_values(),
        }
    }

    /// Whether sending the request again may help.
    #[must_use]
    pub fn again(&self) -> Again {
        match (self.code, self.kind) {
            (409, RefusalKind::Unavailable) | (429, _) => Again::NotDone,
            (500.., RefusalKind::Unavailable) => Again::PerhapsDone,
            // A webhook that could not be called has stopped the request; one that denied it will do so again.
            (500.., RefusalKind::Admission) if self.reason == "InternalError" => Again::NotDone,
            _ => Again::Never,
        }
    }

    /// Without anything that may repeat data of a Secret. What the server makes from names alone stays.
    fn without_values(mut self) -> Self {
        let is_harmless = match self.kind {
            RefusalKind::Credentials
            | RefusalKind::NamespaceTerminating
            | RefusalKind::NotFound
            | RefusalKind::FieldConflict
            | RefusalKind::Changed
            | RefusalKind::AlreadyExists => true,
            RefusalKind::Forbidden => self.message.contains(" cannot "),
            _ => false,
        };
        if !is_harmless {
            let fields: Vec<_> = self
                .causes
                .iter()
                .map(|cause| cause.field.as_str())
                .collect();
            let at = match fields.join(", ") {
                fields if fields.is_empty() => String::new(),
                fields => format!(" at {fields}"),
            };
            let reason = match self.reason.as_str() {
                "" => String::new(),
                reason => format!(" ({reason})"),
            };
            self.message = format!(
                "the server answered {}{reason}{at}; what it says is not shown, as it may repeat data of the Secret",
                self.code
            );
        }
        for cause in &mut self.causes {
            cause.message = match cause.manager() {
                Some(manager) => format!("{CONFLICT_WITH}{manager}\""),
                None => String::new(),
            };
        }
        self
    }
}

/// What a server said, to be judged.
struct Said<'s> {
    code: u16,
    reason: &'s str,
    message: &'s str,
    causes: &'s [Cause],
    /// `details.kind`: the resource that it is about, which need not be the one that was asked for.
    about: &'s str,
}

impl Said<'_> {
    fn kind(&self) -> RefusalKind {
        let has_cause = |reason| self.causes.iter().any(|cause| cause.reason == reason);
        if self.is_admission() {
            return RefusalKind::Admission;
        }
        match self.code {
            401 => RefusalKind::Credentials,
            403 | 409
                if has_cause("NamespaceTerminating")
                    || self.tells("because it is being terminated") =>
            {
                RefusalKind::NamespaceTerminating
            }
            403 => RefusalKind::Forbidden,
            404 => RefusalKind::NotFound,
            409 if has_cause("FieldManagerConflict") => RefusalKind::FieldConflict,
            409 if self.reason == "AlreadyExists" => RefusalKind::AlreadyExists,
            // Objects are counted one after the other; whoever comes second has to count again.
            409 if self.about == "resourcequotas" => RefusalKind::Unavailable,
            409 => RefusalKind::Changed,
            413 => RefusalKind::TooLarge,
            400 => RefusalKind::Invalid,
            422 if self.tells_any(TOO_LARGE) => RefusalKind::TooLarge,
            422 if self.tells_any(IMMUTABLE) => RefusalKind::Immutable,
            422 => RefusalKind::Invalid,
            429 => RefusalKind::Unavailable,
            500.. if self.tells_any(TOO_LARGE) => RefusalKind::TooLarge,
            500 if self.reason.is_empty() && self.tells_any(UNTYPED) => RefusalKind::Invalid,
            500 | 502..=504 => RefusalKind::Unavailable,
            _ => RefusalKind::Other,
        }
    }

    /// Whether it was a webhook or policy that refused. They choose code and reason as they like.
    fn is_admission(&self) -> bool {
        let is_denied_by_policy =
            self.tells("ValidatingAdmissionPolicy '") && self.tells("denied request");
        is_denied_by_policy || self.tells_any(ADMISSION)
    }

    /// Whether the message or that of a cause has these words.
    fn tells(&self, words: &str) -> bool {
        let causes = self.causes.iter().map(|cause| cause.message.as_str());
        causes
            .chain([self.message])
            .any(|text| text.contains(words))
    }

    fn tells_any(&self, all: &[&str]) -> bool {
        all.iter().any(|words| self.tells(words))
    }
}

/// k8s.io/apiserver `pkg/admission/plugin/webhook`, k8s.io/pod-security-admission, OpenShift's security context constraints.
const ADMISSION: &[&str] = &[
    "failed calling webhook",
    "failed to call webhook",
    "admission webhook \"",
    "violates PodSecurity",
    "unable to validate against any security context constraint",
];

/// k8s.io/apimachinery `pkg/api/validation` and the validation of Kubernetes' own kinds: what cannot be changed.
const IMMUTABLE: &[&str] = &[
    "immutable",
    "cannot change roleRef",
    "may not change once set",
    "may not be changed",
    "cannot be changed",
    "updates to statefulset spec for fields other than",
    "pod updates may not change fields other than",
];

/// The limits on objects and requests, of API servers and of etcd.
const TOO_LARGE: &[&str] = &[
    "may not be more than 1048576 bytes",
    "must have at most 1048576 bytes",
    "request is too large",
    "trying to send message larger than max",
    "Request entity too large",
];

/// sigs.k8s.io/structured-merge-diff `typed`, as server-side apply tells it (k8s.io/apimachinery
/// `pkg/util/managedfields/internal/structuredmerge.go`): the object does not fit its schema, and never will.
const UNTYPED: &[&str] = &[
    "failed to create typed",
    "failed to convert new object",
    "field not declared in schema",
    "duplicate entries for key",
    "expected map, got",
    "expected list, got",
    "expected string, got",
    "expected numeric",
    "expected boolean, got",
    "invalid object type",
];

/// As many causes are kept; one each is enough for the largest object that people write.
const MOST_CAUSES: usize = 1_000;
/// As many characters are kept of a message.
const LONGEST_MESSAGE: usize = 2_000;
/// As many characters are kept of what is a name or the path of a field.
const LONGEST_NAME: usize = 300;

/// Text of a server made fit for one line of a terminal: what steers it is gone, line ends are spaces, and what is too
/// long is cut.
#[must_use]
pub fn clean(text: &str, longest: usize) -> String {
    let mut clean = String::new();
    let mut count = 0;
    for character in text.chars() {
        let character = match character {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            _ => character,
        };
        let is_space_again = character == ' ' && clean.ends_with(' ');
        if steers(character) || is_space_again || (character == ' ' && clean.is_empty()) {
            continue;
        }
        if count == longest {
            clean.push('…');
            break;
        }
        clean.push(character);
        count += 1;
    }
    clean.truncate(clean.trim_end().len());
    clean
}

/// Whether a character could steer a terminal, or make text look like another one.
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// A field that holds text; empty when it does not.
fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    let field = value.get(field).and_then(Value::as_str);
    field.unwrap_or_default()
}
