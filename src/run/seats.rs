//! The seats of a panel: a person's choice of members, in place of the roleset's or in addition to them.
//!
//! The input is a request, a roleset and its packs. The output is both with these members. Nothing is read here.

use super::error::RunError;
use super::parameters::refuse;
use super::redaction::redacts;
use super::request::{RedactRequest, SeatRequest};
use crate::config::{Packs, Roleset, Seats, seat};
use crate::protocol::{Params, ProtocolParams as _};

impl SeatRequest {
    /// Puts these members into a roleset.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Usage`] if the roleset has no members, and [`RunError::Config`] if there are no such members.
    pub fn take(
        &self,
        roleset: &mut Roleset,
        packs: &mut Packs,
        redaction: &RedactRequest,
    ) -> Result<(), RunError> {
        let Self { members, models, copies, personas } = self;
        if !members.is_empty() || !models.is_empty() || copies.is_some() || !personas.is_empty() {
            refuse(roleset, "--members, --models, --self-panel or --persona", Params::has_members)?;
        }
        let is_redacted = redacts(redaction, roleset);
        seat(roleset, packs, &Seats { members, models, copies: *copies, personas, is_redacted })?;
        Ok(())
    }
}
