//! Formats of strings, as Kubernetes checks them, which is not always as their standards say. Never here: messages.

use std::net::{Ipv4Addr, Ipv6Addr};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// Formats of strings that Kubernetes knows. Those that are rarely meant are not checked here.
const OF_STRINGS: [&str; 27] = [
    "bsonobjectid",
    "byte",
    "cidr",
    "creditcard",
    "date",
    "date-time",
    "datetime",
    "duration",
    "email",
    "hexcolor",
    "hostname",
    "ipv4",
    "ipv6",
    "isbn",
    "isbn10",
    "isbn13",
    "k8s-long-name",
    "k8s-short-name",
    "mac",
    "password",
    "rgbcolor",
    "ssn",
    "uri",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
];

/// Formats in the schema of a CRD that mean nothing where they are.
pub(crate) fn unknown(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            if let Some(format) = fields.get("format").and_then(Value::as_str) {
                let is_known = match fields.get("type").and_then(Value::as_str) {
                    Some("integer") => matches!(format, "int32" | "int64"),
                    Some("number") => matches!(format, "float" | "double"),
                    Some("string") | None => OF_STRINGS.contains(&format),
                    Some(_) => false,
                };
                if !is_known && !format.is_empty() {
                    found.push(format.to_owned());
                }
            }
            fields.values().for_each(|child| unknown(child, found));
        }
        Value::Array(items) => items.iter().for_each(|item| unknown(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a string has a format. What is not known allows everything.
pub(super) fn matches(format: &str, text: &str) -> bool {
    match format {
        "byte" => !text.is_empty() && STANDARD.decode(text).is_ok(),
        "cidr" => is_cidr(text),
        "date" => is_date(text),
        "date-time" | "datetime" => is_date_time(text),
        "duration" => is_duration(text),
        "email" => is_email(text),
        "hexcolor" => is_hex_color(text),
        "hostname" => is_hostname(text),
        "ipv4" => is_ipv4(text),
        "ipv6" => text.contains(':') && text.parse::<Ipv6Addr>().is_ok(),
        "k8s-short-name" => is_dns_label(text),
        "k8s-long-name" => text.len() <= 253 && text.split('.').all(is_dns_label_of_any_length),
        "mac" => is_mac(text),
        "uri" => is_uri(text),
        "uuid" => uuid_version(text).is_some(),
        "uuid3" => uuid_version(text) == Some('3'),
        "uuid4" => uuid_version(text) == Some('4'),
        "uuid5" => uuid_version(text) == Some('5'),
        _ => true,
    }
}

/// Leading zeros are let through, as ever.
fn is_ipv4(text: &str) -> bool {
    let plain: Vec<&str> = text
        .split('.')
        .map(|part| match part.trim_start_matches('0') {
            "" if !part.is_empty() => "0",
            rest => rest,
        })
        .collect();
    plain.join(".").parse::<Ipv4Addr>().is_ok()
}

fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    if bits.is_empty() || !bits.bytes().all(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let most = if address.contains(':') {
        address.parse::<Ipv6Addr>().map(|_| 128)
    } else {
        address.parse::<Ipv4Addr>().map(|_| 32)
    };
    most.is_ok_and(|most| bits.parse::<u32>().is_ok_and(|bits| bits <= most))
}

pub(super) fn is_date(text: &str) -> bool {
    text.len() == 10 && text.is_ascii() && text.parse::<jiff::civil::Date>().is_ok()
}

/// RFC 3339 with a `T` and a zone.
pub(super) fn is_date_time(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() >= 20
        && matches!(bytes[10], b'T' | b't')
        && text.to_uppercase().parse::<jiff::Timestamp>().is_ok()
}

/// What Go takes for a duration, or numbers with a word for the unit behind each, among whatever else.
fn is_duration(text: &str) -> bool {
    if is_go_duration(text) {
        return true;
    }
    let mut parts = 0;
    let mut rest = text;
    while let Some(start) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let number = &rest[start..];
        let behind = number.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start();
        let end = behind.find(|letter: char| !letter.is_alphabetic()).unwrap_or(behind.len());
        let unit = &behind[..end];
        if !unit.is_empty() {
            if !is_unit_word(&unit.to_lowercase()) {
                return false;
            }
            parts += 1;
        }
        rest = &behind[end..];
    }
    parts > 0
}

fn is_unit_word(unit: &str) -> bool {
    let singular = if unit.len() > 2 { unit.strip_suffix('s').unwrap_or(unit) } else { unit };
    matches!(
        singular,
        "ns" | "nano"
            | "nanosecond"
            | "us"
            | "µs"
            | "μs"
            | "micro"
            | "microsecond"
            | "ms"
            | "milli"
            | "millisecond"
            | "s"
            | "sec"
            | "second"
            | "m"
            | "min"
            | "minute"
            | "h"
            | "hr"
            | "hour"
            | "d"
            | "day"
            | "w"
            | "wk"
            | "week"
    )
}

/// `1h30m`, `-1.5s`, `0`.
pub(super) fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    while !rest.is_empty() {
        let behind = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let number = &rest[..rest.len() - behind.len()];
        let end =
            behind.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(behind.len());
        let unit = &behind[..end];
        let is_number = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
        if !is_number || !matches!(unit, "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h") {
            return false;
        }
        rest = &behind[end..];
    }
    true
}

fn is_email(text: &str) -> bool {
    let address = match text.split_once('<') {
        Some((_, rest)) => rest.strip_suffix('>').unwrap_or_default(),
        None => text,
    };
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.contains(|letter: char| letter.is_whitespace() || "<>,;:\"()[]@".contains(letter))
    };
    address.rsplit_once('@').is_some_and(|(user, host)| is_part(user) && is_part(host))
}

