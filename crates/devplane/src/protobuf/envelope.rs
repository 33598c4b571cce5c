//! What is around an object in the binary form: who it is. Never here: what is in it.

use std::fmt::Write as _;

use super::wire::{Fields, Raw};

/// How every body begins.
const MAGIC: &[u8] = b"k8s\0";

/// How many bytes of a body refusals show. Source: the API server of Kubernetes.
const SHOWN: usize = 30;

/// An object that is still to be read.
pub(super) struct Envelope<'a> {
    pub api_version: String,
    pub kind: String,
    pub raw: &'a [u8],
}

/// Reads the envelope.
pub(super) fn open(bytes: &[u8]) -> Result<Envelope<'_>, String> {
    if bytes.is_empty() {
        return Err("empty data".into());
    }
    let Some(rest) = bytes.strip_prefix(MAGIC) else {
        return Err(
            "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]".into()
        );
    };
    if rest.is_empty() {
        return Err("empty body".into());
    }
    let mut envelope = Envelope { api_version: String::new(), kind: String::new(), raw: &[] };
    for field in Fields(rest) {
        match field? {
            (1, Raw::Bytes(names)) => {
                for field in Fields(names) {
                    match field? {
                        (1, Raw::Bytes(text)) => envelope.api_version = text_of(text),
                        (2, Raw::Bytes(text)) => envelope.kind = text_of(text),
                        (1 | 2, other) => return Err(other.refuse("TypeMeta")),
                        _ => {}
                    }
                }
            }
            (2, Raw::Bytes(raw)) => envelope.raw = raw,
            (1 | 2, other) => return Err(other.refuse("Unknown")),
            // How it is encoded and of which media type it is: nobody says anything there.
            _ => {}
        }
    }
    Ok(envelope)
}

/// The beginning of a body for a refusal.
pub(super) fn shown(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        return "<empty>".into();
    }
    let mut text = String::new();
    for byte in &bytes[..bytes.len().min(SHOWN)] {
        write!(text, "{byte:02x}").expect("writing to a string does not fail");
    }
    if bytes.len() > SHOWN {
        text.push_str(" ...");
    }
    text
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
