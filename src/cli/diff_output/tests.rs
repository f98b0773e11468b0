//! What `diff` prints.

use super::*;

fn difference(kind: &str, before: Option<Value>, after: Option<Value>) -> Difference {
    Difference {
        key: ObjectKey {
            group: "apps".to_owned(),
            kind: kind.to_owned(),
            namespace: "ops".to_owned(),
            name: "manager".to_owned(),
        },
        before,
        after,
        fields: vec!["/a".to_owned()],
    }
}

#[test]
fn text_has_a_heading_and_colours_where_they_are_wanted() {
    let (before, after) = (json!({"a": 1, "b": "x"}), json!({"a": 2, "b": "x"}));
    let difference = difference("Deployment", Some(before), Some(after));
    assert_eq!(
        text(&difference, Colors::Off),
        "deployment.apps/manager in ops: update\n\
         --- before\n+++ after\n@@ -1,2 +1,2 @@\n-a: 1\n+a: 2\n b: x\n"
    );
    assert_eq!(
        text(&difference, Colors::On),
        "\u{1b}[1mdeployment.apps/manager in ops: update\u{1b}[0m\n\
         \u{1b}[31m--- before\u{1b}[0m\n\u{1b}[32m+++ after\u{1b}[0m\n\u{1b}[36m@@ -1,2 +1,2 @@\u{1b}[0m\n\
         \u{1b}[31m-a: 1\u{1b}[0m\n\u{1b}[32m+a: 2\u{1b}[0m\n b: x\n"
    );
}

#[test]
fn nothing_in_an_object_steers_the_terminal() {
    let hostile = "\u{1b}]52;c;x\u{7}\u{202e}\r\u{9b}31m\u{200b}";
    let object = json!({hostile: format!("a\n\tb{hostile}\n+++ c\n")});
    let mut difference = difference("Deployment", None, Some(object));
    difference.key.name.push_str(hostile);
    let all = [difference];
    let shown = [
        text(&all[0], Colors::Off),
        summary(&all, None),
        output::json(&value(&all[0])),
    ];
    for text in shown {
        let steers = |character: &char| {
            !matches!(character, '\n' | '\t') && super::super::text::steers(*character)
        };
        assert_eq!(text.chars().find(steers), None, "{text}");
    }
}

#[test]
fn a_summary_counts_objects_and_fields() {
    let object = || Some(json!({"a": 1}));
    let all = [
        difference("Deployment", object(), Some(json!({"a": 2}))),
        difference("StatefulSet", None, object()),
        difference("DaemonSet", object(), None),
        difference("ReplicaSet", object(), None),
    ];
    assert_eq!(
        summary(&all, None),
        "OBJECT                            CHANGE   FIELDS\n\
         deployment.apps/manager in ops    update   1\n\
         statefulset.apps/manager in ops   create   all\n\
         daemonset.apps/manager in ops     delete   all\n\
         replicaset.apps/manager in ops    delete   all\n\
         1 to create, 1 to update, 2 to delete\n"
    );
    assert_eq!(summary(&[], None), "no differences\n");
}
