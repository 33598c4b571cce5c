//! The certificate authority of one control plane: server certificate, token key, a certificate per user.

use std::{fs, path::Path};

use anyhow::{Context as _, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, KeyUsagePurpose,
};

/// The object identifier of organizationName, by which an API server knows groups.
const ORGANIZATION: [u64; 4] = [2, 5, 4, 10];

/// Signs everything that one control plane trusts.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Authority")
    }
}

impl Authority {
    pub(crate) fn new() -> anyhow::Result<Authority> {
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name("control plane of a test");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate()?)
            .context("cannot make a certificate authority")?;
        Ok(Authority { issuer })
    }

    /// The certificate of the authority, as rustls wants it.
    pub(crate) fn der(&self) -> Vec<u8> {
        self.issuer.der().to_vec()
    }

    /// Writes `ca.crt`, `server.crt`, `server.key`, `tokens.key` and `tokens.pub`.
    pub(crate) fn write_server_files(&self, directory: &Path) -> anyhow::Result<()> {
        fs::write(directory.join("ca.crt"), self.issuer.pem())?;
        let names = ["127.0.0.1", "localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(String::from))?;
        params.distinguished_name = common_name("kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.sign(directory, "server", params)?;
        let tokens = KeyPair::generate()?;
        fs::write(directory.join("tokens.key"), tokens.serialize_pem())?;
        fs::write(directory.join("tokens.pub"), tokens.public_key_pem())?;
        Ok(())
    }

    /// Writes `<name>.crt` and `<name>.key` for a user of the API server.
    pub(crate) fn client(
        &self,
        directory: &Path,
        name: &str,
        user: &str,
        groups: &[&str],
    ) -> anyhow::Result<()> {
        // A distinguished name holds one value per type here, but two types stand for the same attribute.
        let types = [DnType::OrganizationName, DnType::CustomDnType(ORGANIZATION.to_vec())];
        ensure!(
            groups.len() <= types.len(),
            "cannot make a certificate for user `{user}`: at most {} groups fit, these are {}",
            types.len(),
            groups.len(),
        );
        let mut params = CertificateParams::default();
        params.distinguished_name = common_name(user);
        for (kind, group) in types.into_iter().zip(groups) {
            params.distinguished_name.push(kind, *group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(directory, name, params)
    }

    fn sign(&self, directory: &Path, name: &str, mut params: CertificateParams) -> anyhow::Result<()> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params
            .signed_by(&key, &self.issuer)
            .with_context(|| format!("cannot sign the certificate `{name}`"))?;
        fs::write(directory.join(format!("{name}.crt")), certificate.pem())?;
        fs::write(directory.join(format!("{name}.key")), key.serialize_pem())?;
        Ok(())
    }
}

fn common_name(value: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, value);
    name
}