fn is_hex_color(text: &str) -> bool {
    let digits = text.strip_prefix('#').unwrap_or(text);
    matches!(digits.len(), 3 | 6) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// One label, which may have a hyphen in second place only; or labels that end in one of two letters or more.
fn is_hostname(text: &str) -> bool {
    if text.len() > 255 {
        return false;
    }
    let is_letter = |letter: char| letter.is_alphanumeric();
    let Some((front, last)) = text.rsplit_once('.') else {
        let mut letters = text.chars();
        let starts = letters.next().is_some_and(is_letter);
        let rest = letters.as_str();
        let rest = rest.strip_prefix('-').unwrap_or(rest);
        return starts && rest.chars().count() <= 62 && rest.chars().all(is_letter);
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.chars().count() <= 63
            && label.chars().all(|letter| is_letter(letter) || letter == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    front.split('.').all(is_label)
        && (2..=63).contains(&last.chars().count())
        && last.chars().all(char::is_alphabetic)
}

fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_label_of_any_length(text)
}

fn is_dns_label_of_any_length(text: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_inner) && !text.starts_with('-') && !text.ends_with('-')
}

/// Pairs of digits with a colon, a hyphen or nothing between, or fours with a dot.
fn is_mac(text: &str) -> bool {
    let digits: String = text.chars().filter(|letter| !":-.".contains(*letter)).collect();
    if !matches!(digits.len(), 12 | 16) || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return false;
    }
    let group = |separator: char, size: usize| text.split(separator).all(|part| part.len() == size);
    group(':', 2) || group('-', 2) || group('.', 4) || text.len() == digits.len()
}

/// Anything that a request could be made with: a scheme and something behind it, or an absolute path.
fn is_uri(text: &str) -> bool {
    if text.is_empty()
        || text.contains(|letter: char| letter.is_ascii_control() || letter == ' ' && !text.starts_with('/'))
    {
        return false;
    }
    if text.starts_with('/') {
        return true;
    }
    let Some((scheme, rest)) = text.split_once(':') else { return false };
    let is_scheme = scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter));
    is_scheme && has_whole_host(rest)
}

/// An address in brackets must be closed, and a port be a number.
fn has_whole_host(rest: &str) -> bool {
    let Some(authority) = rest.strip_prefix("//") else { return true };
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = if let Some(address) = host.strip_prefix('[') {
        let Some((_, behind)) = address.split_once(']') else { return false };
        behind
    } else {
        host.find(':').map_or("", |at| &host[at..])
    };
    let digits = port.strip_prefix(':').unwrap_or(port);
    digits.bytes().all(|byte| byte.is_ascii_digit()) && (port.is_empty() || port.starts_with(':'))
}

/// The version digit of a UUID, with hyphens or without.
fn uuid_version(text: &str) -> Option<char> {
    let digits: String = text.chars().filter(|letter| *letter != '-').collect();
    let is_uuid = digits.len() == 32
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && (text.len() == 32 || text.split('-').map(str::len).eq([8, 4, 4, 4, 12]));
    if is_uuid { digits.chars().nth(12) } else { None }
}

#[cfg(test)]
mod tests {
    use super::matches;

    /// Format, what has it, and what has not. Each row was asked of a real API server.
    const ROWS: &[(&str, &[&str], &[&str])] = &[
        (
            "duration",
            &[
                "1h",
                "3d",
                "1 week",
                "1h30m",
                "1.5h",
                "-1h",
                "5 minutes",
                "1M",
                "3s4",
                "1us",
                " 1h",
                "1h ",
                "1hour",
                "10w",
                "0",
            ],
            &["x", "", "1y", "100", "µs"],
        ),
        (
            "date-time",
            &[
                "2020-01-01T00:00:00Z",
                "2020-01-01t00:00:00z",
                "2020-01-01T00:00:00+01:00",
                "2020-01-01T00:00:00.123456789Z",
            ],
            &[
                "x",
                "",
                "2020-01-01",
                "2020-01-01T00:00:00",
                "2020-13-01T00:00:00Z",
                "2020-01-01 00:00:00Z",
                "2020-01-01T25:00:00Z",
            ],
        ),
        ("date", &["2020-01-01"], &["x", "", "2020-1-1"]),
        ("ipv4", &["1.2.3.4", "01.2.3.4"], &["x", "", "1.2.3", "::1"]),
        ("ipv6", &["::1", "::ffff:1.2.3.4"], &["", "1.2.3.4", "fe80::1%eth0"]),
        ("uri", &["http://a", "a:b", "/a"], &["x", " ", "", "http://a b", "http://[::1"]),
        (
            "uuid",
            &[
                "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
                "6BA7B810-9DAD-11D1-80B4-00C04FD430C8",
                "6ba7b8109dad11d180b400c04fd430c8",
            ],
            &["x", ""],
        ),
        ("byte", &["YQ=="], &["*", "YQ", "", "Y Q==", "-_=="]),
        ("email", &["a@b.c", "a@b", "A <a@b.c>"], &["x", ""]),
        ("hostname", &["a", "a-"], &["", "-", "a.b", "A_b", "a..b", "-a", "1.2.3.4"]),
        ("cidr", &["1.2.3.4/8", "::/0"], &["x", "", "1.2.3.4", "1.2.3.4/33"]),
        ("mac", &["00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455", "001122334455"], &["x", ""]),
        ("password", &["x", ""], &[]),
        ("unheard-of", &["x"], &[]),
    ];

    #[test]
    fn formats_are_checked_as_kubernetes_checks_them() {
        for (format, right, wrong) in ROWS {
            for text in *right {
                assert!(matches(format, text), "{format} `{text}` is right");
            }
            for text in *wrong {
                assert!(!matches(format, text), "{format} `{text}` is wrong");
            }
        }
    }
}
