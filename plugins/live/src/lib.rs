//! Everything that talks to API servers. Nothing here decides what a cluster should hold: that is rendered before the
//! first connection is made, and a fleet that has errors is never compared with anything.
//!
//! | module | what it does |
//! |---|---|
//! | [`connect`] | kubeconfig contexts become connections |
//! | [`api`] | the few requests that are made, and errors in kubectl's words |
//! | [`fields`] | who owns which field, and which fields differ |
//! | [`survey`] | what is wanted in a cluster beside what is there |
//! | [`fleet`] | the same work in many clusters at once, one failing without the others |
//! | [`order`] | what other clusters need stands before it is used |
//! | [`diff`], [`apply`], [`status`] | the verbs about objects |
//! | [`support`] | a document for somebody who helps |
//! | [`plugin`] | what the plugins for one kind of document have in common |
//! | [`import`], [`discover`] | the inventory and the places of services, written by themselves |

pub mod api;
pub mod apply;
pub mod connect;
pub mod diff;
pub mod discover;
pub mod fields;
pub mod fleet;
pub mod import;
pub mod order;
pub mod plugin;
pub mod status;
pub mod support;
pub mod survey;
