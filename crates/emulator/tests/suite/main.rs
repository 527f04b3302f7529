//! The emulator's test suite. What needs namespaces says so where there are none to be had.

mod topology;
