//! What functions rules may call: those that Kubernetes has and we have too. Never here: what they do.

use super::types::Ty;

/// Name, type of the receiver (empty for functions of none), types of arguments, type of the result. Letters stand for any
/// type, the same one in one row.
type Row = (&'static str, &'static str, &'static str, &'static str);

const ROWS: &[Row] = &[
    ("_==_", "", "A A", "bool"),
    ("_!=_", "", "A A", "bool"),
    ("_+_", "", "int int", "int"),
    ("_+_", "", "uint uint", "uint"),
    ("_+_", "", "double double", "double"),
    ("_+_", "", "string string", "string"),
    ("_+_", "", "bytes bytes", "bytes"),
    ("_+_", "", "list(A) list(A)", "list(A)"),
    ("_+_", "", "timestamp duration", "timestamp"),
    ("_+_", "", "duration timestamp", "timestamp"),
    ("_+_", "", "duration duration", "duration"),
    ("_-_", "", "int int", "int"),
    ("_-_", "", "uint uint", "uint"),
    ("_-_", "", "double double", "double"),
    ("_-_", "", "timestamp timestamp", "duration"),
    ("_-_", "", "timestamp duration", "timestamp"),
    ("_-_", "", "duration duration", "duration"),
    ("_*_", "", "int int", "int"),
    ("_*_", "", "uint uint", "uint"),
    ("_*_", "", "double double", "double"),
    ("_/_", "", "int int", "int"),
    ("_/_", "", "uint uint", "uint"),
    ("_/_", "", "double double", "double"),
    ("_%_", "", "int int", "int"),
    ("_%_", "", "uint uint", "uint"),
    ("-_", "", "int", "int"),
    ("-_", "", "double", "double"),
    ("!_", "", "bool", "bool"),
    ("_?_:_", "", "bool A A", "A"),
    ("_[_]", "", "list(A) int", "A"),
    ("_[_]", "", "map(A,B) A", "B"),
    ("_[?_]", "", "list(A) int", "optional(A)"),
    ("_[?_]", "", "map(A,B) A", "optional(B)"),
    ("@in", "", "A list(A)", "bool"),
    ("@in", "", "A map(A,B)", "bool"),
    ("@not_strictly_false", "", "bool", "bool"),
    // Conversions.
    ("bool", "", "bool", "bool"),
    ("bool", "", "string", "bool"),
    ("bytes", "", "bytes", "bytes"),
    ("bytes", "", "string", "bytes"),
    ("double", "", "double", "double"),
    ("double", "", "int", "double"),
    ("double", "", "string", "double"),
    ("double", "", "uint", "double"),
    ("duration", "", "duration", "duration"),
    ("duration", "", "string", "duration"),
    ("dyn", "", "A", "dyn"),
    ("int", "", "double", "int"),
    ("int", "", "int", "int"),
    ("int", "", "string", "int"),
    ("int", "", "timestamp", "int"),
    ("int", "", "uint", "int"),
    ("string", "", "bool", "string"),
    ("string", "", "bytes", "string"),
    ("string", "", "double", "string"),
    ("string", "", "duration", "string"),
    ("string", "", "int", "string"),
    ("string", "", "net.CIDR", "string"),
    ("string", "", "net.IP", "string"),
    ("string", "", "string", "string"),
    ("string", "", "timestamp", "string"),
    ("string", "", "uint", "string"),
    ("timestamp", "", "string", "timestamp"),
    ("timestamp", "", "timestamp", "timestamp"),
    ("type", "", "A", "type"),
    ("uint", "", "double", "uint"),
    ("uint", "", "int", "uint"),
    ("uint", "", "string", "uint"),
    ("uint", "", "uint", "uint"),
    // Text and lists.
    ("size", "", "string", "int"),
    ("size", "", "bytes", "int"),
    ("size", "", "list(A)", "int"),
    ("size", "", "map(A,B)", "int"),
    ("size", "string", "", "int"),
    ("size", "bytes", "", "int"),
    ("size", "list(A)", "", "int"),
    ("size", "map(A,B)", "", "int"),
    ("charAt", "string", "int", "string"),
    ("contains", "string", "string", "bool"),
    ("endsWith", "string", "string", "bool"),
    ("find", "string", "string", "string"),
    ("findAll", "string", "string", "list(string)"),
    ("findAll", "string", "string int", "list(string)"),
    ("format", "string", "list(A)", "string"),
    ("indexOf", "string", "string", "int"),
    ("indexOf", "string", "string int", "int"),
    ("indexOf", "list(A)", "A", "int"),
    ("isSorted", "list(int)", "", "bool"),
    ("isSorted", "list(double)", "", "bool"),
    ("isSorted", "list(string)", "", "bool"),
    ("isSorted", "list(bool)", "", "bool"),
    ("isSorted", "list(timestamp)", "", "bool"),
    ("isSorted", "list(duration)", "", "bool"),
    ("join", "list(string)", "", "string"),
    ("join", "list(string)", "string", "string"),
    ("lastIndexOf", "string", "string", "int"),
    ("lastIndexOf", "string", "string int", "int"),
    ("lastIndexOf", "list(A)", "A", "int"),
    ("lists.range", "", "int", "list(int)"),
    ("lowerAscii", "string", "", "string"),
    ("matches", "string", "string", "bool"),
    ("matches", "", "string string", "bool"),
    ("max", "list(int)", "", "int"),
    ("max", "list(double)", "", "double"),
    ("max", "list(string)", "", "string"),
    ("max", "list(timestamp)", "", "timestamp"),
    ("max", "list(duration)", "", "duration"),
    ("min", "list(int)", "", "int"),
    ("min", "list(double)", "", "double"),
    ("min", "list(string)", "", "string"),
    ("min", "list(timestamp)", "", "timestamp"),
    ("min", "list(duration)", "", "duration"),
    ("replace", "string", "string string", "string"),
    ("replace", "string", "string string int", "string"),
    ("slice", "list(A)", "int int", "list(A)"),
    ("distinct", "list(A)", "", "list(A)"),
    ("reverse", "list(A)", "", "list(A)"),
    ("sort", "list(int)", "", "list(int)"),
    ("sort", "list(double)", "", "list(double)"),
    ("sort", "list(string)", "", "list(string)"),
    ("sort", "list(bool)", "", "list(bool)"),
    ("@sortByAssociatedKeys", "list(A)", "list(B)", "list(A)"),
    ("split", "string", "string", "list(string)"),
    ("split", "string", "string int", "list(string)"),
    ("startsWith", "string", "string", "bool"),
    ("strings.quote", "", "string", "string"),
    ("substring", "string", "int", "string"),
    ("substring", "string", "int int", "string"),
    ("sum", "list(int)", "", "int"),
    ("sum", "list(double)", "", "double"),
    ("trim", "string", "", "string"),
    ("upperAscii", "string", "", "string"),
    ("sets.contains", "", "list(A) list(A)", "bool"),
    ("sets.equivalent", "", "list(A) list(A)", "bool"),
    ("sets.intersects", "", "list(A) list(A)", "bool"),
    // Values that may be missing.
    ("hasValue", "optional(A)", "", "bool"),
    ("optional.none", "", "", "optional(A)"),
    ("optional.of", "", "A", "optional(A)"),
    ("optional.ofNonZeroValue", "", "A", "optional(A)"),
    ("or", "optional(A)", "optional(A)", "optional(A)"),
    ("orValue", "optional(A)", "A", "A"),
    ("value", "optional(A)", "", "A"),
    // Time.
    ("getDate", "timestamp", "", "int"),
    ("getDayOfMonth", "timestamp", "", "int"),
    ("getDayOfWeek", "timestamp", "", "int"),
    ("getDayOfYear", "timestamp", "", "int"),
    ("getFullYear", "timestamp", "", "int"),
    ("getHours", "timestamp", "", "int"),
    ("getHours", "duration", "", "int"),
    ("getMinutes", "timestamp", "", "int"),
    ("getMinutes", "duration", "", "int"),
    ("getMonth", "timestamp", "", "int"),
    ("getSeconds", "timestamp", "", "int"),
    ("getSeconds", "duration", "", "int"),
    // Addresses.
    ("cidr", "", "string", "net.CIDR"),
    ("containsCIDR", "net.CIDR", "net.CIDR", "bool"),
    ("containsCIDR", "net.CIDR", "string", "bool"),
    ("containsIP", "net.CIDR", "net.IP", "bool"),
    ("containsIP", "net.CIDR", "string", "bool"),
    ("family", "net.IP", "", "int"),
    ("getEscapedPath", "kubernetes.URL", "", "string"),
    ("getHost", "kubernetes.URL", "", "string"),
    ("getHostname", "kubernetes.URL", "", "string"),
    ("getPort", "kubernetes.URL", "", "string"),
    ("getScheme", "kubernetes.URL", "", "string"),
    ("ip", "", "string", "net.IP"),
    ("ip", "net.CIDR", "", "net.IP"),
    ("ip.isCanonical", "", "string", "bool"),
    ("isCIDR", "", "string", "bool"),
    ("isGlobalUnicast", "net.IP", "", "bool"),
    ("isIP", "", "string", "bool"),
    ("isLinkLocalMulticast", "net.IP", "", "bool"),
    ("isLinkLocalUnicast", "net.IP", "", "bool"),
    ("isLoopback", "net.IP", "", "bool"),
    ("isUnspecified", "net.IP", "", "bool"),
    ("isURL", "", "string", "bool"),
    ("masked", "net.CIDR", "", "net.CIDR"),
    ("prefixLength", "net.CIDR", "", "int"),
    ("url", "", "string", "kubernetes.URL"),
    // Formats by name.
    ("format.dns1035Label", "", "", "kubernetes.NamedFormat"),
    ("format.dns1123Label", "", "", "kubernetes.NamedFormat"),
    ("format.dns1123Subdomain", "", "", "kubernetes.NamedFormat"),
    ("format.labelValue", "", "", "kubernetes.NamedFormat"),
    ("format.qualifiedName", "", "", "kubernetes.NamedFormat"),
    ("validate", "kubernetes.NamedFormat", "string", "optional(list(string))"),
];

