//! What is asked of an API server, as a value. Nothing is sent here.

use std::fmt::{self, Write};

use serde_json::{Value, json};

use super::{
    FIELD_MANAGER,
    resource::{Resource, Scope},
};
use crate::manifest::ObjectKey;

/// A request. Its body may hold data of a Secret, so `Debug` does not show it.
#[derive(Clone, PartialEq)]
pub struct Request {
    /// What is done.
    pub method: Method,
    /// The path, with everything in it escaped: `/apis/apps/v1/namespaces/ops/deployments/manager`.
    pub path: String,
    /// The query, not escaped yet.
    pub query: Vec<(&'static str, String)>,
    /// The body.
    pub body: Option<Value>,
    /// The form of answer that is asked for.
    pub accept: Accept,
    /// The object or list that it is about, for messages: `deployment.apps/manager in ops`.
    pub about: String,
    /// Whether what the server says may hold data of a Secret.
    pub privacy: Privacy,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates, or asks a question.
    Post,
    /// Replaces.
    Put,
    /// Server-side apply.
    Apply,
    /// A merge patch.
    Merge,
    /// Deletes.
    Delete,
}

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Accept {
    /// Whole objects.
    Whole,
    /// Metadata of one object.
    Metadata,
    /// Metadata of the objects of a list.
    MetadataList,
    /// Everything that is served, in one answer.
    Discovery,
}

/// Whether texts of the server are to be trusted with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// They may be shown.
    Open,
    /// They may repeat data of a Secret.
    Secret,
}

/// Whether the server does what it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It says what it would do.
    DryRun,
    /// It does it.
    Write,
}

/// Whether fields are taken from whoever has set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Force {
    /// They are not: it is a conflict.
    #[default]
    No,
    /// They are.
    Yes,
}

impl Request {
    /// Reads one object.
    #[must_use]
    pub fn get(resource: &Resource, key: &ObjectKey) -> Self {
        Self::to(Method::Get, resource, key)
    }

    /// Reads the metadata of one object.
    #[must_use]
    pub fn get_metadata(resource: &Resource, key: &ObjectKey) -> Self {
        Self {
            accept: Accept::Metadata,
            ..Self::get(resource, key)
        }
    }

    /// Lists the metadata of the objects of a kind, in a namespace or in all; `selector` is a label selector, empty for all.
    #[must_use]
    pub fn list_metadata(resource: &Resource, namespace: Option<&str>, selector: &str) -> Self {
        Self {
            accept: Accept::MetadataList,
            ..Self::list(resource, namespace, selector)
        }
    }

    /// Lists whole objects, as [`Request::list_metadata`] does their metadata. Long lists come in parts:
    /// [`list_all`](super::connection::Connection::list_all) asks for all of them.
    #[must_use]
    pub fn list(resource: &Resource, namespace: Option<&str>, selector: &str) -> Self {
        let mut query = vec![("limit", PAGE.to_owned())];
        if !selector.is_empty() {
            query.push(("labelSelector", selector.to_owned()));
        }
        let of_kind = match resource.group.as_str() {
            "" => resource.plural.clone(),
            group => format!("{}.{group}", resource.plural),
        };
        let namespace = namespace.filter(|_| resource.scope == Scope::Namespaced);
        let about = match (resource.scope, namespace) {
            (Scope::Cluster, _) => of_kind,
            (Scope::Namespaced, Some(namespace)) => format!("{of_kind} in {namespace}"),
            (Scope::Namespaced, None) => format!("{of_kind} in all namespaces"),
        };
        Self {
            method: Method::Get,
            path: collection(resource, namespace),
            query,
            body: None,
            accept: Accept::Whole,
            about,
            privacy: privacy_of(resource),
        }
    }

    /// Server-side apply of an object, by our field manager. Fields that the schema does not know are told as warnings.
    #[must_use]
    pub fn apply(
        resource: &Resource,
        key: &ObjectKey,
        object: Value,
        mode: Mode,
        force: Force,
    ) -> Self {
        let force = match force {
            Force::No => "false",
            Force::Yes => "true",
        };
        let mut request = Self::to(Method::Apply, resource, key).writing(object, mode);
        request.query.push(("force", force.to_owned()));
        request
    }

