//! Paths into objects as CRDs write them for their columns: `.spec.list[?(@.type=="A")].value`. Never here: what is shown
//! of what is found.

use jsonpath_rust::parser::model::JpQuery;
use jsonpath_rust::parser::parse_json_path;
use jsonpath_rust::query::js_path_process;
use serde_json::Value;

/// A path that has been read once and is followed often.
pub(super) enum Path {
    /// Names alone, as almost all paths.
    Plain(Vec<String>),
    Query(Box<JpQuery>),
    /// It cannot be read, and leads nowhere.
    Invalid,
}

impl Path {
    pub(super) fn new(path: &str) -> Self {
        let Some(steps) = steps(path) else { return Path::Invalid };
        if let Some(names) = steps.iter().map(Step::name).collect() {
            return Path::Plain(names);
        }
        let query: String = steps.iter().map(Step::standard).collect();
        parse_json_path(&format!("${query}")).map_or(Path::Invalid, |query| Path::Query(Box::new(query)))
    }

    /// The first value that it leads to.
    pub(super) fn first<'a>(&self, object: &'a Value) -> Option<&'a Value> {
        match self {
            Path::Plain(names) => names.iter().try_fold(object, |value, name| value.as_object()?.get(name)),
            Path::Query(query) => {
                js_path_process(query, object).ok()?.into_iter().next().map(|found| found.val())
            }
            Path::Invalid => None,
        }
    }
}

/// A part of a path.
enum Step {
    Name(String),
    /// `..name`: at any depth.
    Anywhere(String),
    /// `*`.
    All,
    /// What is in brackets, filters with their paths made standard.
    Brackets(String),
}

impl Step {
    fn name(&self) -> Option<String> {
        match self {
            Step::Name(name) => Some(name.clone()),
            Step::Anywhere(_) | Step::All | Step::Brackets(_) => None,
        }
    }

    /// As RFC 9535 writes it.
    fn standard(&self) -> String {
        match self {
            Step::Name(name) => format!("[{}]", quoted(name)),
            Step::Anywhere(name) => format!("..[{}]", quoted(name)),
            Step::All => "[*]".into(),
            Step::Brackets(inner) => format!("[{inner}]"),
        }
    }
}

fn quoted(name: &str) -> String {
    format!("'{}'", name.replace('\\', "\\\\").replace('\'', "\\'"))
}

/// The parts of a path, `None` where it has no end.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim().trim_start_matches('$');
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("..") {
            let (name, after) = name(after);
            steps.push(Step::Anywhere(name));
            rest = after;
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = end_of_brackets(after)?;
            let inner = after[..end].trim();
            match single(inner) {
                Some(path) => steps.extend(self::steps(&format!(".{path}"))?),
                None => steps.push(Step::Brackets(brackets(inner)?)),
            }
            rest = &after[end + 1..];
        } else {
            let (name, after) = name(rest.strip_prefix('.').unwrap_or(rest));
            match name.as_str() {
                "*" => steps.push(Step::All),
                "" if !after.starts_with('[') => return None,
                "" => {}
                _ => steps.push(Step::Name(name)),
            }
            rest = after;
        }
    }
    Some(steps)
}

/// The name that a text begins with, and what follows. A backslash takes the next letter as it is.
fn name(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut letters = text.char_indices();
    while let Some((index, letter)) = letters.next() {
        match letter {
            '.' | '[' => return (name, &text[index..]),
            '\\' => name.extend(letters.next().map(|(_, letter)| letter)),
            _ => name.push(letter),
        }
    }
    (name, "")
}

