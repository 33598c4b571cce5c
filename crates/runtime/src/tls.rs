//! The certificate of our own endpoints: files that may be renewed, or self-signed. Never here: clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::time::Instant;
use tokio_rustls::TlsAcceptor;

use crate::Error;

/// Ten seconds between two looks at the files. They are looked at when somebody connects, so that nothing runs at rest.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);

/// Gives the acceptor for each connection.
pub(crate) struct Certificate {
    directory: Option<PathBuf>,
    state: Mutex<State>,
}

struct State {
    acceptor: TlsAcceptor,
    modified: Option<SystemTime>,
    looked: Instant,
}

impl Certificate {
    /// Reads `tls.crt` and `tls.key` of a directory; without one, signs itself.
    pub(crate) fn new(directory: Option<PathBuf>) -> Result<Self, Error> {
        let (acceptor, modified) = match &directory {
            Some(directory) => (read(directory)?, modified(directory)),
            None => (self_signed()?, None),
        };
        let state = State { acceptor, modified, looked: Instant::now() };
        Ok(Self { directory, state: Mutex::new(state) })
    }

    /// The acceptor for a connection that begins now. Files that changed and cannot be read leave the former in place.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(directory) = &self.directory
            && state.looked.elapsed() >= LOOK_INTERVAL
        {
            state.looked = Instant::now();
            let now = modified(directory);
            if now != state.modified {
                match read(directory) {
                    Ok(acceptor) => (state.acceptor, state.modified) = (acceptor, now),
                    Err(error) => {
                        tracing::warn!(directory = %directory.display(), %error, "certificate not renewed")
                    }
                }
            }
        }
        state.acceptor.clone()
    }
}

/// The later of the two files' times.
fn modified(directory: &Path) -> Option<SystemTime> {
    let time = |name: &str| fs::metadata(directory.join(name)).and_then(|file| file.modified()).ok();
    time("tls.crt").max(time("tls.key"))
}

fn read(directory: &Path) -> Result<TlsAcceptor, Error> {
    let pem = |name: &str| {
        let path = directory.join(name);
        fs::read(&path).map_err(|error| format!("cannot read `{}`: {error}", path.display()))
    };
    let chain = CertificateDer::pem_slice_iter(&pem("tls.crt")?).collect::<Result<Vec<_>, _>>()?;
    acceptor(chain, PrivateKeyDer::from_pem_slice(&pem("tls.key")?)?)
}

fn self_signed() -> Result<TlsAcceptor, Error> {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(vec!["localhost".to_owned()])?;
    let key = PrivatePkcs8KeyDer::from(signing_key.serialize_der());
    acceptor(vec![cert.der().clone()], key.into())
}

fn acceptor(chain: Vec<CertificateDer<'static>>, key: PrivateKeyDer<'static>) -> Result<TlsAcceptor, Error> {
    // The provider is named, because a default one is a property of the whole process.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(directory: &Path, seconds: u64) -> Vec<u8> {
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(vec!["a".to_owned()]).unwrap();
        for (name, text) in [("tls.crt", cert.pem()), ("tls.key", signing_key.serialize_pem())] {
            fs::write(directory.join(name), text).unwrap();
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
            fs::File::open(directory.join(name)).unwrap().set_modified(time).unwrap();
        }
        cert.der().to_vec()
    }

    /// The certificate that a client is shown.
    async fn shown(certificate: &Certificate) -> Vec<u8> {
        let (near, far) = tokio::io::duplex(16 << 10);
        let acceptor = certificate.acceptor();
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(certificate_of(certificate));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
        let (client, server) =
            tokio::join!(connector.connect("a".try_into().unwrap(), near), acceptor.accept(far));
        server.unwrap();
        client.unwrap().get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }

    fn certificate_of(certificate: &Certificate) -> Vec<CertificateDer<'static>> {
        let path = certificate.directory.as_ref().unwrap().join("trusted.crt");
        CertificateDer::pem_file_iter(path).unwrap().collect::<Result<_, _>>().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewed_certificate_is_taken_and_a_broken_one_is_not() {
        let temporary = tempfile::tempdir().unwrap();
        let directory = temporary.path();
        let trust = || fs::copy(directory.join("tls.crt"), directory.join("trusted.crt")).unwrap();
        let first = write(directory, 1);
        trust();
        let certificate = Certificate::new(Some(directory.to_owned())).unwrap();
        assert_eq!(shown(&certificate).await, first);
        let second = write(directory, 2);
        trust();
        tokio::time::advance(LOOK_INTERVAL).await;
        assert_eq!(shown(&certificate).await, second);
        fs::write(directory.join("tls.key"), "broken").unwrap();
        tokio::time::advance(LOOK_INTERVAL).await;
        assert_eq!(shown(&certificate).await, second);
    }
}
