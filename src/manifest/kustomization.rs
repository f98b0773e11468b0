//! The text of `kustomization.yaml`, which lists the rendered files in the order in which they are applied.
//!
//! Kustomize keeps the order of `resources` (its default `sortOptions.order` is `fifo`), so the list is all that is
//! needed to hand our apply order on. Nothing else is set: patches, name prefixes and labels belong into the user's own
//! overlay, because this file is written anew by each render.

/// The name under which kustomize looks for its file in a folder.
///
/// No object is ever given this name: the names of [`file_name`](crate::manifest::file_name) hold a `-`.
pub const FILE_NAME: &str = "kustomization.yaml";

/// Writes the kustomization for `resources`, names of files beside it, in the order given.
///
/// The names must come from [`file_names`](crate::manifest::file_name::file_names). They are written without quotes:
/// names of `a-z`, `0-9`, `.`, `_` and `-` that start with a letter, a digit or `_` hold no YAML punctuation, and
/// because they end in `.yaml` none of them reads as a number, a date, a boolean or null.
pub fn kustomization(resources: &[String]) -> String {
    let head = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n";
    if resources.is_empty() {
        return format!("{head}resources: []\n");
    }
    let lines: String = resources.iter().map(|name| format!("- {name}\n")).collect();
    format!("{head}resources:\n{lines}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_keep_the_order_given() {
        let text = kustomization(&["namespace-b.yaml".into(), "configmap-a_b.yaml".into()]);
        let expected = "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n\
                        resources:\n- namespace-b.yaml\n- configmap-a_b.yaml\n";
        assert_eq!(text, expected);
    }

    #[test]
    fn no_resources_is_an_empty_list_and_not_null() {
        assert!(kustomization(&[]).ends_with("\nresources: []\n"));
    }
}
