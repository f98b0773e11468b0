//! What a person should know before saying yes: the rights that an install grants and takes, what a new version of a
//! definition breaks, and how two versions of an install differ.

pub mod crd_safety;
pub mod rights;
pub mod upgrade;
