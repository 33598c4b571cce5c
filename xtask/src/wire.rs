//! `cargo xtask devplane-wire`: how the types of Kubernetes that the embedded control plane knows are written in its
//! binary form, taken from the Go modules that Kubernetes publishes.
//!
//! Two files of each package are read: `generated.proto` says what fields there are, the tags of the Go structs what
//! they are called in JSON and when they are left out there. Only facts: the texts that explain fields stay where they
//! are. Never here: which types those are; how bytes are read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value};

use crate::files::{self, File};
use crate::workspace;

const PATH: &str = "crates/devplane/src/protobuf/messages.json";

/// The schemas of the types, which are read to know which types those are.
const SCHEMAS: &str = "crates/devplane/src/kinds/built_in.json";

/// The options of deletions, which are in the body of a request and are no kind.
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Modules with types, and how names of protobuf packages in them begin.
const MODULES: [(&str, &str); 3] = [
    ("k8s.io/api", "k8s.io.api."),
    ("k8s.io/apimachinery", "k8s.io.apimachinery."),
    ("k8s.io/apiextensions-apiserver", "k8s.io.apiextensions_apiserver."),
];

const SCALARS: [&str; 6] = ["bool", "bytes", "double", "int32", "int64", "string"];

/// Arguments of `devplane-wire`.
#[derive(clap::Args)]
pub struct Args {
    /// Write nothing, and fail when the committed file is not as it would be written.
    #[arg(long)]
    check: bool,
}

/// Reads the modules, and writes or checks the file.
pub fn run(args: &Args) -> anyhow::Result<()> {
    let root = workspace::root();
    let modules = MODULES
        .map(|(module, prefix)| Ok::<_, anyhow::Error>((prefix, module_folder(&root, module)?)))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let schemas = fs::read_to_string(root.join(SCHEMAS)).context("cannot read the schemas")?;
    let schemas = serde_json::from_str(&schemas).context("the schemas are no JSON object")?;
    let messages = reached(&mut Packages { modules, read: BTreeMap::new() }, roots(&schemas))?;
    let files = [File { path: PATH.into(), text: text(&messages) }];
    if args.check { files::check(&files) } else { files::write(&files) }
}

/// Where Go keeps a module that `hack/controlplane` requires.
fn module_folder(root: &Path, module: &str) -> anyhow::Result<PathBuf> {
    let output = Command::new("go")
        .args(["list", "-m", "-f", "{{.Dir}}", module])
        .env("GOWORK", "off")
        .current_dir(root.join("hack/controlplane"))
        .output()
        .context("cannot run `go`")?;
    let folder = String::from_utf8(output.stdout)?;
    ensure!(
        output.status.success() && !folder.trim().is_empty(),
        "Go has no copy of module `{module}`: run `go mod download` in hack/controlplane\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(folder.trim().into())
}

/// The types that requests carry, by the names of their schemas: all kinds but lists, and the options of deletions.
fn roots(schemas: &Map<String, Value>) -> BTreeSet<String> {
    let is_kind = |name: &str, schema: &Value| {
        schema.get("x-kubernetes-group-version-kind").is_some() && !name.ends_with("List")
    };
    let kinds = schemas.iter().filter(|(name, schema)| is_kind(name, schema)).map(|(name, _)| name.clone());
    kinds.chain(iter::once(DELETE_OPTIONS.to_owned())).collect()
}

/// Fields of messages as they are written, by the names of their schemas.
type Messages = BTreeMap<String, Vec<String>>;

/// The roots and everything that they consist of.
fn reached(packages: &mut Packages, roots: BTreeSet<String>) -> anyhow::Result<Messages> {
    let mut open: Vec<String> = roots.into_iter().collect();
    let mut seen = BTreeSet::new();
    let mut found = Messages::new();
    while let Some(schema) = open.pop() {
        if !seen.insert(schema.clone()) {
            continue;
        }
        let full = protobuf_name(&schema)?;
        let (package, name) = full.rsplit_once('.').context("a type is in a package")?;
        let Some(fields) = packages.get(package)?.fields(name).with_context(|| format!("in `{full}`"))?
        else {
            continue;
        };
        open.extend(fields.iter().filter_map(|field| field.type_in(package)).map(|full| schema_name(&full)));
        found.insert(schema, fields.iter().map(Field::text).collect());
    }
    Ok(found)
}

/// `k8s.io.api.core.v1.Pod` of `io.k8s.api.core.v1.Pod`.
fn protobuf_name(schema: &str) -> anyhow::Result<String> {
    let rest = schema.strip_prefix("io.k8s.").with_context(|| format!("`{schema}` is not of Kubernetes"))?;
    Ok(format!("k8s.io.{}", rest.replace('-', "_")))
}

/// `io.k8s.api.core.v1.Pod` of `k8s.io.api.core.v1.Pod`.
fn schema_name(full: &str) -> String {
    format!("io.k8s.{}", full.trim_start_matches("k8s.io.").replace('_', "-"))
}

/// Packages, each read when it is first asked for.
struct Packages {
    modules: BTreeMap<&'static str, PathBuf>,
    read: BTreeMap<String, Package>,
}

impl Packages {
    fn get(&mut self, name: &str) -> anyhow::Result<&Package> {
        if !self.read.contains_key(name) {
            let in_module =
                self.modules.iter().find_map(|(prefix, folder)| Some((name.strip_prefix(prefix)?, folder)));
            let (rest, folder) = in_module.with_context(|| format!("no module has package `{name}`"))?;
            let package = Package::read(&folder.join(rest.replace('.', "/")))?;
            self.read.insert(name.to_owned(), package);
        }
        Ok(&self.read[name])
    }
}

/// What the files of a package say.
#[derive(Default)]
struct Package {
    /// Fields by message.
    messages: BTreeMap<String, Vec<Declared>>,
    /// Fields of Go structs by struct and number.
    tagged: BTreeMap<(String, u32), Tagged>,
    /// Go types that are lists and not structs.
    lists: BTreeSet<String>,
}

/// A field as `generated.proto` declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Declared {
    number: u32,
    shape: Shape,
    /// As it is written there: relative to the package, or from a dot.
    value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    One,
    Many,
    Map,
}

