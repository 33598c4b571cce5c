//! Regular expressions as Kubernetes reads them, made into those of our library. Never here: who matches what.

use regex::{Regex, RegexBuilder};

use super::Pattern;

/// One megabyte, ten times what the largest pattern of the CRDs at hand takes.
const SIZE_LIMIT: usize = 1 << 20;

/// Compiles a pattern, or says what is wrong with it.
pub(super) fn compile(text: &str) -> Result<Pattern, String> {
    let regex = regex(text)?;
    Ok(Pattern { text: text.to_owned(), regex })
}

/// The same for whoever needs no text.
pub(super) fn regex(text: &str) -> Result<Regex, String> {
    RegexBuilder::new(&translate(text)).size_limit(SIZE_LIMIT).build().map_err(|error| reason(text, &error))
}

/// The usual mistakes in the words of Kubernetes, which clients compare.
fn reason(text: &str, error: &regex::Error) -> String {
    let what = error.to_string();
    let last = what.lines().last().unwrap_or_default().trim_start_matches("error: ");
    for (ours, theirs) in [
        ("unclosed group", format!("missing closing ): `{text}`")),
        ("unopened group", format!("unexpected ): `{text}`")),
        ("unclosed character class", format!("missing closing ]: `{}`", from(text, '['))),
        ("look-around", format!("invalid or unsupported Perl syntax: `{}`", look_around(text))),
        (
            "repetition operator missing expression",
            format!("missing argument to repetition operator: `{}`", &text[..text.len().min(1)]),
        ),
    ] {
        if last.contains(ours) {
            return format!("error parsing regexp: {theirs}");
        }
    }
    format!("error parsing regexp: {last}: `{text}`")
}

fn from(text: &str, start: char) -> &str {
    text.find(start).map_or(text, |at| &text[at..])
}

fn look_around(text: &str) -> &str {
    for group in ["(?=", "(?!", "(?<=", "(?<!"] {
        if text.contains(group) {
            return if group.len() == 4 { "(?<" } else { group };
        }
    }
    text
}

/// Says what Go's syntax says in ours: classes such as `\d` are ASCII, a brace that starts no repetition is itself, and so
/// are brackets and doubled operators inside of a class.
fn translate(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut in_class = false;
    while let Some(first) = rest.chars().next() {
        let (taken, written) = if let Some(escaped) = rest.strip_prefix('\\') {
            escape(escaped, in_class)
        } else if in_class {
            class_part(rest, &mut in_class)
        } else {
            plain_part(rest, first, &mut in_class)
        };
        out.push_str(&written);
        rest = &rest[taken..];
    }
    out
}

/// Bytes taken, backslash included, and what they become.
fn escape(escaped: &str, in_class: bool) -> (usize, String) {
    let Some(letter) = escaped.chars().next() else { return (1, "\\".to_owned()) };
    let taken = 1 + letter.len_utf8();
    let written = match (letter, in_class) {
        ('d', true) => "0-9".to_owned(),
        ('d', false) => "[0-9]".to_owned(),
        ('D', _) => "[^0-9]".to_owned(),
        ('w', true) => "0-9A-Za-z_".to_owned(),
        ('w', false) => "[0-9A-Za-z_]".to_owned(),
        ('W', _) => "[^0-9A-Za-z_]".to_owned(),
        ('s', true) => r"\t\n\f\r ".to_owned(),
        ('s', false) => r"[\t\n\f\r ]".to_owned(),
        ('S', _) => r"[^\t\n\f\r ]".to_owned(),
        ('b', false) => r"(?-u:\b)".to_owned(),
        ('<' | '>', _) => letter.to_string(),
        (other, _) => format!("\\{other}"),
    };
    (taken, written)
}

fn class_part(rest: &str, in_class: &mut bool) -> (usize, String) {
    if let Some(posix) = rest.strip_prefix("[:")
        && let Some(end) = posix.find(":]")
    {
        let taken = 2 + end + 2;
        return (taken, rest[..taken].to_owned());
    }
    for operator in ["&&", "--", "~~"] {
        if rest.starts_with(operator) {
            let letter = &operator[..1];
            return (2, format!("\\{letter}\\{letter}"));
        }
    }
    let letter = rest.chars().next().expect("the caller saw a character");
    match letter {
        ']' => *in_class = false,
        '[' => return (1, "\\[".to_owned()),
        _ => {}
    }
    (letter.len_utf8(), letter.to_string())
}

fn plain_part(rest: &str, letter: char, in_class: &mut bool) -> (usize, String) {
    if letter == '[' {
        *in_class = true;
        // A bracket right at the start of a class is a member of it.
        for start in ["[^]", "[]"] {
            if rest.starts_with(start) {
                return (start.len(), start.replace(']', "\\]"));
            }
        }
        if rest.starts_with("[^") {
            return (2, "[^".to_owned());
        }
    } else if letter == '{' && !is_repetition(rest) {
        return (1, "\\{".to_owned());
    }
    (letter.len_utf8(), letter.to_string())
}

/// `{2}`, `{2,}` or `{2,3}`.
fn is_repetition(rest: &str) -> bool {
    let Some((inner, _)) = rest[1..].split_once('}') else { return false };
    let (from, to) = inner.split_once(',').unwrap_or((inner, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    !from.is_empty() && digits(from) && digits(to)
}

#[cfg(test)]
mod tests {
    use super::{compile, translate};

    #[test]
    fn patterns_of_go_mean_the_same_here() {
        for (pattern, text, matches) in [
            (r"^\d+$", "12", true),
            (r"^\d+$", "١٢", false),
            (r"^[\w.]+$", "a_b.c", true),
            (r"^\w+$", "ä", false),
            (r"^[^\s]+$", "a b", false),
            (r"^a{$", "a{", true),
            (r"^a{,3}$", "a{,3}", true),
            (r"^a{2,3}$", "aaa", true),
            (r"^[[a]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[^]a]$", "]", false),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[[:alpha:]_]+$", "ab_", true),
            (r"^[0-9A-Za-z_.:/=+-@ ]+$", "a=b", true),
            (r"^a\/b$", "a/b", true),
            (r"^([0-9]{1,2}\.){2}$", "1.22.", true),
        ] {
            let compiled = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(compiled.regex.is_match(text), matches, "{pattern} {text} {}", translate(pattern));
        }
    }

    #[test]
    fn broken_patterns_are_named_as_kubernetes_does() {
        for (pattern, message) in [
            ("(", "error parsing regexp: missing closing ): `(`"),
            ("(?!a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?!`"),
            ("[a", "error parsing regexp: missing closing ]: `[a`"),
            (")", "error parsing regexp: unexpected ): `)`"),
            ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
        ] {
            assert_eq!(compile(pattern).map(|_| ()), Err(message.to_owned()), "{pattern}");
        }
    }
}
