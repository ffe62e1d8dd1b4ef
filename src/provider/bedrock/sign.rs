//! AWS Signature Version 4, with the credentials that AWS tools would find.
//!
//! The input is a request's URL and body. The output is the headers that sign it. Credentials come from the
//! environment, a profile of `~/.aws` (keys, single sign-on, a process, a role), a web identity, a container or the
//! machine's metadata, in that order. They are kept until they expire. They leave this module only to be removed from
//! what the service says.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reqsign_aws_v4::{Credential, DefaultCredentialProvider, RequestSigner};
use reqsign_core::{
    CommandExecute, CommandOutput, Context, Error, FileRead, HttpSend, ProvideCredential, Result, StaticEnv,
};
use reqwest::Url;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};

use crate::files::{SMALL_BYTES_MAX, read};
use crate::provider::{ProviderError, http};
use crypto::Digest;

/// The type of a request's body.
pub(super) const JSON: &str = "application/json";

/// The time that a credential service has to answer.
const CREDENTIALS_WAIT: Duration = Duration::from_secs(5);

/// The time that all sources of credentials have together. A process of the user's may have to ask a person first.
const CREDENTIALS_MAX: Duration = Duration::from_mins(1);

/// A signer of requests to Bedrock in one Region.
#[derive(Debug)]
pub(super) struct SigV4Signer {
    signer: reqsign_core::Signer<Credential>,
    found: FoundCredentials,
}

/// Credentials that were found, and that the caller has not collected yet.
#[derive(Clone, Default)]
struct FoundCredentials(Arc<Mutex<Vec<String>>>);

impl FoundCredentials {
    fn words(&self) -> MutexGuard<'_, Vec<String>> {
        // The list is whole even if the last holder of the lock panicked.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for FoundCredentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FoundCredentials").finish_non_exhaustive()
    }
}

/// A credential provider that searches as AWS tools do, and remembers the credentials that it finds.
#[derive(Debug)]
struct RecordingCredentials {
    credentials: DefaultCredentialProvider,
    found: FoundCredentials,
}

impl ProvideCredential for RecordingCredentials {
    type Credential = Credential;

    async fn provide_credential(&self, context: &Context) -> Result<Option<Credential>> {
        let credential = self.credentials.provide_credential(context).await?;
        if let Some(Credential { access_key_id, secret_access_key, session_token, .. }) = &credential {
            let words = [Some(access_key_id), Some(secret_access_key), session_token.as_ref()];
            self.found.words().extend(words.into_iter().flatten().cloned());
        }
        Ok(credential)
    }
}

impl SigV4Signer {
    /// Creates the signer, which searches for credentials when the first request is signed.
    pub(super) fn new(region: &str, profile: Option<&str>) -> Self {
        // A variable that is not text belongs to another program.
        let envs = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let env = StaticEnv { home_dir: etcetera::home_dir().ok(), envs: envs.collect() };
        let context = Context::new()
            .with_file_read(Local)
            .with_http_send(Local)
            .with_env(env)
            .with_command_execute(Local);
        let credentials = DefaultCredentialProvider::builder();
        let credentials = match profile {
            // A user who names a profile means it, whatever the environment holds.
            Some(profile) => credentials.with_profile(profile).no_env(),
            None => credentials,
        };
        let signer = RequestSigner::new("bedrock", region);
        let found = FoundCredentials::default();
        let credentials = RecordingCredentials { credentials: credentials.build(), found: found.clone() };
        Self { signer: reqsign_core::Signer::new(context, credentials, signer), found }
    }

    /// Returns the credentials that were found since the last call.
    pub(super) fn take_found(&self) -> Vec<String> {
        std::mem::take(&mut *self.found.words())
    }

    /// Returns the headers that sign a POST of `body`.
    pub(super) async fn sign(&self, url: &Url, body: &[u8]) -> std::result::Result<HeaderMap, ProviderError> {
        // S3 signs a path as it is sent, and the library does the same. All other services sign the path encoded once
        // more.
        let mut encoded = url.clone();
        encoded.set_path(&url.path().replace('%', "%25"));
        let request = ::http::Request::post(encoded.as_str())
            .header(CONTENT_TYPE, JSON)
            .header("x-amz-content-sha256", Digest::new(body).to_string())
            .body(())
            .map_err(|why| cannot_sign(&why))?;
        let (mut parts, ()) = request.into_parts();
        let signed = tokio::time::timeout(CREDENTIALS_MAX, self.signer.sign(&mut parts, None)).await;
        let signed = signed
            .map_err(|_| cannot_sign(&format_args!("no AWS credentials within {CREDENTIALS_MAX:?}")))?;
        signed.map_err(|e| {
            ProviderError::Setup(format!(
                "no usable AWS credentials: {e}; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE or AWS_BEARER_TOKEN_BEDROCK"
            ))
        })?;
        let mut headers = parts.headers;
        // The request has these two headers already.
        headers.remove(CONTENT_TYPE);
        headers.remove("host");
        headers.iter_mut().for_each(|(_, value): (_, &mut HeaderValue)| value.set_sensitive(true));
        Ok(headers)
    }
}

fn cannot_sign(why: &dyn std::fmt::Display) -> ProviderError {
    ProviderError::Setup(format!("the request cannot be signed: {why}"))
}

/// The sources of credentials: files, services and commands, as AWS's own configuration names them.
#[derive(Debug)]
struct Local;

impl FileRead for Local {
    async fn file_read(&self, path: &str) -> Result<Vec<u8>> {
        read(Path::new(path), SMALL_BYTES_MAX)
            .map_err(|e| Error::config_invalid(format!("cannot read {path}")).with_source(e))
    }
}

impl HttpSend for Local {
    async fn http_send(&self, request: ::http::Request<Bytes>) -> Result<::http::Response<Bytes>> {
        let failed =
            |e: reqwest::Error| Error::unexpected("the credential service did not answer").with_source(e);
        let host = request.uri().host().unwrap_or_default().to_owned();
        let client = http::for_credentials(&host, CREDENTIALS_WAIT).map_err(failed)?;
        let request = reqwest::Request::try_from(request).map_err(failed)?;
        let response = client.execute(request).await.map_err(failed)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let mut answer = ::http::Response::new(response.bytes().await.map_err(failed)?);
        (*answer.status_mut(), *answer.headers_mut()) = (status, headers);
        Ok(answer)
    }
}

impl CommandExecute for Local {
    async fn command_execute<'a>(&'a self, program: &'a str, args: &'a [&'a str]) -> Result<CommandOutput> {
        let output = tokio::process::Command::new(program).args(args).kill_on_drop(true).output().await;
        let output =
            output.map_err(|e| Error::config_invalid(format!("cannot run {program}")).with_source(e))?;
        let status = output.status.code().unwrap_or(-1);
        Ok(CommandOutput { status, stdout: output.stdout, stderr: output.stderr })
    }
}
