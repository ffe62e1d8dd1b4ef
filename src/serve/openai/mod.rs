//! Agreement as a model: the two forms of OpenAI's interface, chat completions and responses.
//!
//! The input is a request in one of the forms. The output is the answer of its run in the same form, whole or as a stream.

pub(super) mod answering;
mod chat_reply;
mod chat_request;
mod response_reply;
mod response_request;
