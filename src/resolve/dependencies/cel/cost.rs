//! The most that a rule can cost, worked out without running it, so that no rule can keep the machine busy: a rule of
//! a few lines can nest loops, or double a list in each step.

use cel::common::ast::{CallExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use serde_json::Value as Json;

use crate::catalog::Property;

/// What it can cost to read a pattern: the regex crate refuses it when it has become 10 MB large.
const LARGE_PATTERN: u64 = 500_000;

/// How large a value can be.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cost {
    /// All that is in it: values, and text by the 16 bytes.
    pub(super) weight: u64,
    /// The values directly in it.
    items: u64,
    /// All that is in the largest of them.
    each: u64,
}

/// What a part of a rule costs, and how large its value can be.
struct Part {
    cost: u64,
    value: Cost,
}

/// The names that the rule knows where it stands, innermost last.
type Scope<'e> = Vec<(&'e str, Cost)>;

/// The functions of OLM's CEL. Those on time stamps are known, but always fail.
const FUNCTIONS: &[&str] = &[
    "_?_:_",
    "_&&_",
    "_||_",
    "!_",
    "_-_",
    "_+_",
    "_*_",
    "_/_",
    "_%_",
    "_==_",
    "_!=_",
    "_>=_",
    "_<=_",
    "_>_",
    "_<_",
    "-_",
    "_[_]",
    "@not_strictly_false",
    "@in",
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "matches",
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "type",
    "dyn",
    "timestamp",
    "duration",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getFullYear",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getSeconds",
    "semver_compare",
];
const TYPES: &[&str] = &[
    "int",
    "uint",
    "double",
    "string",
    "bytes",
    "bool",
    "list",
    "map",
    "null_type",
    "type",
];

impl Cost {
    const ONE: Self = Self {
        weight: 1,
        items: 0,
        each: 0,
    };

    /// Of the list of properties.
    pub(super) fn of_properties(properties: &[&Property]) -> Self {
        let weights = properties
            .iter()
            .map(|property| 4 + weight_of(&property.value));
        let (mut weight, mut each) = (1, 0);
        for one in weights {
            weight += one;
            each = one.max(each);
        }
        let items = u64::try_from(properties.len()).unwrap_or(u64::MAX);
        Self {
            weight,
            items,
            each,
        }
    }

    /// Of something of which only the whole is known.
    const fn of_weight(weight: u64) -> Self {
        Self {
            weight,
            items: weight,
            each: weight,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            weight: self.weight.saturating_add(other.weight),
            items: self.items.saturating_add(other.items),
            each: self.each.max(other.each),
        }
    }
}

/// The most that running an expression can cost.
///
/// # Errors
/// The name of a variable or function that no rule knows.
pub(super) fn of(expression: &IdedExpr, properties: Cost) -> Result<u64, String> {
    let mut scope = vec![("properties", properties)];
    Ok(part(expression, &mut scope)?.cost)
}

fn part<'e>(expression: &'e IdedExpr, scope: &mut Scope<'e>) -> Result<Part, String> {
    match &expression.expr {
        Expr::Ident(name) => ident(name, scope),
        Expr::Select(select) => {
            let operand = part(&select.operand, scope)?;
            let value = Cost::of_weight(operand.value.each.max(1));
            Ok(Part {
                cost: operand.cost.saturating_add(1),
                value,
            })
        }
        Expr::Call(call) => {
            if !FUNCTIONS.contains(&call.func_name.as_str()) {
                return Err(call.func_name.clone());
            }
            self::call(call, scope)
        }
        Expr::List(list) => together(list.elements.iter(), scope),
        Expr::Map(map) => entries(&map.entries, scope),
        Expr::Struct(structure) => Err(structure.type_name.clone()),
        Expr::Comprehension(_) => comprehension(expression, scope),
        Expr::Literal(_) | Expr::Unspecified => Ok(Part {
            cost: 1,
            value: Cost::of_weight(256),
        }),
    }
}

fn ident(name: &str, scope: &Scope<'_>) -> Result<Part, String> {
    let known = scope.iter().rfind(|(known, _)| *known == name);
    let value = match known {
        Some((_, value)) => *value,
        None if TYPES.contains(&name) => Cost::ONE,
        None => return Err(name.to_owned()),
    };
    Ok(Part { cost: 1, value })
}

