//! What is wrong with a CRD, in the words of Kubernetes. Never here: what is wrong with objects.

use std::sync::Arc;

use serde_json::Value;

use super::{APPROVAL, Approval, Definition, approval};
use crate::schema::{Schema, names};
use crate::status::{Fault, FieldError};

/// Where that is explained.
const SEE: &str = "see https://github.com/kubernetes/enhancements/pull/1111";

/// Types of columns, as the message lists them.
const COLUMN_TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];

/// Formats of columns.
const COLUMN_FORMATS: [&str; 8] =
    ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

impl<'a> Definition<'a> {
    /// The schema of each version, or what is wrong with the CRD.
    pub(super) fn check(&self) -> Result<Vec<Option<Arc<Schema>>>, Vec<FieldError>> {
        let mut errors = Vec::new();
        self.identity(&mut errors);
        self.versions(&mut errors);
        self.names(&mut errors);
        let schemas = self.schemas(&mut errors);
        self.conversion(&mut errors);
        self.unknown_fields(&mut errors);
        self.stored(&mut errors);
        if errors.is_empty() { Ok(schemas) } else { Err(errors) }
    }

    fn identity(&self, errors: &mut Vec<FieldError>) {
        let Definition { crd, group, plural, .. } = *self;
        let spec = &crd["spec"];
        let name = &crd["metadata"]["name"];
        if name.as_str() != Some(&*format!("{plural}.{group}")) {
            let detail = "must be spec.names.plural+\".\"+spec.group";
            errors.push(FieldError::invalid("metadata.name", name, detail));
        }
        if group.is_empty() {
            errors.push(FieldError::required("spec.group", ""));
        } else {
            invalid(errors, "spec.group", group, names::subdomain_1123(group));
            if !group.contains('.') {
                invalid(
                    errors,
                    "spec.group",
                    group,
                    vec!["should be a domain with at least one dot".to_owned()],
                );
            }
        }
        let path = || format!("metadata.annotations[{APPROVAL}]");
        match approval(crd) {
            Some(Approval::Missing) => {
                let detail = format!("protected groups must have approval annotation \"{APPROVAL}\", {SEE}");
                errors.push(FieldError::required(path(), detail));
            }
            Some(Approval::Unclear(text)) => {
                let detail = format!(
                    "protected groups must have approval annotation \"{APPROVAL}\" with either a URL or a reason \
                     starting with \"unapproved\", {SEE}"
                );
                errors.push(FieldError::invalid(path(), &text.into(), detail));
            }
            Some(Approval::Given(_) | Approval::Waived(_)) | None => {}
        }
        match spec["scope"].as_str().unwrap_or_default() {
            "" => errors.push(FieldError::required("spec.scope", "")),
            "Namespaced" | "Cluster" => {}
            _ => errors.push(unsupported("spec.scope", &spec["scope"], &["Cluster", "Namespaced"])),
        }
    }

    fn versions(&self, errors: &mut Vec<FieldError>) {
        let name = |version: &'a Value| version["name"].as_str().unwrap_or_default();
        for (index, version) in self.versions.iter().enumerate() {
            let path = format!("spec.versions[{index}]");
            let wrong = names::label_1035(name(version));
            invalid(errors, &format!("{path}.name"), name(version), wrong.clone());
            if index == 0 {
                invalid(errors, "spec.version", name(version), wrong);
            }
            let warning = &version["deprecationWarning"];
            if !warning.is_null() && version["deprecated"] != true {
                let detail = "can only be set for deprecated versions";
                errors.push(FieldError::invalid(format!("{path}.deprecationWarning"), warning, detail));
            }
        }
        let doubles = self.versions.iter().enumerate();
        let has_doubles = doubles
            .clone()
            .any(|(index, version)| self.versions[..index].iter().any(|other| name(other) == name(version)));
        let storing = self.versions.iter().filter(|version| version["storage"] == true).count();
        for (is_wrong, detail) in [
            (has_doubles, "must contain unique version names"),
            (storing != 1, "must have exactly one version marked as storage version"),
        ] {
            if is_wrong {
                let (path, value) = ("spec.versions".to_owned(), shown(self.versions));
                errors.push(FieldError { fault: Fault::Invalid, path, value, detail: detail.to_owned() });
            }
        }
    }

