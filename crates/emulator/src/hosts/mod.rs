//! The hosts of a topology: namespaces, devices, addresses, and the programs on them.

pub(crate) mod addresses;
pub(crate) mod device;
pub(crate) mod further_path;
pub(crate) mod host;
pub(crate) mod namespace;
pub(crate) mod offload;
pub(crate) mod process_namespace;
pub(crate) mod topology;
