//! The input is one file of documents: a whole fleet, as the fuzzer made it.

#![no_main]
#![allow(clippy::unwrap_used, clippy::panic, reason = "the fuzzer sees a panic")]

mod judge;

use libfuzzer_sys::fuzz_target;
use mesh::source::File;

fuzz_target!(|bytes: &[u8]| {
    let path = "fleet.yaml".to_owned();
    judge::judge(vec![File { path: path.clone(), relative: path, bytes: bytes.to_vec(), explicit: true }]);
});
