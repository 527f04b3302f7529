//! A client's connection and the one that it is carried over.
//!
//! Promises: streams keep their IDs, order and ends on the other side, what is buffered stays within the limits, and no reset
//! becomes a FIN. Knows the two connections of a pair; must not know sockets, names or other pairs.

pub mod close;
pub mod direction;
mod ending;
pub mod pair;
pub mod pairs;
mod stream;
mod stream_opener;