/// A field as the tags of a Go struct describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tagged {
    /// `None` where its own fields are those of the object it is in.
    json: Option<String>,
    /// Whether JSON leaves out an empty text and a zero. A pointer to one is there.
    omits_empty: bool,
}

/// A field as it is written to the file.
struct Field {
    declared: Declared,
    tagged: Tagged,
}

impl Package {
    fn read(folder: &Path) -> anyhow::Result<Package> {
        let mut package = Package::default();
        let proto = folder.join("generated.proto");
        let proto =
            fs::read_to_string(&proto).with_context(|| format!("cannot read `{}`", proto.display()))?;
        package.add_proto(&proto)?;
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if name.ends_with(".go") && !name.ends_with("_test.go") && !name.ends_with(".pb.go") {
                package.add_go(&fs::read_to_string(&path)?);
            }
        }
        Ok(package)
    }

    fn add_proto(&mut self, text: &str) -> anyhow::Result<()> {
        let mut message = None;
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            if let Some(name) = line.strip_prefix("message ").and_then(|rest| rest.strip_suffix(" {")) {
                self.messages.insert(name.into(), Vec::new());
                message = Some(name);
            } else if line == "}" {
                message = None;
            } else if let Some(name) = message
                && let Some(line) = line.strip_suffix(';')
            {
                let field = Declared::parse(line).with_context(|| format!("cannot read `{line}`"))?;
                self.messages.entry(name.into()).or_default().push(field);
            }
        }
        Ok(())
    }

    fn add_go(&mut self, text: &str) {
        let mut owner = None;
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            if let Some((name, kind)) = line.strip_prefix("type ").and_then(|rest| rest.split_once(' ')) {
                owner = (kind == "struct {").then_some(name);
                if kind.starts_with("[]") {
                    self.lists.insert(name.into());
                }
            } else if line == "}" {
                owner = None;
            } else if let Some(owner) = owner
                && let Some((number, tagged)) = Tagged::parse(line)
            {
                self.tagged.insert((owner.into(), number), tagged);
            }
        }
    }

    /// The fields of a message; `None` where JSON has another form than the fields say.
    fn fields(&self, message: &str) -> anyhow::Result<Option<Vec<Field>>> {
        let declared = self.messages.get(message).context("there is no such message")?;
        let with_tags = declared.iter().map(|declared| {
            let tagged = if self.lists.contains(message) {
                Some(Tagged { json: None, omits_empty: false })
            } else {
                self.tagged.get(&(message.to_owned(), declared.number)).cloned()
            };
            (declared.clone(), tagged)
        });
        let with_tags: Vec<_> = with_tags.collect();
        if !with_tags.is_empty() && with_tags.iter().all(|(_, tagged)| tagged.is_none()) {
            return Ok(None);
        }
        let fields = with_tags.into_iter().map(|(declared, tagged)| match tagged {
            Some(tagged) => Ok(Field { declared, tagged }),
            None => bail!("field {} has no name in JSON", declared.number),
        });
        fields.collect::<Result<Vec<Field>, _>>().map(Some)
    }
}

impl Declared {
    /// Reads `optional string name = 1`.
    fn parse(line: &str) -> Option<Declared> {
        let (left, number) = line.split_once(" = ")?;
        let (shape, left) = if let Some(rest) = left.strip_prefix("map<string, ") {
            (Shape::Map, rest.replace('>', ""))
        } else if let Some(rest) = left.strip_prefix("repeated ") {
            (Shape::Many, rest.into())
        } else {
            (Shape::One, left.strip_prefix("optional ")?.into())
        };
        let (value, _) = left.split_once(' ')?;
        Some(Declared { number: number.parse().ok()?, shape, value: value.into() })
    }
}

