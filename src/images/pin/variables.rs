//! The containers of an object and their variables, also those that name no image: the walk tells only of what does.

use serde_json::Value;

use crate::{
    images::{
        Role,
        fields::{self, RELATED_IMAGE, items},
    },
    manifest::Manifest,
    problem::Problem,
};

/// A container of a pod that an object makes or is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Container<'a> {
    /// Whether it is an init container.
    role: Role,
    pub(super) value: &'a Value,
}

/// A variable of a container.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variable<'a> {
    pub(super) name: &'a str,
    pub(super) value: Option<&'a Value>,
    /// Whether its value is taken from elsewhere.
    is_from_elsewhere: bool,
}

impl<'a> Container<'a> {
    /// What it is called in messages.
    pub(super) fn description(&self) -> String {
        let name = self.value.get("name").and_then(Value::as_str);
        format!("{} {}", self.role.word(), name.unwrap_or_default())
    }

    /// Its variables that have a name.
    pub(super) fn variables(&self) -> impl Iterator<Item = Variable<'a>> {
        items(self.value, "env").filter_map(|(_, variable)| {
            Some(Variable {
                name: variable.get("name")?.as_str()?,
                value: variable.get("value"),
                is_from_elsewhere: variable
                    .get("valueFrom")
                    .is_some_and(|from| !from.is_null()),
            })
        })
    }

    /// Its command and its arguments.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &'a str> {
        let fields = ["command", "args"].into_iter();
        let arguments = fields.flat_map(|field| items(self.value, field));
        arguments.filter_map(|(_, argument)| argument.as_str())
    }
}

impl Variable<'_> {
    /// Whether it is by its name one that holds an image.
    pub(super) fn is_related_image(&self) -> bool {
        self.name.starts_with(RELATED_IMAGE)
    }

    /// Whether it gets a value when the container starts.
    pub(super) fn is_set(&self) -> bool {
        let text = self.value.and_then(Value::as_str);
        self.is_from_elsewhere || text.is_some_and(|text| !text.trim().is_empty())
    }
}

/// All containers of an object.
pub(super) fn containers(manifest: &Manifest) -> impl Iterator<Item = Container<'_>> {
    let containers = fields::containers(manifest).into_values();
    containers.map(|(role, value)| Container { role, value })
}

/// An error for each variable `RELATED_IMAGE_*` that takes its value from elsewhere: nobody knows which image it will be.
pub(super) fn values_from_elsewhere(manifest: &Manifest) -> Vec<Problem> {
    let mut problems = vec![];
    for container in containers(manifest) {
        for variable in container.variables() {
            if variable.is_related_image() && variable.is_from_elsewhere {
                let message = format!(
                    "{} var of {} takes its value from elsewhere (valueFrom), so its image cannot be pinned: give it a \
                     value, or another name",
                    variable.name,
                    container.description()
                );
                let problem = Problem::error("related-images", message);
                problems.push(problem.at(&manifest.origin).on(manifest.key()));
            }
        }
    }
    problems
}
