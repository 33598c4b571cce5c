//! The wire format of protobuf: numbered fields. Never here: what they mean.

/// A value as it stands in the bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Raw<'a> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'a [u8]),
    Fixed32(u32),
}

/// The fields of a message. After the first error nothing more can be read.
pub(super) struct Fields<'a>(pub &'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Raw<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        (!self.0.is_empty()).then(|| self.field())
    }
}

impl Raw<'_> {
    /// The number of the form, as messages name it.
    fn number(self) -> u8 {
        match self {
            Raw::Varint(_) => 0,
            Raw::Fixed64(_) => 1,
            Raw::Bytes(_) => 2,
            Raw::Fixed32(_) => 5,
        }
    }

    /// What is said of a value in a form that its field does not have.
    pub(super) fn refuse(self, field: &str) -> String {
        format!("proto: wrong wireType = {} for field {field}", self.number())
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(u32, Raw<'a>), String> {
        let tag = self.varint()?;
        let (number, form) = (tag >> 3, tag & 7);
        let number = u32::try_from(number).ok().filter(|number| *number > 0);
        let number = number.ok_or_else(|| format!("proto: illegal tag {} (wire type {form})", tag >> 3))?;
        let raw = match form {
            0 => Raw::Varint(self.varint()?),
            1 => Raw::Fixed64(u64::from_le_bytes(self.array()?)),
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| "unexpected EOF")?;
                Raw::Bytes(self.take(length)?)
            }
            5 => Raw::Fixed32(u32::from_le_bytes(self.array()?)),
            // Groups, which nobody writes any more, and what there is not.
            _ => return Err(format!("proto: illegal wireType {form}")),
        };
        Ok((number, raw))
    }

    /// Takes a number of variable length: seven bits a byte, the lowest first.
    pub(super) fn varint(&mut self) -> Result<u64, String> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let [byte] = self.array()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("proto: integer overflow".into())
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let (first, rest) = self.0.split_first_chunk().ok_or("unexpected EOF")?;
        self.0 = rest;
        Ok(*first)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        let (first, rest) = self.0.split_at_checked(length).ok_or("unexpected EOF")?;
        self.0 = rest;
        Ok(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_four_forms() {
        let bytes = b"\x08\xac\x02\x11\x01\0\0\0\0\0\0\0\x1a\x02hi\x25\x02\0\0\0";
        let fields: Result<Vec<_>, _> = Fields(bytes).collect();
        let wanted =
            [(1, Raw::Varint(300)), (2, Raw::Fixed64(1)), (3, Raw::Bytes(b"hi")), (4, Raw::Fixed32(2))];
        assert_eq!(fields, Ok(wanted.to_vec()));
    }

    #[test]
    fn what_is_no_field_is_refused() {
        for (bytes, why) in [
            (&b"\x08"[..], "unexpected EOF"),
            (b"\x08\x80", "unexpected EOF"),
            (b"\x0a\x05hi", "unexpected EOF"),
            (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "unexpected EOF"),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "proto: integer overflow"),
            (b"\x02\x00", "proto: illegal tag 0 (wire type 2)"),
            (b"\x0b", "proto: illegal wireType 3"),
        ] {
            assert_eq!(Fields(bytes).next(), Some(Err(why.to_owned())), "{bytes:?}");
        }
    }
}
