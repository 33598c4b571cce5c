//! Whether the schema in a CRD is structural, as Kubernetes demands. Never here: the meaning of schemas.

use serde_json::{Map, Value, json};

use super::{Type, meta};
use crate::status::{Fault, FieldError};

/// What schemas of Kubernetes never have.
const UNSUPPORTED: [&str; 6] =
    ["$ref", "additionalItems", "definitions", "dependencies", "id", "patternProperties"];

/// What may be said outside of combined schemas only, and how that is put.
const OUTSIDE: [(&str, &str); 13] = [
    ("type", "must be empty to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("default", "must be undefined to be structural"),
    ("nullable", "must be false to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
];

/// What is wrong with the schema at a path of a CRD.
pub(super) fn check(schema: &Value, path: &str) -> Vec<FieldError> {
    let mut checker = Structural { path: path.to_owned(), errors: Vec::new() };
    checker.root(schema);
    checker.errors
}

/// Where a schema is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Root,
    Field,
    Items,
    /// Inside of `allOf` and its kin.
    Combined,
}

struct Structural {
    path: String,
    errors: Vec<FieldError>,
}

impl Structural {
    fn root(&mut self, schema: &Value) {
        let Some(json) = schema.as_object() else { return };
        match json.get("type").and_then(Value::as_str) {
            Some("object") | None => {}
            Some(other) => self.invalid(".type", &other.into(), "must be object at the root"),
        }
        if json.get("additionalProperties").is_some() {
            self.forbid(".additionalProperties", "must not be used at the root");
        }
        for name in ["apiVersion", "kind"] {
            self.identity(json, name, Type::String);
        }
        self.identity(json, "metadata", Type::Object);
        self.metadata(&schema["properties"]["metadata"]);
        self.node(json, Place::Root);
    }

    /// `apiVersion`, `kind` and `metadata` have their types already.
    fn identity(&mut self, json: &Map<String, Value>, name: &str, kind: Type) {
        let Some(field) = json.get("properties").and_then(|fields| fields.get(name)) else { return };
        let given = field["type"].as_str().unwrap_or_default();
        if given != kind.name() {
            self.invalid(
                &format!(".properties[{name}].type"),
                &given.into(),
                &format!("must be {}", kind.name()),
            );
        }
    }

    /// Of `metadata` names may be limited, and no more.
    fn metadata(&mut self, metadata: &Value) {
        let Some(json) = metadata.as_object() else { return };
        let says_more = json.keys().any(|key| !matches!(&**key, "type" | "properties" | "default"));
        let fields = json.get("properties").and_then(Value::as_object);
        if says_more
            || fields.is_some_and(|fields| !fields.keys().all(|name| meta::LIMITED.contains(&&**name)))
        {
            let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
            self.forbid(".properties[metadata]", detail);
        }
        let names = fields.into_iter().flatten().map(|(name, field)| (format!(".properties[{name}]"), field));
        for (part, field) in std::iter::once((String::new(), metadata)).chain(names) {
            if field.get("default").is_some() {
                self.forbid(
                    &format!(".properties[metadata]{part}.default"),
                    "must not be set in top-level metadata",
                );
            }
        }
    }

    fn node(&mut self, json: &Map<String, Value>, place: Place) {
        self.unsupported(json);
        if json.contains_key("$ref") {
            return;
        }
        if place == Place::Combined {
            self.combined(json);
        } else {
            self.kind(json, place);
            self.object(json);
            self.array(json);
            self.extensions(json);
        }
        for (name, child) in json.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let place = if place == Place::Combined { place } else { Place::Field };
            self.child(&format!(".properties[{name}]"), child, place);
        }
        if let Some(child) = json.get("additionalProperties") {
            let place = if place == Place::Combined { place } else { Place::Field };
            self.child(".additionalProperties", child, place);
        }
        if let Some(child) = json.get("items") {
            let place = if place == Place::Combined { place } else { Place::Items };
            self.child(".items", child, place);
        }
        self.parts(json);
    }

    fn child(&mut self, part: &str, child: &Value, place: Place) {
        let Some(json) = child.as_object() else { return };
        let length = self.path.len();
        self.path.push_str(part);
        self.node(json, place);
        self.path.truncate(length);
    }

    fn parts(&mut self, json: &Map<String, Value>) {
        let is_int_or_string = is_set(json, "x-kubernetes-int-or-string");
        let both = json!([{ "type": "integer" }, { "type": "string" }]);
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(parts) = json.get(key).and_then(Value::as_array) else { continue };
            // The one way to say in words of OpenAPI what the extension means.
            if is_int_or_string && key == "anyOf" && json[key] == both {
                continue;
            }
            for (index, part) in parts.iter().enumerate() {
                if is_int_or_string && key == "allOf" && index == 0 && part == &json!({ "anyOf": both }) {
                    continue;
                }
                self.child(&format!(".{key}[{index}]"), part, Place::Combined);
            }
        }
        if let Some(part) = json.get("not") {
            self.child(".not", part, Place::Combined);
        }
    }

    fn unsupported(&mut self, json: &Map<String, Value>) {
        for key in UNSUPPORTED {
            if json.contains_key(key) {
                self.forbid(&format!(".{key}"), &format!("{key} is not supported"));
            }
        }
        if is_set(json, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(".uniqueItems", detail);
        }
        if json.get("items").is_some_and(Value::is_array) {
            self.forbid(".items", "items must be a schema object and not an array");
        }
    }

    fn combined(&mut self, json: &Map<String, Value>) {
        for (key, detail) in OUTSIDE {
            let says_something =
                json.get(key).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
            if says_something {
                self.forbid(&format!(".{key}"), detail);
            }
        }
    }

    fn kind(&mut self, json: &Map<String, Value>, place: Place) {
        let any = is_set(json, "x-kubernetes-int-or-string")
            || is_set(json, "x-kubernetes-preserve-unknown-fields");
        let where_it_lacks = match place {
            Place::Root => "must not be empty at the root",
            Place::Items => "must not be empty for specified array items",
            Place::Field | Place::Combined => "must not be empty for specified object fields",
        };
        match json.get("type").and_then(Value::as_str).unwrap_or_default() {
            "" if any && place != Place::Root => {}
            "" => self.errors.push(FieldError::required(self.at(".type"), where_it_lacks)),
            name if Type::of_name(name).is_some() => {}
            name => {
                let names = ["array", "boolean", "integer", "number", "object", "string"];
                self.unknown(".type", &name.into(), &names);
                if name == "null" {
                    self.forbid(".type", "type cannot be set to null, use nullable as an alternative");
                }
            }
        }
    }

    fn object(&mut self, json: &Map<String, Value>) {
        let has_fields =
            json.get("properties").and_then(Value::as_object).is_some_and(|fields| !fields.is_empty());
        if has_fields && json.contains_key("additionalProperties") {
            self.forbid(".additionalProperties", "additionalProperties and properties are mutual exclusive");
        }
        let kind = json.get("type").cloned().unwrap_or_else(|| "".into());
        if is_set(json, "x-kubernetes-embedded-resource") {
            if !has_fields && !is_set(json, "x-kubernetes-preserve-unknown-fields") {
                let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                              x-kubernetes-preserve-unknown-fields";
                self.errors.push(FieldError::required(self.at(".properties"), detail));
            }
            if kind != "object" {
                self.invalid(".type", &kind, "must be object if x-kubernetes-embedded-resource is true");
            }
        }
        if let Some(map_type) = json.get("x-kubernetes-map-type") {
            if !matches!(map_type.as_str(), Some("atomic" | "granular")) {
                self.unknown(".x-kubernetes-map-type", map_type, &["atomic", "granular"]);
            }
            if kind != "object" {
                self.invalid(".type", &kind, "must be object if x-kubernetes-map-type is specified");
            }
        }
    }

    fn array(&mut self, json: &Map<String, Value>) {
        let kind = json.get("type").cloned().unwrap_or_else(|| "".into());
        if kind == "array" && !json.contains_key("items") {
            self.errors.push(FieldError::required(self.at(".items"), "must be specified"));
        }
        let keys =
            json.get("x-kubernetes-list-map-keys").and_then(Value::as_array).filter(|keys| !keys.is_empty());
        let list_type = json.get("x-kubernetes-list-type");
        match list_type.map(|given| given.as_str().unwrap_or_default()) {
            None | Some("atomic") => {}
            Some("set") => self.set(json),
            Some("map") => self.map(json, keys),
            Some(_) => {
                let given = list_type.expect("it was matched");
                self.unknown(".x-kubernetes-list-type", given, &["atomic", "set", "map"]);
            }
        }
        if list_type.is_some() && kind != "array" {
            self.invalid(".type", &kind, "must be array if x-kubernetes-list-type is specified");
        }
        if keys.is_some() && list_type.and_then(Value::as_str) != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            match list_type {
                None => self.errors.push(FieldError::required(self.at(".x-kubernetes-list-type"), detail)),
                Some(given) => self.invalid(".x-kubernetes-list-type", given, detail),
            }
        }
    }

    fn set(&mut self, json: &Map<String, Value>) {
        let Some(items) = json.get("items") else { return };
        for (kind, key) in [("object", "x-kubernetes-map-type"), ("array", "x-kubernetes-list-type")] {
            if items["type"] == kind && items[key] != "atomic" {
                let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
                self.invalid(&format!(".items.{key}"), &items[key], detail);
            }
        }
    }

    fn map(&mut self, json: &Map<String, Value>, keys: Option<&Vec<Value>>) {
        let Some(items) = json.get("items") else { return };
        if items["type"] != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            self.invalid(".items.type", &items["type"], detail);
            return;
        }
        let Some(keys) = keys else {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(self.at(".x-kubernetes-list-map-keys"), detail));
            return;
        };
        if keys.iter().any(|key| items["properties"].get(key.as_str().unwrap_or_default()).is_none()) {
            let shown = Value::Array(keys.clone());
            self.invalid(
                ".x-kubernetes-list-map-keys",
                &shown,
                "entries must all be names of item properties",
            );
            return;
        }
        for name in keys.iter().filter_map(Value::as_str) {
            let is_required = items["required"].as_array().is_some_and(|names| names.contains(&name.into()));
            if !is_required && items["properties"][name].get("default").is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required \
                              property";
                let path = self.at(&format!(".items.properties[{name}].default"));
                self.errors.push(FieldError::required(path, detail));
            }
        }
    }

    fn extensions(&mut self, json: &Map<String, Value>) {
        if json.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
            self.invalid(".x-kubernetes-preserve-unknown-fields", &false.into(), "must be true or undefined");
        }
    }

    fn at(&self, part: &str) -> String {
        format!("{}{part}", self.path)
    }

    fn forbid(&mut self, part: &str, detail: &str) {
        self.errors.push(FieldError::forbidden(self.at(part), detail));
    }

    fn invalid(&mut self, part: &str, value: &Value, detail: &str) {
        self.errors.push(FieldError::invalid(self.at(part), value, detail));
    }

    fn unknown(&mut self, part: &str, value: &Value, supported: &[&str]) {
        let supported: Vec<String> = supported.iter().map(|name| format!("{name:?}")).collect();
        let detail = format!("supported values: {}", supported.join(", "));
        self.errors.push(FieldError::new(Fault::Unsupported, self.at(part), value, detail));
    }
}

fn is_set(json: &Map<String, Value>, key: &str) -> bool {
    json.get(key).and_then(Value::as_bool).unwrap_or_default()
}