    fn names(&self, errors: &mut Vec<FieldError>) {
        let given = &self.crd["spec"]["names"];
        let label = |errors: &mut Vec<FieldError>, key: &str, name: &str| {
            invalid(errors, &format!("spec.names.{key}"), name, names::label_1035(name));
        };
        let mixed = |errors: &mut Vec<FieldError>, key: &str, name: &str| {
            let wrong = names::label_1035(&name.to_lowercase());
            let wrong = wrong
                .into_iter()
                .map(|why| format!("may have mixed case, but should otherwise match: {why}"));
            invalid(errors, &format!("spec.names.{key}"), name, wrong.collect());
        };
        match self.plural {
            "" => errors.push(FieldError::required("spec.names.plural", "")),
            plural => label(errors, "plural", plural),
        }
        if let Some(singular) = given["singular"].as_str().filter(|name| !name.is_empty()) {
            label(errors, "singular", singular);
        }
        match self.kind {
            "" => errors.push(FieldError::required("spec.names.kind", "")),
            kind => mixed(errors, "kind", kind),
        }
        for key in ["shortNames", "categories"] {
            for (index, name) in given[key].as_array().into_iter().flatten().enumerate() {
                label(errors, &format!("{key}[{index}]"), name.as_str().unwrap_or_default());
            }
        }
        if let Some(list_kind) = given["listKind"].as_str().filter(|name| !name.is_empty()) {
            mixed(errors, "listKind", list_kind);
            if list_kind == self.kind {
                let detail = "kind and listKind may not be the same";
                errors.push(FieldError::invalid("spec.names.listKind", &given["listKind"], detail));
            }
        }
    }

    fn conversion(&self, errors: &mut Vec<FieldError>) {
        let conversion = &self.crd["spec"]["conversion"];
        let (webhook, reviews) = (&conversion["webhook"], "spec.conversion.conversionReviewVersions");
        let has_reviews = webhook["conversionReviewVersions"].as_array().is_some_and(|list| !list.is_empty());
        match conversion["strategy"].as_str() {
            Some("Webhook") => {
                if !webhook["clientConfig"].is_object() {
                    let detail = "required when strategy is set to Webhook";
                    errors.push(FieldError::required("spec.conversion.webhookClientConfig", detail));
                }
                if !has_reviews {
                    errors.push(FieldError::required(reviews, ""));
                }
            }
            Some("None") | None => {
                let detail = "should not be set when strategy is not set to Webhook";
                if webhook["clientConfig"].is_object() {
                    errors.push(FieldError::forbidden("spec.conversion.webhookClientConfig", detail));
                }
                if has_reviews {
                    errors.push(FieldError::forbidden(reviews, detail));
                }
            }
            Some(_) => {
                let path = "spec.conversion.strategy";
                errors.push(unsupported(path, &conversion["strategy"], &["None", "Webhook"]));
            }
        }
    }

    fn unknown_fields(&self, errors: &mut Vec<FieldError>) {
        if self.crd["spec"]["preserveUnknownFields"] == true {
            let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema \
                          instead";
            errors.push(FieldError::invalid("spec.preserveUnknownFields", &true.into(), detail));
        }
    }

    /// The version that stores must be among those that ever did. A new CRD has stored nothing yet, and gets the first.
    fn stored(&self, errors: &mut Vec<FieldError>) {
        let storing = |version: &&Value| version["storage"] == true;
        let names: Vec<&str> =
            self.versions.iter().filter(storing).filter_map(|version| version["name"].as_str()).collect();
        let given = self.crd["status"]["storedVersions"].as_array().filter(|list| !list.is_empty());
        let stored = match given {
            Some(stored) => stored.clone(),
            None => names.first().map(|name| Value::from(*name)).into_iter().collect(),
        };
        if stored.is_empty() {
            let detail = "must have at least one stored version";
            errors.push(FieldError::invalid("status.storedVersions", &Value::Null, detail));
        }
        for name in names.iter().filter(|_| !stored.is_empty()) {
            if !stored.contains(&Value::from(*name)) {
                let (value, detail) =
                    (Value::Array(stored.clone()), format!("must have the storage version {name}"));
                errors.push(FieldError::invalid("status.storedVersions", &value, detail));
            }
        }
        let is_there = |name: &Value| self.versions.iter().any(|version| version["name"] == *name);
        for (at, name) in stored.iter().enumerate().filter(|(_, name)| !is_there(name)) {
            let text = name.as_str().unwrap_or_default();
            let detail = format!(
                "missing from spec.versions; {text} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {text} and removes \
                 {text} from status.storedVersions"
            );
            errors.push(FieldError::invalid(format!("status.storedVersions[{at}]"), name, detail));
        }
    }