/// Types that are ordered; numbers are among each other.
const ORDERED: [&str; 5] = ["bool", "string", "bytes", "timestamp", "duration"];
const NUMBERS: [&str; 3] = ["int", "uint", "double"];

/// One way to call a function.
pub(super) struct Signature<'s> {
    pub(super) receiver: Option<Ty<'s>>,
    pub(super) arguments: Vec<Ty<'s>>,
    pub(super) result: Ty<'s>,
}

/// All ways to call a function; none if there is no such.
pub(super) fn signatures<'s>(name: &str) -> Vec<Signature<'s>> {
    if matches!(name, "_<_" | "_<=_" | "_>_" | "_>=_") {
        return comparisons();
    }
    let rows = ROWS.iter().filter(|(known, ..)| *known == name);
    rows.map(|(_, receiver, arguments, result)| Signature {
        receiver: if receiver.is_empty() { None } else { Some(Ty::of_text(receiver)) },
        arguments: arguments.split_whitespace().map(Ty::of_text).collect(),
        result: Ty::of_text(result),
    })
    .collect()
}

/// Whether a name with a dot is a function, and no field of something.
pub(super) fn is_qualified(name: &str) -> bool {
    ROWS.iter().any(|(known, receiver, ..)| *known == name && receiver.is_empty())
}

fn comparisons<'s>() -> Vec<Signature<'s>> {
    let same = ORDERED.iter().map(|name| (*name, *name));
    let numbers = NUMBERS.iter().flat_map(|one| NUMBERS.iter().map(|other| (*one, *other)));
    let signature = |(one, other)| Signature {
        receiver: None,
        arguments: vec![Ty::of_text(one), Ty::of_text(other)],
        result: Ty::Bool,
    };
    same.chain(numbers).map(signature).collect()
}
