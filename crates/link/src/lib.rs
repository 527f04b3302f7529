//! One direction of a segment as a pure node, and scenario files.
