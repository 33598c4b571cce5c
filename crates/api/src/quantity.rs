//! Resource quantities: `500m`, `16Gi`, `4`.

/// Parses a quantity into thousandths, so that `1` is 1000 and `500m` is 500. `None` if it is no quantity, negative, or
/// too large. Source of the suffixes: the Kubernetes resource model.
pub fn millis(text: &str) -> Option<u128> {
    let text = text.trim_start_matches('+');
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') || fraction.len() > 9 {
        return None;
    }
    let scale = 10u128.pow(u32::try_from(fraction.len()).ok()?);
    let mantissa: u128 = format!("{whole}{fraction}").parse().ok()?;
    let (multiplier, divisor): (u128, u128) = match suffix {
        "" => (1000, 1),
        "n" => (1, 1_000_000),
        "u" => (1, 1000),
        "m" => (1, 1),
        "k" => (1_000_000, 1),
        "M" => (1_000_000_000, 1),
        "G" => (1_000_000_000_000, 1),
        "T" => (1_000_000_000_000_000, 1),
        "P" => (1_000_000_000_000_000_000, 1),
        "Ki" => (1000 << 10, 1),
        "Mi" => (1000 << 20, 1),
        "Gi" => (1000 << 30, 1),
        "Ti" => (1000 << 40, 1),
        "Pi" => (1000 << 50, 1),
        _ => {
            let exponent: u32 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
            (1000u128.checked_mul(10u128.checked_pow(exponent)?)?, 1)
        }
    };
    mantissa.checked_mul(multiplier)?.checked_div(scale * divisor)
}

/// The quantity in whole units, rounded up.
pub fn units(text: &str) -> Option<u128> {
    millis(text).map(|m| m.div_ceil(1000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffixes_have_their_usual_size() {
        for (text, expected) in [
            ("1", 1000),
            ("500m", 500),
            ("16Gi", 16 * 1024 * 1024 * 1024 * 1000),
            ("1.5k", 1_500_000),
            ("1e3", 1_000_000),
            ("0.5Gi", 512 * 1024 * 1024 * 1000),
        ] {
            assert_eq!(millis(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_quantity_is_refused() {
        for text in ["", "-1", "Gi", "1Q", "1.2.3", "one"] {
            assert_eq!(millis(text), None, "{text}");
        }
    }
}
