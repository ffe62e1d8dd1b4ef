//! Ed25519 (RFC 8032) keys and signatures, verified by one rule everywhere.
//!
//! Libraries differ in which malformed signatures they accept. Here a key must be in canonical form and not of small
//! order, and [`PublicKey::verifies`] applies the strict rule. So all verifiers agree on whether a signature is
//! valid.

use std::fmt;
use std::str::FromStr;

use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey as _, EncodePrivateKey as _, EncodePublicKey as _};
use ed25519_dalek::{Signer as _, SigningKey, VerifyingKey};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;

use super::Digest;

/// A key that signs. It is neither displayed nor serialised, and is overwritten in memory when it is dropped.
#[derive(Clone)]
pub struct SecretKey(SigningKey);

/// A key that verifies, in canonical form and not of small order. It is displayed as 64 lower-case hex digits.
#[derive(Clone, Copy)]
pub struct PublicKey(VerifyingKey);

/// An Ed25519 signature.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Signature(ed25519_dalek::Signature);

/// A text that is not a key.
#[derive(Clone, Debug, Error, Eq, PartialEq)]
pub enum NotAKey {
    /// The text of a public key has another form.
    #[error("a public key is 64 lower-case hex digits")]
    NotHex,
    /// The key is weak: a signature under it would prove nothing.
    #[error("the public key is not a point of the curve in canonical form, or is one of small order")]
    Weak,
    /// The text of a secret key has another form.
    #[error("this is not an Ed25519 secret key in PEM form (PKCS #8): {0}")]
    NotPem(String),
}

impl SecretKey {
    /// Derives the key from 32 random bytes.
    pub fn from_seed(seed: &[u8; 32]) -> Self {
        Self(SigningKey::from_bytes(seed))
    }

    /// Reads a key file in PEM form (PKCS #8), which other tools write too.
    ///
    /// # Errors
    ///
    /// [`NotAKey::NotPem`], which does not reveal anything of the text.
    pub fn from_pem(text: &str) -> Result<Self, NotAKey> {
        SigningKey::from_pkcs8_pem(text).map(Self).map_err(|e| NotAKey::NotPem(e.to_string()))
    }

    /// Returns the text of a key file.
    ///
    /// # Panics
    ///
    /// Never: a key of 32 bytes has a PKCS #8 form.
    pub fn to_pem(&self) -> String {
        let pem = self.0.to_pkcs8_pem(LineEnding::LF).expect("32 bytes have a PKCS #8 form");
        pem.as_str().to_owned()
    }

    /// Returns the key in DER form. This is a copy, and it is not overwritten when it is dropped.
    ///
    /// # Panics
    ///
    /// Never, as for [`SecretKey::to_pem`].
    pub fn to_der(&self) -> Vec<u8> {
        self.0.to_pkcs8_der().expect("32 bytes have a PKCS #8 form").as_bytes().to_vec()
    }

    /// Returns the key that verifies the signatures of this one.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key())
    }

    /// Signs a message. The same bytes always get the same signature.
    pub fn sign(&self, message: &[u8]) -> Signature {
        Signature(self.0.sign(message))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey(of {})", self.public())
    }
}

impl PublicKey {
    /// Returns the key with these bytes.
    ///
    /// # Errors
    ///
    /// [`NotAKey::Weak`] if the bytes are not the canonical form of a point, or if the point is of small order.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, NotAKey> {
        let key = VerifyingKey::from_bytes(bytes).map_err(|_| NotAKey::Weak)?;
        let is_canonical = key.to_edwards().compress().as_bytes() == bytes;
        if !is_canonical || key.is_weak() {
            return Err(NotAKey::Weak);
        }
        Ok(Self(key))
    }

    /// Returns the key's bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.0.as_bytes()
    }

    /// Returns the SHA-256 of the key's bytes: a short name, which proves nothing.
    pub fn id(&self) -> Digest {
        Digest::new(self.as_bytes())
    }

    /// Returns the key in PEM form (SPKI), for other tools.
    ///
    /// # Panics
    ///
    /// Never: a key of 32 bytes has an SPKI form.
    pub fn to_pem(&self) -> String {
        self.0.to_public_key_pem(LineEnding::LF).expect("32 bytes have an SPKI form")
    }

    /// Returns the key in DER form (SPKI).
    ///
    /// # Panics
    ///
    /// Never, as for [`PublicKey::to_pem`].
    pub fn to_der(&self) -> Vec<u8> {
        self.0.to_public_key_der().expect("32 bytes have an SPKI form").into_vec()
    }

    /// Returns true if the owner of this key signed these bytes.
    pub fn verifies(&self, message: &[u8], signature: &Signature) -> bool {
        self.0.verify_strict(message, &signature.0).is_ok()
    }
}

