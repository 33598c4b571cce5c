//! Names of new Machines. They are chosen here and not by the server, so that a create whose answer was lost is repeated
//! under the same name and finds what it made.

use std::collections::BTreeSet;

/// Characters of a suffix: no vowels and nothing that looks like another, as the server's own.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Fourteen million suffixes: among a thousand Machines of a set one draw in 14,000 meets a taken one and is redrawn.
const SUFFIX_LENGTH: usize = 5;

/// A Machine's name becomes a host name and a label value, which end at 63 characters.
const NAME_MAX: usize = 63;

/// Draws names that nobody has.
pub(super) struct Names<'a> {
    base: String,
    taken: BTreeSet<&'a str>,
    drawn: BTreeSet<String>,
    state: u64,
}

impl<'a> Names<'a> {
    /// Names that begin with the name of a set, cut as the server cuts a `generateName`.
    pub fn new(set_name: &str, taken: impl Iterator<Item = &'a str>, entropy: u64) -> Self {
        let base = prefix(set_name).chars().take(NAME_MAX - SUFFIX_LENGTH).collect();
        Self { base, taken: taken.collect(), drawn: BTreeSet::new(), state: entropy }
    }

    /// A name that is neither taken nor drawn already.
    pub fn draw(&mut self) -> String {
        // Ends: the generator runs through every value before it repeats one.
        loop {
            let suffix = self.suffix();
            let name = format!("{}{suffix}", self.base);
            if !self.taken.contains(name.as_str()) && self.drawn.insert(name.clone()) {
                return name;
            }
        }
    }

    /// Marks a name as drawn. Whether it was free.
    pub fn reserve(&mut self, name: &str) -> bool {
        !self.taken.contains(name) && self.drawn.insert(name.into())
    }

    fn suffix(&mut self) -> String {
        let mut value = self.next();
        let count = ALPHABET.len() as u64;
        let mut letter = || {
            let index = usize::try_from(value % count).expect("less than 27");
            value /= count;
            char::from(ALPHABET[index])
        };
        (0..SUFFIX_LENGTH).map(|_| letter()).collect()
    }

    /// The generator SplitMix64: every seed is a good one, and it visits all values before it repeats.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

/// What the names of a set's Machines begin with.
pub(super) fn prefix(set_name: &str) -> String {
    format!("{set_name}-")
}

/// An error of a pass without the random parts of Machine names, and each different error once: otherwise every attempt
/// would say something new, and sixty-four refused creations the same thing sixty-four times.
pub(super) fn without_suffixes(set_name: &str, error: &str) -> String {
    let base: String = prefix(set_name).chars().take(NAME_MAX - SUFFIX_LENGTH).collect();
    let mut seen = BTreeSet::new();
    let parts = error.split("; ").map(|part| without_suffix(&base, part));
    parts.filter(|part| seen.insert(part.clone())).collect::<Vec<_>>().join("; ")
}

fn without_suffix(base: &str, text: &str) -> String {
    let mut pieces = text.split(base);
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        kept.push_str(base);
        let end = piece
            .find(|c: char| !u8::try_from(c).is_ok_and(|b| ALPHABET.contains(&b)))
            .unwrap_or(piece.len());
        if end == SUFFIX_LENGTH {
            kept.push('*');
            kept.push_str(&piece[end..]);
        } else {
            kept.push_str(piece);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_the_sets_name_and_five_safe_characters() {
        let name = Names::new("workers", std::iter::empty(), 7).draw();
        let suffix = name.strip_prefix("workers-").expect("prefix");
        assert_eq!(suffix.len(), SUFFIX_LENGTH);
        assert!(suffix.bytes().all(|b| ALPHABET.contains(&b)), "{suffix}");
    }

    #[test]
    fn long_names_are_cut_to_sixty_three_characters() {
        let name = Names::new(&"a".repeat(80), std::iter::empty(), 7).draw();
        assert_eq!(name.len(), NAME_MAX);
        assert!(name.starts_with(&"a".repeat(58)));
    }

    #[test]
    fn a_taken_name_is_never_drawn_and_the_same_entropy_gives_the_same_names() {
        let first = Names::new("s", std::iter::empty(), 1).draw();
        let mut names = Names::new("s", [first.as_str()].into_iter(), 1);
        let second = names.draw();
        assert_ne!(first, second);
        assert!(!names.reserve(&first) && !names.reserve(&second) && names.reserve("s-other"));
        assert_eq!(Names::new("s", std::iter::empty(), 1).draw(), first);
    }

    #[test]
    fn errors_name_no_random_part_and_are_told_once() {
        let error = r#"machines "s-bcdfg" is forbidden: quota; machines "s-22222" is forbidden: quota; "s-bad" is odd"#;
        assert_eq!(without_suffixes("s", error), r#"machines "s-*" is forbidden: quota; "s-bad" is odd"#);
    }
}
