//! The certificate authority of one plane, and the server's certificate. Both are made anew for each plane and never
//! written to a disk. Never here: certificates of clients.

use std::io;
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::TlsAcceptor;

/// What the server is called, by clients here and in kubeconfigs of pods.
const NAMES: [&str; 6] =
    ["localhost", "127.0.0.1", "::1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// Vouches for the server.
pub struct Authority {
    pem: String,
    chain: Vec<CertificateDer<'static>>,
    key: PrivatePkcs8KeyDer<'static>,
}

impl Authority {
    /// A new authority and a certificate of the server.
    pub fn new() -> io::Result<Authority> {
        make().map_err(|error| io::Error::other(format!("cannot make a certificate authority: {error}")))
    }

    /// The certificate of the authority, for clients.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    pub(super) fn acceptor(&self) -> io::Result<TlsAcceptor> {
        // The provider is named, because a default one is a property of the whole process.
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let key = PrivateKeyDer::from(self.key.clone_key());
        let config =
            builder.and_then(|it| it.with_no_client_auth().with_single_cert(self.chain.clone(), key));
        let mut config = config.map_err(io::Error::other)?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(TlsAcceptor::from(Arc::new(config)))
    }
}

fn make() -> Result<Authority, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name = common_name("embedded control plane");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
    let mut params = CertificateParams::new(NAMES.map(String::from))?;
    params.distinguished_name = common_name("kube-apiserver");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?;
    Ok(Authority {
        pem: issuer.pem(),
        chain: vec![certificate.der().clone()],
        key: PrivatePkcs8KeyDer::from(key.serialize_der()),
    })
}

fn common_name(value: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, value);
    name
}
