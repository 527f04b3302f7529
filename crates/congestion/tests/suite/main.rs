//! The congestion test suite: algorithms against traces computed by hand and the pseudocode of
//! their specifications, and controllers on a model of a path.

mod avoidance;
mod careful_resume;
mod changes;
mod congestion_events;
mod feed;
mod model;
mod properties;
mod random_loss;
mod random_paths;
mod rapid_and_jump_start;
mod sender;
mod slow_start;
mod snapshots;
mod trains;