    /// The schema of each version, with what is wrong with it, its columns and its subresources. What is the same in all
    /// versions is looked at once, and complained about as if it stood outside of versions.
    fn schemas(&self, errors: &mut Vec<FieldError>) -> Vec<Option<Arc<Schema>>> {
        let Some(first) = self.versions.first() else { return Vec::new() };
        let is_common = |key: &str| self.versions.iter().all(|version| version[key] == first[key]);
        let commons = [is_common("schema"), is_common("subresources"), is_common("additionalPrinterColumns")];
        let mut schemas: Vec<Option<Arc<Schema>>> = Vec::new();
        for (index, version) in self.versions.iter().enumerate() {
            let path = format!("spec.versions[{index}]");
            let of = |common: bool| if common { "spec" } else { &path };
            let again = |common: bool| common && index > 0;
            if again(commons[0]) {
                schemas.push(schemas[0].clone());
            } else {
                let at = if commons[0] { "spec.validation".to_owned() } else { format!("{path}.schema") };
                schemas.push(schema(version, &path, &at, errors));
            }
            if !again(commons[1]) {
                check_scale(&version["subresources"]["scale"], of(commons[1]), errors);
            }
            if !again(commons[2]) {
                check_columns(&version["additionalPrinterColumns"], of(commons[2]), errors);
            }
        }
        schemas
    }
}

fn schema(version: &Value, path: &str, at: &str, errors: &mut Vec<FieldError>) -> Option<Arc<Schema>> {
    let given = &version["schema"]["openAPIV3Schema"];
    if given.is_null() {
        errors.push(FieldError::required(format!("{path}.schema.openAPIV3Schema"), ""));
        return None;
    }
    match Schema::of_crd(given, &format!("{at}.openAPIV3Schema")) {
        Ok(schema) => Some(Arc::new(schema)),
        Err(wrong) => {
            errors.extend(wrong);
            None
        }
    }
}

fn check_scale(scale: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let Some(scale) = scale.as_object() else { return };
    for (key, roots, place) in [
        ("specReplicasPath", &["spec"][..], ".spec"),
        ("statusReplicasPath", &["status"], ".status"),
        ("labelSelectorPath", &["spec", "status"], "either .spec or .status"),
    ] {
        let path = format!("{path}.subresources.scale.{key}");
        match scale.get(key).and_then(Value::as_str).unwrap_or_default() {
            "" if key == "labelSelectorPath" => {}
            "" => errors.push(FieldError::required(path, "")),
            given if !is_simple(given) => {
                invalid(errors, &path, given, vec!["must be a simple json path starting with .".to_owned()]);
            }
            given if !roots.iter().any(|root| given.starts_with(&format!(".{root}."))) => {
                invalid(errors, &path, given, vec![format!("should be a json path under {place}")]);
            }
            _ => {}
        }
    }
}

fn check_columns(columns: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, column) in columns.as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.additionalPrinterColumns[{index}]");
        let text = |key: &str| column[key].as_str().unwrap_or_default();
        if text("name").is_empty() {
            errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        let types = format!("must be one of {}", COLUMN_TYPES.join(","));
        match text("type") {
            "" => errors.push(FieldError::required(format!("{path}.type"), types)),
            kind if COLUMN_TYPES.contains(&kind) => {}
            kind => invalid(errors, &format!("{path}.type"), kind, vec![types]),
        }
        let format = text("format");
        if !format.is_empty() && !COLUMN_FORMATS.contains(&format) {
            let formats = std::format!("must be one of {}", COLUMN_FORMATS.join(","));
            invalid(errors, &std::format!("{path}.format"), format, vec![formats]);
        }
        match text("jsonPath") {
            "" => errors.push(FieldError::required(std::format!("{path}.JSONPath"), "")),
            given if is_simple(given) => {}
            given => {
                let detail = "must be a simple json path starting with .".to_owned();
                invalid(errors, &std::format!("{path}.JSONPath"), given, vec![detail]);
            }
        }
    }
}

fn is_simple(path: &str) -> bool {
    path.starts_with('.')
}

/// Versions as Kubernetes shows them: without what is the same in all.
fn shown(versions: &[Value]) -> String {
    let flag = |value: &Value| value.as_bool().unwrap_or_default();
    let one = |version: &Value| {
        let (served, storage, deprecated) =
            (flag(&version["served"]), flag(&version["storage"]), flag(&version["deprecated"]));
        format!(
            "{{\"Name\":{},\"Served\":{served},\"Storage\":{storage},\"Deprecated\":{deprecated},\
             \"DeprecationWarning\":{},\"Schema\":null,\"Subresources\":null,\"AdditionalPrinterColumns\":null,\
             \"SelectableFields\":null}}",
            version["name"], version["deprecationWarning"],
        )
    };
    let all: Vec<String> = versions.iter().map(one).collect();
    format!("[{}]", all.join(","))
}

fn invalid(errors: &mut Vec<FieldError>, path: &str, value: &str, wrong: Vec<String>) {
    errors.extend(wrong.into_iter().map(|detail| FieldError::invalid(path, &value.into(), detail)));
}

fn unsupported(path: &str, value: &Value, supported: &[&str]) -> FieldError {
    let supported: Vec<String> = supported.iter().map(|name| format!("{name:?}")).collect();
    FieldError::new(Fault::Unsupported, path, value, format!("supported values: {}", supported.join(", ")))
}
