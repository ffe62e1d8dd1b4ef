//! Signed envelopes in the form of DSSE (Dead Simple Signing Envelope, version 1), which other programs verify too.
//!
//! What is signed is the payload with its type, so that bytes of one kind are never taken for another. A key's name in an
//! envelope is a hint: it tells which key to try, and proves nothing.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Digest, SecretKey, Signature};

/// A payload with signatures, in its JSON form.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DsseEnvelope {
    /// The payload, in base64.
    payload: String,
    /// What it is.
    payload_type: String,
    /// Who has signed.
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: Digest,
    sig: String,
}

/// An envelope whose text is none.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum NotAnEnvelope {
    /// The payload has another form.
    #[error("the payload is not base64")]
    Payload,
    /// A signature has another form.
    #[error("a signature is not 64 bytes in base64")]
    Signature,
}

impl DsseEnvelope {
    /// Puts a payload and the signatures of these keys, by [`PublicKey::id`](super::PublicKey::id), together.
    #[must_use]
    pub fn new(payload_type: &str, payload: &[u8], signatures: &[(Digest, Signature)]) -> Self {
        let signature = |(keyid, signature): &(Digest, Signature)| EnvelopeSignature {
            keyid: *keyid,
            sig: STANDARD.encode(signature.to_bytes()),
        };
        Self {
            payload: STANDARD.encode(payload),
            payload_type: payload_type.to_owned(),
            signatures: signatures.iter().map(signature).collect(),
        }
    }

    /// What the payload is.
    #[must_use]
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// The payload. Not verified.
    ///
    /// # Errors
    ///
    /// [`NotAnEnvelope::Payload`] if it is not base64.
    pub fn payload(&self) -> Result<Vec<u8>, NotAnEnvelope> {
        STANDARD.decode(&self.payload).map_err(|_| NotAnEnvelope::Payload)
    }

    /// The signatures and the names of their keys. Not verified.
    ///
    /// # Errors
    ///
    /// [`NotAnEnvelope::Signature`] if one has another form.
    pub fn signatures(&self) -> Result<Vec<(Digest, Signature)>, NotAnEnvelope> {
        let read = |signature: &EnvelopeSignature| {
            let bytes = STANDARD.decode(&signature.sig).ok().and_then(|bytes| bytes.try_into().ok());
            let bytes: [u8; 64] = bytes.ok_or(NotAnEnvelope::Signature)?;
            Ok((signature.keyid, Signature::from_bytes(&bytes)))
        };
        self.signatures.iter().map(read).collect()
    }
}

/// The bytes that are signed: the pre-authentication encoding of DSSE.
#[must_use]
pub fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Signs a payload of a type.
#[must_use]
pub fn sign(key: &SecretKey, payload_type: &str, payload: &[u8]) -> Signature {
    key.sign(&signed_bytes(payload_type, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_that_of_the_specification() {
        // The example of the protocol's description (secure-systems-lab/dsse, protocol.md).
        let bytes = signed_bytes("http://example.com/HelloWorld", b"hello world");
        assert_eq!(bytes, b"DSSEv1 29 http://example.com/HelloWorld 11 hello world");
    }

    #[test]
    fn an_envelope_is_read_as_it_was_written() {
        let key = SecretKey::from_seed(&[1; 32]);
        let signature = sign(&key, "text/plain", b"hello");
        let envelope = DsseEnvelope::new("text/plain", b"hello", &[(key.public().id(), signature)]);
        let text = serde_json::to_string(&envelope).unwrap();
        assert!(
            text.starts_with(r#"{"payload":"aGVsbG8=","payloadType":"text/plain","signatures":[{"keyid":""#)
        );
        let read: DsseEnvelope = serde_json::from_str(&text).unwrap();
        assert_eq!(read, envelope);
        assert_eq!(read.payload().unwrap(), b"hello");
        let signatures = read.signatures().unwrap();
        assert!(key.public().verifies(&signed_bytes("text/plain", b"hello"), &signatures[0].1));
        assert!(!key.public().verifies(&signed_bytes("text/html", b"hello"), &signatures[0].1));
        let bent = text.replace("aGVsbG8=", "a.");
        let bent: DsseEnvelope = serde_json::from_str(&bent).unwrap();
        assert_eq!(bent.payload(), Err(NotAnEnvelope::Payload));
    }
}