/// Comparing and searching looks at all of the operands once; a match looks at the text once for each part of the
/// pattern.
fn call<'e>(call: &'e CallExpr, scope: &mut Scope<'e>) -> Result<Part, String> {
    let (mut cost, mut value, mut smallest, mut product) = (1_u64, Cost::ONE, u64::MAX, 1_u64);
    for operand in call.target.as_deref().into_iter().chain(&call.args) {
        let operand = part(operand, scope)?;
        cost = cost.saturating_add(operand.cost);
        smallest = smallest.min(operand.value.weight);
        product = product.saturating_mul(operand.value.weight);
        value = value.plus(operand.value);
    }
    let (own, value) = match call.func_name.as_str() {
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" => (smallest, Cost::ONE),
        "_&&_" | "_||_" | "!_" | "@not_strictly_false" | "size" | "type" => (0, Cost::ONE),
        "_[_]" => (1, Cost::of_weight(value.each.max(1))),
        "_?_:_" | "dyn" => (1, value),
        "matches" => {
            let pattern = call.args.last().map_or(LARGE_PATTERN, pattern);
            (product.saturating_add(pattern), Cost::ONE)
        }
        "_+_" => (value.weight, value),
        _ => (value.weight, Cost::of_weight(value.weight)),
    };
    Ok(Part {
        cost: cost.saturating_add(own),
        value,
    })
}

/// Reading a pattern costs far more than its length when it repeats something or names classes of characters.
fn pattern(pattern: &IdedExpr) -> u64 {
    match &pattern.expr {
        Expr::Literal(LiteralValue::String(text))
            if text.inner().len() < 100 && !text.inner().contains(['{', '\\']) =>
        {
            500
        }
        _ => LARGE_PATTERN,
    }
}

fn together<'e>(
    parts: impl Iterator<Item = &'e IdedExpr>,
    scope: &mut Scope<'e>,
) -> Result<Part, String> {
    let (mut cost, mut value) = (1_u64, Cost::ONE);
    for expression in parts {
        let one = part(expression, scope)?;
        cost = cost.saturating_add(one.cost);
        value.weight = value.weight.saturating_add(one.value.weight);
        value.items += 1;
        value.each = value.each.max(one.value.weight);
    }
    Ok(Part { cost, value })
}

fn entries<'e>(entries: &'e [IdedEntryExpr], scope: &mut Scope<'e>) -> Result<Part, String> {
    let parts = entries.iter().flat_map(|entry| match &entry.expr {
        EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
        EntryExpr::StructField(field) => [Some(&field.value), None],
    });
    together(parts.flatten(), scope)
}

/// A loop costs as often as it runs; what it gathers grows by one step's value each time.
fn comprehension<'e>(expression: &'e IdedExpr, scope: &mut Scope<'e>) -> Result<Part, String> {
    let Expr::Comprehension(comprehension) = &expression.expr else {
        return Ok(Part {
            cost: 0,
            value: Cost::ONE,
        });
    };
    let range = part(&comprehension.iter_range, scope)?;
    let start = part(&comprehension.accu_init, scope)?;
    let known = scope.len();
    scope.push((
        &comprehension.iter_var,
        Cost::of_weight(range.value.each.max(1)),
    ));
    if let Some(second) = &comprehension.iter_var2 {
        scope.push((second, Cost::of_weight(range.value.each.max(1))));
    }
    scope.push((&comprehension.accu_var, Cost::ONE));
    let condition = part(&comprehension.loop_cond, scope)?;
    let step = part(&comprehension.loop_step, scope)?;
    let times = range.value.items;
    let gathered = Cost {
        weight: start
            .value
            .weight
            .saturating_add(times.saturating_mul(step.value.weight)),
        items: start
            .value
            .items
            .saturating_add(times.saturating_mul(step.value.items.max(1))),
        each: start.value.each.max(step.value.each),
    };
    scope.truncate(known);
    scope.push((&comprehension.accu_var, gathered));
    let result = part(&comprehension.result, scope)?;
    scope.truncate(known);
    let once = condition.cost.saturating_add(step.cost).saturating_add(1);
    // A list that grows is copied each time.
    let copied = match comprehension.accu_init.expr {
        Expr::List(_) => gathered.items,
        _ => 0,
    };
    let once = once.saturating_add(copied);
    let cost = times.saturating_mul(once).saturating_add(range.cost);
    let cost = cost.saturating_add(start.cost).saturating_add(result.cost);
    Ok(Part {
        cost,
        value: result.value,
    })
}

/// The depth is that of the document, which its reader bounds.
fn weight_of(value: &Json) -> u64 {
    match value {
        Json::Array(list) => 1 + list.iter().map(weight_of).sum::<u64>(),
        Json::Object(fields) => {
            1 + fields
                .values()
                .map(|value| 1 + weight_of(value))
                .sum::<u64>()
        }
        Json::String(text) => 1 + u64::try_from(text.len() / 16).unwrap_or(u64::MAX),
        _ => 1,
    }
}
