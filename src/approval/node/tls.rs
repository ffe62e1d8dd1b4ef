//! Connections whose two ends prove who they are by a key of the roster: raw public keys (RFC 7250) in TLS 1.3.
//!
//! The key that signs statements proves its owner here too. The text that it signs in a handshake begins with 64 spaces and the
//! name of TLS; any other text that it signs begins with `DSSEv1`. So neither can be taken for the other.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, ClientConfig};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, ServerConfig};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerIncompatible, SignatureScheme,
};

use super::error::NodeError;
use crypto::{PublicKey, SecretKey};

/// The keys that may be at the other end.
#[derive(Debug)]
struct PeerKeys {
    keys: Vec<Vec<u8>>,
    algorithms: WebPkiSupportedAlgorithms,
}

/// Returns the settings with which the owner of this key accepts connections: only from owners of the keys in `known`.
pub(super) fn server(own: &Arc<CertifiedKey>, known: &[PublicKey]) -> Result<ServerConfig, NodeError> {
    let provider = Arc::new(ring::default_provider());
    let resolver = AlwaysResolvesServerRawPublicKeys::new(Arc::clone(own));
    let config = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|why| NodeError::Tls(why.to_string()))?
        .with_client_cert_verifier(PeerKeys::new(known, &provider))
        .with_cert_resolver(Arc::new(resolver));
    Ok(config)
}

/// Returns the settings with which the owner of this key connects to the owner of another one.
pub(super) fn client(own: &Arc<CertifiedKey>, other: PublicKey) -> Result<ClientConfig, NodeError> {
    let provider = Arc::new(ring::default_provider());
    let resolver = AlwaysResolvesClientRawPublicKeys::new(Arc::clone(own));
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&TLS13])
        .map_err(|why| NodeError::Tls(why.to_string()))?
        .dangerous()
        .with_custom_certificate_verifier(PeerKeys::new(&[other], &provider))
        .with_client_cert_resolver(Arc::new(resolver));
    Ok(config)
}

/// Returns a key in the form that the library needs.
pub(super) fn certified_key(key: &SecretKey) -> Result<Arc<CertifiedKey>, NodeError> {
    let provider = ring::default_provider();
    let secret = PrivateKeyDer::Pkcs8(key.to_der().into());
    let public = CertificateDer::from(key.public().to_der());
    let secret =
        provider.key_provider.load_private_key(secret).map_err(|why| NodeError::Tls(why.to_string()))?;
    Ok(Arc::new(CertifiedKey::new(vec![public], secret)))
}

impl PeerKeys {
    fn new(keys: &[PublicKey], provider: &CryptoProvider) -> Arc<Self> {
        let keys = keys.iter().map(PublicKey::to_der).collect();
        Arc::new(Self { keys, algorithms: provider.signature_verification_algorithms })
    }

    fn check(&self, presented: &CertificateDer<'_>) -> Result<(), Error> {
        if self.keys.iter().any(|known| known == presented.as_ref()) {
            return Ok(());
        }
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn verify(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signature, &self.algorithms)
    }
}

/// Returns the error for TLS 1.2: only TLS 1.3 is offered.
fn tls12_error() -> Error {
    PeerIncompatible::Tls12NotOffered.into()
}

impl ClientCertVerifier for PeerKeys {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(presented).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls12_error())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ServerCertVerifier for PeerKeys {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(presented).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(tls12_error())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