    /// Creates an object.
    #[must_use]
    pub fn create(resource: &Resource, key: &ObjectKey, object: Value) -> Self {
        let namespace = Some(key.namespace.as_str());
        Self {
            path: collection(resource, namespace),
            ..Self::to(Method::Post, resource, key).writing(object, Mode::Write)
        }
    }

    /// Replaces an object; the body's `metadata.resourceVersion` says which state of it.
    #[must_use]
    pub fn replace(resource: &Resource, key: &ObjectKey, object: Value) -> Self {
        Self::to(Method::Put, resource, key).writing(object, Mode::Write)
    }

    /// A merge patch; `metadata.resourceVersion` in it guards it.
    #[must_use]
    pub fn merge(resource: &Resource, key: &ObjectKey, patch: Value, mode: Mode) -> Self {
        Self::to(Method::Merge, resource, key).writing(patch, mode)
    }

    /// Deletes exactly this object, whoever has its name by then (`preconditions.uid`); what depends on it goes in the
    /// background.
    #[must_use]
    pub fn delete(resource: &Resource, key: &ObjectKey, uid: &str, mode: Mode) -> Self {
        let mut options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        });
        // A server that gets options in the body looks at none in the query.
        if let (Mode::DryRun, Some(options)) = (mode, options.as_object_mut()) {
            options.insert("dryRun".to_owned(), json!(["All"]));
        }
        Self {
            body: Some(options),
            ..Self::to(Method::Delete, resource, key)
        }
    }

    /// A question that is created and not stored: a SelfSubjectAccessReview and the like.
    #[must_use]
    pub fn ask(path: &str, question: Value, about: &str) -> Self {
        Self {
            method: Method::Post,
            body: Some(question),
            ..Self::read(path, Accept::Whole, about)
        }
    }

    /// Reads what is at a path that names no object: versions, and what is served.
    #[must_use]
    pub fn read(path: &str, accept: Accept, about: &str) -> Self {
        Self {
            method: Method::Get,
            path: path.to_owned(),
            query: vec![],
            body: None,
            accept,
            about: about.to_owned(),
            privacy: Privacy::Open,
        }
    }

    /// Whether carrying it out may change something that is stored.
    #[must_use]
    pub fn is_write(&self) -> bool {
        let has = |wanted| self.query.iter().any(|(name, _)| *name == wanted);
        match self.method {
            Method::Get => false,
            Method::Delete => {
                let options = self.body.as_ref();
                options.is_none_or(|options| options.get("dryRun").is_none())
            }
            // Questions are asked in nobody's name, as nothing is stored of them.
            _ => has("fieldManager") && !has("dryRun"),
        }
    }

    /// A request for one object, without a body.
    fn to(method: Method, resource: &Resource, key: &ObjectKey) -> Self {
        let is_namespaced = resource.scope == Scope::Namespaced;
        let about = if is_namespaced && !key.namespace.is_empty() {
            format!("{key} in {}", key.namespace)
        } else {
            key.to_string()
        };
        let namespace = Some(key.namespace.as_str());
        Self {
            method,
            path: format!("{}/{}", collection(resource, namespace), segment(&key.name)),
            query: vec![],
            body: None,
            accept: Accept::Whole,
            about,
            privacy: privacy_of(resource),
        }
    }

    /// The same with a body, in the name of our field manager.
    fn writing(mut self, body: Value, mode: Mode) -> Self {
        self.body = Some(body);
        self.query = vec![
            ("fieldManager", FIELD_MANAGER.to_owned()),
            ("fieldValidation", "Warn".to_owned()),
        ];
        if mode == Mode::DryRun {
            self.query.push(("dryRun", "All".to_owned()));
        }
        self
    }
}

/// As many objects come in one part of a list; kubectl asks for as many.
const PAGE: &str = "500";

