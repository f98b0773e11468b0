//! Fields that a server filled in when nobody said anything of them, and that keep it from taking what is asked for later: a
//! Deployment that is to have the strategy `Recreate` still has the `rollingUpdate` of the default.
//!
//! An apply removes what the last one set and nothing else, and null does not remove what nobody has set. So such fields are
//! applied as they are, with all that was applied before, and then what is asked for without them.

use serde_json::{Map, Value, json};

use super::{
    answer::{Refusal, RefusalKind},
    managed_fields,
};

/// How an object comes to be taken in spite of such fields.
#[derive(Clone, PartialEq)]
pub struct Release {
    /// What is applied first, and changes nothing: what we have applied to the object, and the fields.
    pub releasing: Value,
    /// A merge patch of what is asked for, without the fields and what we asked for before: a dry run of it says whether that
    /// is taken, and what the object is then, but for items of others in lists.
    pub patch: Value,
}

/// How a server may come to take what it refused; nothing when it refused anything else than such fields.
#[must_use]
pub fn release(refusal: &Refusal, live: &Value, asked: &Value) -> Option<Release> {
    if refusal.kind != RefusalKind::Invalid || refusal.causes.is_empty() {
        return None;
    }
    let mut releasing = managed_fields::applied(live)?;
    let mut patch = asked.clone();
    leave_out(&mut patch, &releasing, live, &mut vec![]);
    for cause in &refusal.causes {
        let path: Vec<_> = cause.field.trim_start_matches('.').split('.').collect();
        let pointer = format!("/{}", path.join("/"));
        let value = live.pointer(&pointer)?;
        if asked.pointer(&pointer).is_some() || managed_fields::is_set(live, &path) {
            return None;
        }
        insert(&mut releasing, &path, value.clone())?;
        insert(&mut patch, &path, Value::Null)?;
    }
    Some(Release { releasing, patch })
}

/// Has a patch remove what was applied and is no longer asked for, unless others have set it as well.
fn leave_out<'a>(patch: &mut Value, applied: &'a Value, live: &Value, path: &mut Vec<&'a str>) {
    let (Some(patch), Some(applied)) = (patch.as_object_mut(), applied.as_object()) else {
        return;
    };
    for (field, applied) in applied {
        path.push(field);
        match patch.get_mut(field) {
            Some(patch) => leave_out(patch, applied, live, path),
            None if managed_fields::is_set_by_others(live, path) => {}
            None => drop(patch.insert(field.clone(), Value::Null)),
        }
        path.pop();
    }
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
        let asked = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "m", "namespace": "ops"},
            "spec": {
                "strategy": {"type": "Recreate"},
                "template": {"spec": {"containers": [{"name": "b", "image": "c"}], "selector": {"zone": "1"}}},
            },
        });
        let refusal = refusal(RefusalKind::Invalid, &["spec.strategy.rollingUpdate"]);
        let Release { releasing, patch } = release(&refusal, &live(), &asked).expect("a way");
        assert_eq!(
            releasing,
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
        assert_eq!(
            patch,
            json!({
                "apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "m", "namespace": "ops", "labels": null},
                "spec": {
                    "paused": null,
                    "strategy": {"type": "Recreate", "rollingUpdate": null},
                    "template": {"spec": {
                        "containers": [{"name": "b", "image": "c"}], "finalizers": null, "selector": {"zone": "1"},
                    }},
                },
            })
        );
    }

    #[test]
    fn what_anything_else_is_refused_for_stays_refused() {
        let asked = json!({"spec": {"strategy": {"type": "Recreate"}, "paused": true}});
        let fields: [(RefusalKind, &[&str]); 9] = [
            (RefusalKind::Invalid, &[]),
            (RefusalKind::Admission, &["spec.strategy.rollingUpdate"]),
            (RefusalKind::Immutable, &["spec.strategy.rollingUpdate"]),
            // Asked for, of others, of ours, not there, in a list.
            (
                RefusalKind::Invalid,
                &["spec.strategy.rollingUpdate", "spec.paused"],
            ),
            (RefusalKind::Invalid, &["spec.replicas"]),
            (RefusalKind::Invalid, &["spec.template.spec.selector"]),
            (RefusalKind::Invalid, &["spec.template.spec.selector.zone"]),
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
