//! What names of objects, labels and fields may look like, with the sentences of Kubernetes. Never here: which field
//! must have which name.

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or \
    '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an \
    alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for \
    validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', \
    and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

/// Longest label.
const LABEL: usize = 63;
/// Longest name of dotted labels.
const SUBDOMAIN: usize = 253;

/// What is wrong with a DNS label as of RFC 1123, such as the name of a namespace.
pub(crate) fn label_1123(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL);
    if !is_label(name) {
        wrong.push(LABEL_1123.to_owned());
    }
    wrong
}

/// What is wrong with a DNS subdomain, such as the name of most objects.
pub(crate) fn subdomain_1123(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, SUBDOMAIN);
    if !name.split('.').all(is_label) {
        wrong.push(SUBDOMAIN_1123.to_owned());
    }
    wrong
}

/// What is wrong with a DNS label as of RFC 1035, such as the plural of a resource.
pub(crate) fn label_1035(name: &str) -> Vec<String> {
    let mut wrong = too_long(name, LABEL);
    if !is_label(name) || !name.starts_with(|letter: char| letter.is_ascii_lowercase()) {
        wrong.push(LABEL_1035.to_owned());
    }
    wrong
}

/// What is wrong with a key of labels or annotations.
pub(crate) fn qualified(name: &str) -> Vec<String> {
    let parts: Vec<&str> = name.split('/').collect();
    let (mut wrong, local) = match &*parts {
        [local] => (Vec::new(), *local),
        [prefix, local] => {
            let wrong = if prefix.is_empty() {
                vec!["prefix part must be non-empty".to_owned()]
            } else {
                part("prefix", subdomain_1123(prefix))
            };
            (wrong, *local)
        }
        _ => {
            let tail = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')";
            return vec![format!("a qualified name {QUALIFIED} {tail}")];
        }
    };
    if local.is_empty() {
        wrong.push("name part must be non-empty".to_owned());
    } else {
        wrong.extend(part("name", too_long(local, LABEL)));
    }
    if !is_loose(local) {
        wrong.push(format!("name part {QUALIFIED}"));
    }
    wrong
}

/// What is wrong with the value of a label.
pub(crate) fn label_value(value: &str) -> Vec<String> {
    let mut wrong = too_long(value, LABEL);
    if !value.is_empty() && !is_loose(value) {
        wrong.push(LABEL_VALUE.to_owned());
    }
    wrong
}

fn part(name: &str, wrong: Vec<String>) -> Vec<String> {
    wrong.into_iter().map(|sentence| format!("{name} part {sentence}")).collect()
}

fn too_long(name: &str, most: usize) -> Vec<String> {
    if name.len() > most { vec![format!("must be no more than {most} characters")] } else { Vec::new() }
}

fn is_label(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !name.is_empty() && name.bytes().all(is_inner) && !name.starts_with('-') && !name.ends_with('-')
}

fn is_loose(name: &str) -> bool {
    let is_end = |letter: char| letter.is_ascii_alphanumeric();
    let is_inner = |letter: char| letter.is_ascii_alphanumeric() || "-_.".contains(letter);
    name.starts_with(is_end) && name.ends_with(is_end) && name.chars().all(is_inner)
}
