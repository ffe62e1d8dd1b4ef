//! Signed envelopes in the form of DSSE (Dead Simple Signing Envelope, version 1), which other programs can verify
//! too.
//!
//! The signature covers the payload together with its type, so bytes of one kind are never taken for another. The
//! name of a key in an envelope is a hint: it says which key to try, and proves nothing.

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
    /// The type of the payload.
    payload_type: String,
    /// The signatures, each with the name of its key.
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
struct EnvelopeSignature {
    keyid: Digest,
    sig: String,
}

/// A text that is not an envelope.
#[derive(Clone, Copy, Debug, Error, Eq, PartialEq)]
pub enum NotAnEnvelope {
    /// The payload is not in base64.
    #[error("the payload is not base64")]
    Payload,
    /// A signature is not 64 bytes in base64.
    #[error("a signature is not 64 bytes in base64")]
    Signature,
}

impl DsseEnvelope {
    /// Returns an envelope with a payload and signatures, each named by the [`PublicKey::id`](super::PublicKey::id)
    /// of its key.
    pub fn new(payload_type: &str, payload: &[u8], signatures: &[(Digest, Signature)]) -> Self {
        let mut entries = Vec::new();
        for (keyid, signature) in signatures {
            entries.push(EnvelopeSignature { keyid: *keyid, sig: STANDARD.encode(signature.to_bytes()) });
        }
        Self { payload: STANDARD.encode(payload), payload_type: payload_type.to_owned(), signatures: entries }
    }

    /// Returns the type of the payload.
    pub fn payload_type(&self) -> &str {
        &self.payload_type
    }

    /// Returns the payload, without verifying it.
    pub fn payload(&self) -> Result<Vec<u8>, NotAnEnvelope> {
        STANDARD.decode(&self.payload).map_err(|_| NotAnEnvelope::Payload)
    }

    /// Returns the signatures and the names of their keys, without verifying them.
    pub fn signatures(&self) -> Result<Vec<(Digest, Signature)>, NotAnEnvelope> {
        let mut signatures = Vec::new();
        for EnvelopeSignature { keyid, sig } in &self.signatures {
            let bytes = STANDARD.decode(sig).map_err(|_| NotAnEnvelope::Signature)?;
            let bytes: [u8; 64] = bytes.try_into().map_err(|_| NotAnEnvelope::Signature)?;
            signatures.push((*keyid, Signature::from_bytes(&bytes)));
        }
        Ok(signatures)
    }
}

/// Returns the bytes that are signed: the pre-authentication encoding of DSSE.
pub fn signed_bytes(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Signs a payload together with its type.
pub fn sign(key: &SecretKey, payload_type: &str, payload: &[u8]) -> Signature {
    key.sign(&signed_bytes(payload_type, payload))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_signed_is_that_of_the_specification() {
        // This is the example in the description of the protocol (secure-systems-lab/dsse, protocol.md).
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
