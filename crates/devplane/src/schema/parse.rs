//! Schemas out of JSON: what all have in common, and those of CRDs. Never here: whether the JSON is a right schema.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::check::Checker;
use super::{Below, Checks, ListType, Role, Schema, Type, meta, patterns, rules};
use crate::status::FieldError;

/// The schema of a version of a CRD. What can only be found wrong while it is compiled is added to the errors.
pub(super) fn crd(json: &Value, path: &str, errors: &mut Vec<FieldError>) -> Schema {
    let mut parser = Parser { errors, path: path.to_owned(), apart: None };
    parser.node(json, Role::Root)
}

/// What a schema says without a look at those in it. Patterns are left out.
pub(super) fn plain(json: &Map<String, Value>) -> Schema {
    let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
    let text = |key: &str| json.get(key).and_then(Value::as_str).map(str::to_owned);
    let strategy = text("x-kubernetes-patch-strategy").unwrap_or_default();
    let list_type = match json.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => ListType::Set,
        Some("map") => ListType::Map,
        _ => ListType::Atomic,
    };
    Schema {
        kind: json.get("type").and_then(Value::as_str).and_then(Type::of_name),
        required: strings(json, "required"),
        default: json.get("default").filter(|default| !default.is_null()).cloned(),
        nullable: flag("nullable"),
        int_or_string: flag("x-kubernetes-int-or-string"),
        preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
        embedded_resource: flag("x-kubernetes-embedded-resource"),
        list_type,
        list_map_keys: strings(json, "x-kubernetes-list-map-keys"),
        is_atomic_map: json.get("x-kubernetes-map-type").and_then(Value::as_str) == Some("atomic"),
        patch_merge: strategy.split(',').any(|part| part == "merge"),
        patch_retain_keys: strategy.split(',').any(|part| part == "retainKeys"),
        patch_merge_key: text("x-kubernetes-patch-merge-key"),
        description: text("description"),
        checks: checks(json),
        ..Schema::default()
    }
}

fn checks(json: &Map<String, Value>) -> Checks {
    let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
    let count = |key: &str| json.get(key).and_then(Value::as_u64);
    let number = |key: &str| json.get(key).and_then(Value::as_f64);
    Checks {
        r#enum: json.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
        format: json.get("format").and_then(Value::as_str).map(str::to_owned),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        minimum: number("minimum"),
        maximum: number("maximum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        ..Checks::default()
    }
}

fn strings(json: &Map<String, Value>, key: &str) -> Vec<String> {
    let items = json.get(key).and_then(Value::as_array).into_iter().flatten();
    items.filter_map(Value::as_str).map(str::to_owned).collect()
}

struct Parser<'a> {
    errors: &'a mut Vec<FieldError>,
    path: String,
    /// The list whose items cannot be told apart, if the schema at hand is below one.
    apart: Option<String>,
}

impl Parser<'_> {
    fn node(&mut self, json: &Value, role: Role) -> Schema {
        let Some(json) = json.as_object() else { return Schema { role, ..Schema::default() } };
        let mut schema = Schema { role, ..plain(json) };
        if let Some(properties) = json.get("properties").and_then(Value::as_object) {
            for (name, child) in properties {
                let child =
                    self.at(&format!(".properties[{name}]"), |parser| parser.node(child, Role::Plain));
                schema.properties.insert(name.clone(), Arc::new(child));
            }
        }
        match json.get("additionalProperties") {
            Some(Value::Bool(false)) => schema.forbids_additional = true,
            Some(Value::Bool(true)) => schema.additional = Some(Arc::default()),
            Some(child) => {
                let child = self.at(".additionalProperties", |parser| parser.node(child, Role::Plain));
                schema.additional = Some(Arc::new(child));
            }
            None => {}
        }
        if let Some(child) = json.get("items") {
            let outside = self.apart.clone();
            if schema.list_type != ListType::Map {
                self.apart.get_or_insert_with(|| self.path.clone());
            }
            schema.items = Some(Arc::new(self.at(".items", |parser| parser.node(child, Role::Plain))));
            self.apart = outside;
        }
        if schema.embedded_resource || role == Role::Root {
            meta::complete(&mut schema);
        }
        self.logic(json, &mut schema);
        self.pattern(json, &mut schema);
        schema.rules = rules::parse(&schema, json, &self.path, self.apart.as_deref(), self.errors);
        schema.below = below(&schema);
        self.default(&schema);
        schema
    }

    /// `allOf` and its kin.
    fn logic(&mut self, json: &Map<String, Value>, schema: &mut Schema) {
        let mut all = |key: &str| -> Vec<Schema> {
            let parts = json.get(key).and_then(Value::as_array).into_iter().flatten();
            let part = |(index, child)| {
                self.at(&format!(".{key}[{index}]"), |parser| parser.node(child, Role::Plain))
            };
            parts.enumerate().map(part).collect()
        };
        schema.checks.all_of = all("allOf");
        schema.checks.any_of = all("anyOf");
        schema.checks.one_of = all("oneOf");
        schema.checks.not =
            json.get("not").map(|child| Box::new(self.at(".not", |parser| parser.node(child, Role::Plain))));
    }

    fn pattern(&mut self, json: &Map<String, Value>, schema: &mut Schema) {
        let Some(pattern) = json.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty())
        else {
            return;
        };
        match patterns::compile(pattern) {
            Ok(pattern) => schema.checks.pattern = Some(pattern),
            Err(reason) => {
                let detail = format!("must be a valid regular expression, but isn't: {reason}");
                self.errors.push(FieldError::invalid(
                    format!("{}.pattern", self.path),
                    &pattern.into(),
                    detail,
                ));
            }
        }
    }

    /// A default must be allowed by the schema whose it is.
    fn default(&mut self, schema: &Schema) {
        let Some(default) = &schema.default else { return };
        let path = format!("{}.default", self.path);
        let mut pruned = default.clone();
        if !schema.prune(&mut pruned).is_empty() {
            self.errors.push(FieldError::invalid(path, default, "must not have unknown fields"));
            return;
        }
        let mut checker = Checker::new(path.clone());
        checker.value(schema, default, None);
        let is_right = checker.errors.is_empty();
        self.errors.append(&mut checker.errors);
        if is_right && schema.below.rules {
            self.errors.append(&mut rules::check(schema, default, None, &path).errors);
        }
    }

    fn at<T>(&mut self, part: &str, work: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.path.len();
        self.path.push_str(part);
        let result = work(self);
        self.path.truncate(length);
        result
    }
}

fn below(schema: &Schema) -> Below {
    let children = schema.properties.values().chain(&schema.additional).chain(&schema.items);
    let mut below = Below {
        lists: schema.list_type != ListType::Atomic,
        embedded: schema.embedded_resource,
        rules: !schema.rules.is_empty(),
    };
    for child in children.filter(|child| child.role != Role::Metadata) {
        below.lists |= child.below.lists;
        below.embedded |= child.below.embedded;
        below.rules |= child.below.rules;
    }
    below
}
