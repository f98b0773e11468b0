//! `metadata/dependencies.yaml`: what the bundle needs, in the words of OLM v0. OLM v1 does not read it.
//!
//! A file that OLM v0 could not read is no reason to refuse the bundle, as operator-registry reads over it
//! (`pkg/registry/parse.go`, `addMetadata`).

use serde_json::Value;

use crate::{limits::Limits, manifest::yaml, problem::Problem};

/// The path of the file in a bundle.
pub(super) const PATH: &str = "metadata/dependencies.yaml";

/// The dependencies that the file lists, as they stand there. A warning is added to `problems` when it cannot be read.
pub(super) fn read(content: &[u8], limits: &Limits, problems: &mut Vec<Problem>) -> Vec<Value> {
    listed(content, limits).unwrap_or_else(|reason| {
        let message = format!("OLM v0 cannot read it: {reason}");
        problems.push(Problem::warning("dependencies", message).at(PATH));
        vec![]
    })
}

fn listed(content: &[u8], limits: &Limits) -> Result<Vec<Value>, String> {
    let documents = yaml::read(content, limits).map_err(|error| error.message().to_owned())?;
    let first = documents.into_iter().next().map(|document| document.value);
    let listed = match first.and_then(|mut value| Some(value.get_mut("dependencies")?.take())) {
        None | Some(Value::Null) => return Ok(vec![]),
        Some(Value::Array(listed)) => listed,
        Some(_) => return Err("dependencies is not a list".to_owned()),
    };
    let is_one = |one: &Value| {
        one.get("type").is_some_and(Value::is_string)
            && one.get("value").is_some_and(Value::is_object)
    };
    match listed.iter().position(|one| !is_one(one)) {
        Some(at) => Err(format!(
            "dependencies[{at}] has to have a text as its `type` and a map as its `value`"
        )),
        None => Ok(listed),
    }
}
