//! Paths of requests: which resource they mean. Never here: whether there is such a resource.

use percent_encoding::percent_decode_str;

/// What the path of a request for a resource says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// API group, empty for the core.
    pub group: String,
    pub version: String,
    /// `None` for what is in no namespace, and for lists over all namespaces.
    pub namespace: Option<String>,
    pub plural: String,
    /// `None` for a collection.
    pub name: Option<String>,
    pub subresource: Option<String>,
}

impl Target {
    /// Reads a path below `/api` or `/apis`; `None` if it cannot mean a resource.
    pub(crate) fn parse(path: &str) -> Option<Target> {
        let parts: Vec<String> = path.strip_prefix('/')?.split('/').map(decode).collect::<Option<_>>()?;
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        let (group, version, rest) = match &*parts {
            ["api", version, rest @ ..] => ("", *version, rest),
            ["apis", group, version, rest @ ..] => (*group, *version, rest),
            _ => return None,
        };
        // Of a namespace itself these are subresources; everything else below it is a resource inside.
        let (namespace, rest) = match rest {
            ["namespaces", _] | ["namespaces", _, "status" | "finalize"] => (None, rest),
            ["namespaces", namespace, rest @ ..] => (Some(*namespace), rest),
            _ => (None, rest),
        };
        let (plural, name, subresource) = match rest {
            [plural] => (*plural, None, None),
            [plural, name] => (*plural, Some(*name), None),
            [plural, name, subresource] => (*plural, Some(*name), Some(*subresource)),
            _ => return None,
        };
        if plural.is_empty() || name == Some("") {
            return None;
        }
        Some(Target {
            group: group.into(),
            version: version.into(),
            namespace: namespace.map(Into::into),
            plural: plural.into(),
            name: name.map(Into::into),
            subresource: subresource.map(Into::into),
        })
    }
}

fn decode(part: &str) -> Option<String> {
    percent_decode_str(part).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_names_group_version_namespace_resource_name_and_subresource() {
        let show = |path: &str| {
            let target = Target::parse(path)?;
            let Target { group, version, namespace, plural, name, subresource } = target;
            let or = |text: Option<String>| text.unwrap_or_else(|| "-".into());
            Some(format!("{group}|{version}|{}|{plural}|{}|{}", or(namespace), or(name), or(subresource)))
        };
        for (path, wanted) in [
            ("/api/v1/pods", Some("|v1|-|pods|-|-")),
            ("/api/v1/namespaces", Some("|v1|-|namespaces|-|-")),
            ("/api/v1/namespaces/a", Some("|v1|-|namespaces|a|-")),
            ("/api/v1/namespaces/a/finalize", Some("|v1|-|namespaces|a|finalize")),
            ("/api/v1/namespaces/a/pods", Some("|v1|a|pods|-|-")),
            ("/api/v1/namespaces/a/pods/b/eviction", Some("|v1|a|pods|b|eviction")),
            ("/apis/g.io/v1beta1/things/b%2Dc/status", Some("g.io|v1beta1|-|things|b-c|status")),
            ("/apis/g.io/v1/namespaces/a/things/b/c/d", None),
            ("/apis/g.io/v1", None),
            ("/api/v1/namespaces/a/pods/", None),
        ] {
            assert_eq!(show(path).as_deref(), wanted, "{path}");
        }
    }
}