impl Eq for PublicKey {}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for PublicKey {
    type Err = NotAKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // The text has the form of a digest: 32 bytes.
        let bytes: Digest = text.parse().map_err(|_| NotAKey::NotHex)?;
        Self::from_bytes(bytes.as_bytes())
    }
}

impl Serialize for PublicKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PublicKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl Signature {
    /// Takes the bytes of a signature. Only verification shows whether they are a valid one.
    pub fn from_bytes(bytes: &[u8; 64]) -> Self {
        Self(ed25519_dalek::Signature::from_bytes(bytes))
    }

    /// Returns the signature's bytes.
    pub fn to_bytes(self) -> [u8; 64] {
        self.0.to_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_the_standard_hold() {
        // RFC 8032, section 7.1, tests 1 and 2.
        let bytes = |hex: &str| -> Vec<u8> {
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
        };
        for (seed, public, message, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
                "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
                "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            ),
        ] {
            let key = SecretKey::from_seed(&bytes(seed).try_into().unwrap());
            assert_eq!(key.public().to_string(), public);
            assert_eq!(key.sign(&bytes(message)).to_bytes().to_vec(), bytes(signature));
            let known: PublicKey = public.parse().unwrap();
            let signed = Signature::from_bytes(&bytes(signature).try_into().unwrap());
            assert!(known.verifies(&bytes(message), &signed));
            assert!(!known.verifies(b"something else", &signed));
        }
    }

    #[test]
    fn a_key_under_which_anything_verifies_is_none() {
        let identity = {
            let mut bytes = [0; 32];
            bytes[0] = 1;
            bytes
        };
        // The identity in a form that is not canonical: its y is written as 1 + p.
        let not_canonical = {
            let mut bytes = [0xff; 32];
            (bytes[0], bytes[31]) = (0xee, 0x7f);
            bytes
        };
        for bytes in [[0; 32], identity, not_canonical] {
            assert!(matches!(PublicKey::from_bytes(&bytes), Err(NotAKey::Weak)), "{bytes:?}");
        }
        assert!(matches!("D75A".parse::<PublicKey>(), Err(NotAKey::NotHex)));
    }

    #[test]
    fn a_signature_has_one_form() {
        // Adding the order of the group to the second half gives bytes that lax rules accept as the same signature.
        const ORDER: [u8; 32] = [
            0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14,
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
        ];
        let key = SecretKey::from_seed(&[7; 32]);
        let mut bytes = key.sign(b"once").to_bytes();
        let mut carry = 0;
        for (byte, order) in bytes[32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*byte) + u16::from(order) + carry;
            *byte = u8::try_from(sum & 0xff).unwrap();
            carry = sum >> 8;
        }
        assert!(!key.public().verifies(b"once", &Signature::from_bytes(&bytes)));
    }

    /// The debug form of a secret key does not show the secret.
    #[test]
    fn key_file_reads_back_as_written() {
        let key = SecretKey::from_seed(&[9; 32]);
        let pem = key.to_pem();
        assert!(pem.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{pem}");
        assert_eq!(SecretKey::from_pem(&pem).unwrap().public(), key.public());
        assert!(key.public().to_pem().starts_with("-----BEGIN PUBLIC KEY-----\n"));
        assert!(!format!("{key:?}").contains("09090909"));
        assert!(matches!(SecretKey::from_pem("nothing"), Err(NotAKey::NotPem(_))));
    }
}
