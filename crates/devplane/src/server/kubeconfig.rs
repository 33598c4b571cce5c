//! What clients are told about a server. Never here: where that is written.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Authority, Server};

/// The text of a kubeconfig for the bearer of a token. `name` is what cluster, user and context are called in it.
pub fn kubeconfig(server: &Server, authority: &Authority, name: &str, token: &str) -> String {
    let authority = STANDARD.encode(authority.pem());
    let url = server.url();
    format!(
        "\
apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {url}
    certificate-authority-data: {authority}
users:
- name: {name}
  user:
    token: {token}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: {name}
    namespace: default
current-context: {name}
"
    )
}