impl Tagged {
    /// Reads a line such as ``Name *string `json:"name,omitempty" protobuf:"bytes,1,opt,name=name"` ``.
    fn parse(line: &str) -> Option<(u32, Tagged)> {
        let (left, tags) = line.split_once('`')?;
        let tags = tags.split_once('`')?.0;
        let tag = |name: &str| {
            tags.split(' ').find_map(|tag| tag.strip_prefix(name)?.strip_prefix(":\"")?.strip_suffix('"'))
        };
        let number = tag("protobuf")?.split(',').nth(1)?.parse().ok()?;
        let mut words = tag("json")?.split(',');
        let name = words.next()?;
        if name == "-" {
            return None;
        }
        let is_pointer = left.split_whitespace().last()?.starts_with('*');
        let json = (!name.is_empty()).then(|| name.to_owned());
        Some((number, Tagged { json, omits_empty: !is_pointer && words.any(|word| word == "omitempty") }))
    }
}

impl Field {
    /// The message that it holds, if it holds messages.
    fn type_in(&self, package: &str) -> Option<String> {
        let value = &self.declared.value;
        if SCALARS.contains(&&**value) {
            return None;
        }
        Some(value.strip_prefix('.').map_or_else(|| format!("{package}.{value}"), str::to_owned))
    }

    /// `1 name string?`: the number, the name in JSON (`.` where its fields are those of the object it is in) and the type,
    /// after `[]` for a list and `{}` for a map, before `?` where JSON leaves it out when it is empty or zero.
    fn text(&self) -> String {
        let Field { declared: Declared { number, shape, value }, tagged } = self;
        let name = tagged.json.as_deref().unwrap_or(".");
        let is_scalar = SCALARS.contains(&&**value);
        let before = match shape {
            Shape::Many => "[]",
            Shape::Map => "{}",
            Shape::One => "",
        };
        let is_left_out = *shape == Shape::One && is_scalar && tagged.omits_empty;
        let after = if is_left_out { "?" } else { "" };
        let value = value.strip_prefix('.').map_or_else(|| value.clone(), schema_name);
        format!("{number} {name} {before}{value}{after}")
    }
}

/// A line for each message, so that a change of one can be read.
fn text(messages: &Messages) -> String {
    let line = |(name, fields): (&String, &Vec<String>)| {
        format!("{}:{}", Value::from(name.as_str()), Value::from(fields.clone()))
    };
    let lines: Vec<String> = messages.iter().map(line).collect();
    format!("{{\n{}\n}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROTO: &str = "
package k8s.io.api.x.v1;
// A thing.
message Thing {
  // optional string not = 9;
  optional .k8s.io.apimachinery.pkg.apis.meta.v1.ObjectMeta metadata = 1;
  optional string name = 2;
  repeated Part parts = 3;
  map<string, Words> words = 4;
  optional Part part = 5;
  optional int32 count = 6;
}
message Words {
  repeated string items = 1;
}
message Raw {
  optional bytes raw = 1;
}
";
    const GO: &str = r#"
type Thing struct {
	metav1.TypeMeta `json:",inline"`
	// Name string `json:"not" protobuf:"bytes,2,opt,name=not"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Name string `json:"$name,omitempty" proto:"bytes,9,opt,name=name" protobuf:"bytes,2,opt,name=name"`
	Parts []Part `json:"parts" protobuf:"bytes,3,rep,name=parts"`
	Words map[string]Words `json:"words,omitempty" protobuf:"bytes,4,rep,name=words"`
	Part `json:",inline" protobuf:"bytes,5,opt,name=part"`
	Count *int32 `json:"count,omitempty" protobuf:"varint,6,opt,name=count"`
}
type Words []string
type Raw struct {
	Raw []byte `json:"-" protobuf:"bytes,1,opt,name=raw"`
}
"#;

    #[test]
    fn a_field_is_named_by_its_tags_and_typed_by_its_declaration() {
        let mut package = Package::default();
        package.add_proto(PROTO).unwrap();
        package.add_go(GO);
        let text = |message| {
            let fields = package.fields(message).unwrap();
            fields.map(|fields| fields.iter().map(Field::text).collect::<Vec<_>>().join(", "))
        };
        let thing = "1 metadata io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta, 2 $name string?, 3 parts []Part, \
                     4 words {}Words, 5 . Part, 6 count int32";
        assert_eq!(text("Thing").as_deref(), Some(thing));
        assert_eq!(text("Words").as_deref(), Some("1 . []string"));
        assert_eq!(text("Raw"), None, "its form in JSON is not that of its fields");
        assert!(package.fields("Part").is_err());
    }

    #[test]
    fn names_of_schemas_and_messages_belong_together() {
        let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSON";
        let full = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1.JSON";
        assert_eq!(protobuf_name(schema).unwrap(), full);
        assert_eq!(schema_name(full), schema);
    }
}
