//! The promises that users rely on, one file each. One binary, so that it links once.

mod support;

mod hostile;
mod scenarios;
