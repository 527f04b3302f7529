//! Namespaces, held by file descriptor: they vanish with the last holder.

/// A network namespace.
#[derive(Debug)]
pub struct Namespace;