/// The path of all objects of a kind, in a namespace if one is given and the kind is in namespaces.
fn collection(resource: &Resource, namespace: Option<&str>) -> String {
    let mut path = match resource.group.as_str() {
        "" => "/api".to_owned(),
        group => format!("/apis/{}", segment(group)),
    };
    let mut push = |part: &str| {
        path.push('/');
        path.push_str(part);
    };
    push(&segment(&resource.version));
    if let (Scope::Namespaced, Some(namespace)) = (resource.scope, namespace) {
        push("namespaces");
        push(&segment(namespace));
    }
    push(&segment(&resource.plural));
    path
}

/// What a server may say about objects of a kind.
fn privacy_of(resource: &Resource) -> Privacy {
    if resource.group.is_empty() && resource.kind == "Secret" {
        Privacy::Secret
    } else {
        Privacy::Open
    }
}

/// A part of a path. What would be none, and so would name another object or all of them, becomes `%`, which no object
/// can be called (k8s.io/apimachinery `pkg/api/validation/path/name.go`).
fn segment(text: &str) -> String {
    escape(match text {
        "" | "." | ".." => "%",
        _ => text,
    })
}

/// Text for a path or a query, with everything escaped that could mean something there.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(char::from(byte));
        } else {
            let _ = write!(escaped, "%{byte:02X}");
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resource(group: &str, kind: &str, plural: &str, scope: Scope) -> Resource {
        let [group, version, kind, plural] = [group, "v1", kind, plural].map(str::to_owned);
        Resource {
            group,
            version,
            kind,
            plural,
            scope,
        }
    }

    fn key(namespace: &str, name: &str) -> ObjectKey {
        let [group, kind, namespace, name] =
            ["apps", "Deployment", namespace, name].map(str::to_owned);
        ObjectKey {
            group,
            kind,
            namespace,
            name,
        }
    }

    #[test]
    fn names_cannot_lead_to_another_path() {
        let deployments = resource("apps", "Deployment", "deployments", Scope::Namespaced);
        let path = |namespace, name| Request::get(&deployments, &key(namespace, name)).path;
        let ops = "/apis/apps/v1/namespaces/ops/deployments";
        assert_eq!(path("ops", "manager"), format!("{ops}/manager"));
        assert_eq!(
            path("ops", "system:a/b?c#d é"),
            format!("{ops}/system%3Aa%2Fb%3Fc%23d%20%C3%A9")
        );
        for name in ["", ".", ".."] {
            assert_eq!(path("ops", name), format!("{ops}/%25"));
        }
        assert_eq!(
            path("", "manager"),
            "/apis/apps/v1/namespaces/%25/deployments/manager"
        );
    }

    #[test]
    fn a_list_is_of_one_namespace_or_of_all() {
        let secrets = resource("", "Secret", "secrets", Scope::Namespaced);
        let one = Request::list_metadata(&secrets, Some("ops"), "a=b");
        assert_eq!(one.path, "/api/v1/namespaces/ops/secrets");
        assert_eq!(one.about, "secrets in ops");
        assert_eq!(one.privacy, Privacy::Secret);
        let all = Request::list(&secrets, None, "");
        assert_eq!(all.path, "/api/v1/secrets");
        assert_eq!(all.about, "secrets in all namespaces");
        let roles = resource(
            "rbac.authorization.k8s.io",
            "ClusterRole",
            "clusterroles",
            Scope::Cluster,
        );
        let roles = Request::list(&roles, Some("ops"), "");
        assert_eq!(
            roles.path,
            "/apis/rbac.authorization.k8s.io/v1/clusterroles"
        );
    }

    #[test]
    fn a_dry_run_is_no_write() {
        let resource = resource("apps", "Deployment", "deployments", Scope::Namespaced);
        let key = key("ops", "manager");
        for (mode, is_write) in [(Mode::DryRun, false), (Mode::Write, true)] {
            let apply = Request::apply(&resource, &key, json!({}), mode, Force::No);
            let merge = Request::merge(&resource, &key, json!({}), mode);
            let delete = Request::delete(&resource, &key, "u1", mode);
            for request in [apply, merge, delete] {
                assert_eq!(request.is_write(), is_write, "{request:?}");
            }
        }
        assert!(!Request::get(&resource, &key).is_write());
        let create = Request::create(&resource, &key, json!({}));
        assert!(create.is_write());
        assert_eq!(create.path, "/apis/apps/v1/namespaces/ops/deployments");
    }
}
