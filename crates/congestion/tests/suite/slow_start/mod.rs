//! The slow starts against traces computed by hand and the pseudocode of their specifications, and
//! on a model of a path.

mod careful_resume;
mod hybla;
mod hystart;
mod hystart_plus_plus;
mod paths;
mod properties;
mod search;
mod search4;