/// Where the bracket is that closes one before the text.
fn end_of_brackets(text: &str) -> Option<usize> {
    let (mut depth, mut quote) = (0, None);
    for (index, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(index),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// What is in quotes if that is all there is. Kubernetes reads it as a path: a dot that is part of a name is escaped.
fn single(inner: &str) -> Option<&str> {
    inner.strip_prefix('\'')?.strip_suffix('\'').filter(|path| !path.contains('\''))
}

/// What is in brackets, with the paths of a filter made standard.
fn brackets(inner: &str) -> Option<String> {
    let Some(filter) = inner.strip_prefix('?') else { return Some(inner.to_owned()) };
    let mut standard = String::from("?");
    let mut rest = filter;
    while let Some(start) = rest.find(['@', '\'', '"']) {
        let (before, after) = (&rest[..start], &rest[start + 1..]);
        standard.push_str(before);
        let first = &rest[start..=start];
        standard.push_str(first);
        if first == "@" {
            // The path of an item ends where it is compared.
            let end = after.find([' ', '=', '!', '<', '>', ')', '&', '|']).unwrap_or(after.len());
            standard.extend(steps(&after[..end])?.iter().map(Step::standard));
            rest = &after[end..];
        } else {
            let end = after.find(first)? + 1;
            standard.push_str(&after[..end]);
            rest = &after[end..];
        }
    }
    standard.push_str(rest);
    Some(standard)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_leads_where_it_does_in_kubernetes() {
        let object = json!({"spec": {
            "s": "text", "i": 7, "o": {"b": 1}, "l": ["p", "q", "r"], "a-b": "dash", "a.b": "dotted", "a/b": "slash",
            "list": [
                {"type": "A", "v": 1, "n": {"m": "x"}}, {"type": "B", "v": 2, "n": {"m": "y"}},
                {"type": "C", "v": 3, "on": true},
            ],
        }});
        let rows = [
            (".spec.s", json!("text")),
            ("spec.s", json!("text")),
            ("$.spec.s", json!("text")),
            (".spec.o", json!({"b": 1})),
            (".spec.missing", json!(null)),
            (".spec.s.deeper", json!(null)),
            (".spec.a-b", json!("dash")),
            (r".spec.a\.b", json!("dotted")),
            (".spec.a/b", json!("slash")),
            (".spec.l[0]", json!("p")),
            (".spec.l[-1]", json!("r")),
            (".spec.l[7]", json!(null)),
            (".spec.l[*]", json!("p")),
            (".spec.l[1:]", json!("q")),
            (".spec.l[0,2]", json!("p")),
            (".spec.l[:2]", json!("p")),
            (".spec.l.0", json!(null)),
            (".spec.s[0]", json!(null)),
            (".spec.o[0]", json!(null)),
            (r#".spec.list[?(@.type=="B")].v"#, json!(2)),
            (".spec.list[?(@.type=='B')].v", json!(2)),
            (r#".spec.list[?( @.type == "B" )].v"#, json!(2)),
            (r#".spec.list[?(@.type!="A")].type"#, json!("B")),
            (".spec.list[?(@.v>1)].type", json!("B")),
            (".spec.list[?(@.v>=3)].type", json!("C")),
            (".spec.list[?(@.v<2)].type", json!("A")),
            (r#".spec.list[?(@.n.m=="y")].v"#, json!(2)),
            (".spec.list[?(@.on)].v", json!(3)),
            (".spec.list[?(@.on==true)].v", json!(3)),
            (r#".spec.list[?(@.type=="Z")].v"#, json!(null)),
            (".spec.list.type", json!(null)),
            (".spec.list[*].n.m", json!("x")),
            (".spec['s']", json!("text")),
            (r".spec['a\.b']", json!("dotted")),
            (".spec['o.b']", json!(1)),
            (".spec['s','i']", json!("text")),
            (".spec..m", json!("x")),
            ("..m", json!("x")),
            (".spec.l[", json!(null)),
            (".spec..", json!(null)),
            (".spec.list[?(@.type==\"B].v", json!(null)),
        ];
        for (path, expected) in rows {
            let found = Path::new(path).first(&object).cloned().unwrap_or_default();
            assert_eq!(found, expected, "{path}");
        }
    }
}
