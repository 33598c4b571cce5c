//! Lines of styled text: what is drawn, whatever it is drawn on.
//!
//! Never here: machines; where the lines go.

use serde::Serialize;

/// How a piece of text looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Style {
    /// As any text.
    Plain,
    /// What to look at first.
    Bold,
    /// What to look at last.
    Dim,
    /// All is well.
    Green,
    /// On its way.
    Yellow,
    /// On its way out.
    Magenta,
    /// Trouble.
    Red,
}

impl Style {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Bold => "\x1b[1m",
            Self::Dim => "\x1b[2m",
            Self::Green => "\x1b[32m",
            Self::Yellow => "\x1b[33m",
            Self::Magenta => "\x1b[35m",
            Self::Red => "\x1b[31m",
        }
    }
}

/// A piece of text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Span {
    /// The text, without control characters.
    pub text: String,
    /// How it looks.
    pub style: Style,
}

/// A line of text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Line(pub Vec<Span>);

impl Line {
    /// The line with more text at its end. What would move the cursor becomes a space: texts come from an API server.
    pub fn and(mut self, style: Style, text: impl AsRef<str>) -> Self {
        let text: String = text.as_ref().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        if !text.is_empty() {
            self.0.push(Span { text, style });
        }
        self
    }

    /// Number of characters.
    pub fn width(&self) -> usize {
        self.0.iter().map(|span| span.text.chars().count()).sum()
    }

    /// The line with spaces at its end, up to a width.
    pub fn pad(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.width());
        self.and(Style::Plain, " ".repeat(missing))
    }

    /// The line cut to a width; the last character then says so.
    pub fn cut(mut self, width: usize) -> Self {
        if self.width() <= width {
            return self;
        }
        let mut left = width;
        for span in &mut self.0 {
            span.text = cut(&span.text, left);
            left -= span.text.chars().count();
        }
        self.0.retain(|span| !span.text.is_empty());
        if let Some(last) = self.0.last_mut()
            && !last.text.ends_with('…')
        {
            last.text.pop();
            last.text.push('…');
        }
        self
    }

    /// The text alone.
    pub fn plain(&self) -> String {
        self.0.iter().map(|span| span.text.as_str()).collect()
    }

    /// The text with the escape sequences of a terminal.
    pub fn ansi(&self) -> String {
        let styled = self.0.iter().map(|Span { text, style }| match style.code() {
            "" => text.clone(),
            code => format!("{code}{text}\x1b[0m"),
        });
        styled.collect()
    }
}

/// A text cut to a width; the last character then says so.
pub fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.into();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_never_wider_than_it_may_be_and_says_when_it_was_cut() {
        let line = || Line::default().and(Style::Bold, "abc").and(Style::Plain, "def");
        for (width, text) in [(9, "abcdef"), (6, "abcdef"), (5, "abcd…"), (3, "ab…"), (1, "…"), (0, "")]
        {
            assert_eq!(line().cut(width).plain(), text);
        }
        assert_eq!(line().pad(8).plain(), "abcdef  ");
    }

    #[test]
    fn a_text_cannot_move_the_cursor() {
        let line = Line::default().and(Style::Red, "a\x1b[2Jb\nc");
        assert_eq!(line.ansi(), "\x1b[31ma [2Jb c\x1b[0m");
    }
}
