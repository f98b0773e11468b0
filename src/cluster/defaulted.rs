//! Fields that a server filled in when nobody said anything of them, and that keep it from taking what is asked for later: a
//! Deployment that is to have the strategy `Recreate` still has the `rollingUpdate` of the default.
//!
//! An apply removes what the last one set and nothing else, and null does not remove what nobody has set. So such fields are
//! applied as they are, with all that was applied before, and then what is asked for without them.

use serde_json::{Map, Value, json};

use super::{
    answer::{Refusal, RefusalKind},
    asked, managed_fields,
};

/// How an object comes to be taken in spite of such fields.
#[derive(Clone, PartialEq)]
pub struct Release {
    /// What is applied first, and changes nothing: what we have applied to the object, and the fields.
    pub first: Value,
    /// What the object is after what is asked for was applied as well, as far as that can be told without the server.
    pub after: Value,
}

/// How to have a server take what it refused; nothing when it refused anything else than such fields.
#[must_use]
pub fn release(refusal: &Refusal, live: &Value, asked: &Value) -> Option<Release> {
    let is_about_fields = matches!(refusal.kind, RefusalKind::Invalid | RefusalKind::Immutable);
    if !is_about_fields || refusal.causes.is_empty() {
        return None;
    }
    let mut first = managed_fields::applied(live)?;
    let mut after = asked::laid_over(live, asked);
    for cause in &refusal.causes {
        let path: Vec<_> = cause.field.trim_start_matches('.').split('.').collect();
        let pointer = format!("/{}", path.join("/"));
        let value = live.pointer(&pointer)?;
        if asked.pointer(&pointer).is_some() || managed_fields::is_set(live, &path) {
            return None;
        }
        let (field, above) = path.split_last()?;
        insert(&mut first, &path, value.clone())?;
        let above = above
            .iter()
            .try_fold(&mut after, |at, field| at.get_mut(field));
        above?.as_object_mut()?.remove(*field);
    }
    Some(Release { first, after })
}

/// Puts a value where a path leads; nothing when there is something else than objects on its way.
fn insert(object: &mut Value, path: &[&str], value: Value) -> Option<()> {
    let (field, above) = path.split_last()?;
    let at = above.iter().try_fold(object, |at, field| {
        let fields = at.as_object_mut()?;
        Some(fields.entry(*field).or_insert_with(|| json!({})))
    })?;
    let fields: &mut Map<_, _> = at.as_object_mut()?;
    fields.insert((*field).to_owned(), value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::answer::Cause;
    use super::*;

    const MANAGER: &str = super::super::FIELD_MANAGER;

    fn live() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {
                "name": "m", "namespace": "ops", "uid": "1", "labels": {"ours": "1", "theirs": "2"},
                "managedFields": [
                    {
                        "manager": MANAGER, "operation": "Apply", "apiVersion": "apps/v1", "fieldsV1": {
                            "f:metadata": {"f:labels": {"f:ours": {}}},
                            "f:spec": {
                                "f:paused": {},
                                "f:template": {"f:spec": {
                                    "f:containers": {
                                        "k:{\"name\":\"b\"}": {".": {}, "f:image": {}, "f:ports": {
                                            "k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}},
                                        }},
                                    },
                                    "f:finalizers": {"v:\"x\"": {}},
                                    "f:selector": {},
                                }},
                            },
                        },
                    },
                    {
                        "manager": "scaler", "operation": "Update", "apiVersion": "apps/v1", "subresource": "scale",
                        "fieldsV1": {"f:spec": {"f:replicas": {}}},
                    },
                ],
            },
            "spec": {
                "paused": false, "replicas": 3, "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}},
                "template": {"spec": {
                    "containers": [
                        {"name": "a", "image": "a"},
                        {"name": "b", "image": "b", "ports": [{"containerPort": 80, "protocol": "TCP", "name": "web"}]},
                    ],
                    "finalizers": ["w", "x"],
                    "selector": {"zone": "1"},
                }},
            },
        })
    }

    fn refusal(kind: RefusalKind, fields: &[&str]) -> Refusal {
        let cause = |field: &&str| Cause {
            reason: "FieldValueForbidden".to_owned(),
            field: (*field).to_owned(),
            message: "may not be specified".to_owned(),
        };
        Refusal {
            about: "deployment.apps/m".to_owned(),
            code: 422,
            reason: "Invalid".to_owned(),
            message: String::new(),
            causes: fields.iter().map(cause).collect(),
            kind,
        }
    }

    #[test]
    fn what_nobody_has_set_is_applied_with_what_we_have_and_left_out_then() {
        let asked = json!({"spec": {"strategy": {"type": "Recreate"}}});
        let refusal = refusal(RefusalKind::Invalid, &["spec.strategy.rollingUpdate"]);
        let Release { first, after } = release(&refusal, &live(), &asked).expect("a way");
        assert_eq!(
            first,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "m", "namespace": "ops", "labels": {"ours": "1"}},
                "spec": {
                    "paused": false,
                    "strategy": {"rollingUpdate": {"maxSurge": "25%"}},
                    "template": {"spec": {
                        "containers": [
                            {"name": "b", "image": "b", "ports": [{"containerPort": 80, "protocol": "TCP"}]},
                        ],
                        "finalizers": ["x"],
                        "selector": {"zone": "1"},
                    }},
                },
            })
        );
        assert_eq!(after["spec"]["strategy"], json!({"type": "Recreate"}));
        assert_eq!(after["spec"]["replicas"], 3);
    }

    #[test]
    fn what_anything_else_is_refused_for_stays_refused() {
        let asked = json!({"spec": {"strategy": {"type": "Recreate"}, "paused": true}});
        let fields: [(RefusalKind, &[&str]); 7] = [
            (RefusalKind::Invalid, &[]),
            (RefusalKind::Admission, &["spec.strategy.rollingUpdate"]),
            // Asked for, of others, of ours, not there, in a list.
            (
                RefusalKind::Invalid,
                &["spec.strategy.rollingUpdate", "spec.paused"],
            ),
            (RefusalKind::Invalid, &["spec.replicas"]),
            (RefusalKind::Invalid, &["spec.template.spec.selector"]),
            (RefusalKind::Invalid, &["spec.minReadySeconds"]),
            (
                RefusalKind::Invalid,
                &["spec.template.spec.containers[1].ports"],
            ),
        ];
        for (kind, fields) in fields {
            let release = release(&refusal(kind, fields), &live(), &asked);
            assert!(release.is_none(), "{fields:?}");
        }
        let mut other = live();
        other["apiVersion"] = json!("apps/v2");
        let field = refusal(RefusalKind::Invalid, &["spec.strategy.rollingUpdate"]);
        assert!(release(&field, &other, &asked).is_none());
    }
}
