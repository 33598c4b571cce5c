//! Quantities, such as `500m` and `2Gi`: how much they are, and how Kubernetes writes them. Never here: where they stand.

/// What a quantity is a multiple of: a billionth.
const NANO: i128 = 1_000_000_000;

/// Powers of ten that have a letter.
const DECIMAL: [(i32, &str); 10] =
    [(-9, "n"), (-6, "u"), (-3, "m"), (0, ""), (3, "k"), (6, "M"), (9, "G"), (12, "T"), (15, "P"), (18, "E")];
/// Powers of 1024.
const BINARY: [(i128, &str); 6] =
    [(1 << 10, "Ki"), (1 << 20, "Mi"), (1 << 30, "Gi"), (1 << 40, "Ti"), (1 << 50, "Pi"), (1 << 60, "Ei")];

/// How a quantity was written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Decimal,
    Exponent,
    Binary,
}

/// How much a quantity is, in billionths; `None` if it is none, or too much to count.
pub(crate) fn nanos(text: &str) -> Option<i128> {
    read(text).map(|(nanos, _)| nanos)
}

/// The quantity as Kubernetes gives it back: the greatest unit of its style that leaves a whole number.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let (nanos, style) = read(text)?;
    if style == Style::Binary && nanos % NANO == 0 && (nanos / NANO).abs() >= 1024 {
        let whole = nanos / NANO;
        let unit = BINARY.iter().rev().find(|(unit, _)| whole % unit == 0);
        let (unit, suffix) = unit.copied().unwrap_or((1, ""));
        return Some(format!("{}{suffix}", whole / unit));
    }
    let (mut number, mut exponent) = (nanos, -9);
    while number % 1000 == 0 && number != 0 && exponent < 18 {
        number /= 1000;
        exponent += 3;
    }
    if number == 0 {
        return Some("0".into());
    }
    Some(match style {
        Style::Exponent if exponent == 0 => number.to_string(),
        Style::Exponent => format!("{number}e{exponent}"),
        Style::Decimal | Style::Binary => {
            let (_, suffix) = DECIMAL.iter().find(|(power, _)| *power == exponent)?;
            format!("{number}{suffix}")
        }
    })
}

fn read(text: &str) -> Option<(i128, Style)> {
    let text = text.trim();
    let end =
        text.find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | '+' | '-'))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (digits, is_negative) = match number.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (number.strip_prefix('+').unwrap_or(number), false),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !(is_number(whole) && is_number(fraction)) || (whole.is_empty() && fraction.is_empty()) {
        return None;
    }
    let mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
    let places = u32::try_from(fraction.len()).ok()?;
    let (unit, power, style) = unit(suffix)?;
    let mut nanos = mantissa.checked_mul(unit)?.checked_mul(NANO)?;
    let mut down = 10_i128.checked_pow(places)?;
    match u32::try_from(power) {
        Ok(up) => nanos = nanos.checked_mul(10_i128.checked_pow(up)?)?,
        Err(_) => down = down.checked_mul(10_i128.checked_pow(power.unsigned_abs())?)?,
    }
    // What is finer than a billionth counts as one.
    let nanos = nanos / down + i128::from(nanos % down != 0);
    Some((if is_negative { -nanos } else { nanos }, style))
}

/// What a suffix multiplies by, as a factor and a power of ten.
fn unit(suffix: &str) -> Option<(i128, i32, Style)> {
    if let Some((unit, _)) = BINARY.iter().find(|(_, name)| *name == suffix) {
        return Some((*unit, 0, Style::Binary));
    }
    if let Some((power, _)) = DECIMAL.iter().find(|(_, name)| *name == suffix) {
        return Some((1, *power, Style::Decimal));
    }
    let power = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
    Some((1, power, Style::Exponent))
}

#[cfg(test)]
mod tests {
    use super::{canonical, nanos};

    #[test]
    fn a_quantity_is_written_with_its_greatest_unit() {
        for (given, wanted) in [
            ("0", "0"),
            ("0Mi", "0"),
            ("0.01", "10m"),
            ("2000m", "2"),
            ("1000", "1k"),
            ("67108864", "67108864"),
            ("16384Mi", "16Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000Mi", "1000Mi"),
            ("1Ki", "1Ki"),
            ("0.5Ki", "512"),
            ("1e3", "1e3"),
            ("0.0001", "100u"),
            ("-1500m", "-1500m"),
            ("+1", "1"),
            ("1.0000000001", "1000000001n"),
        ] {
            assert_eq!(canonical(given).as_deref(), Some(wanted), "{given}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_left_alone() {
        for text in ["", "x", "1x", "1.2.3", "-", "1e"] {
            assert_eq!(nanos(text), None, "{text}");
        }
    }
}
