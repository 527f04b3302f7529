//! The slow starts against traces computed by hand and the pseudocode of their specifications, and on a model of a path.

#[path = "slow_start/feed.rs"]
mod feed;
#[path = "slow_start/hybla.rs"]
mod hybla;
#[path = "slow_start/hystart.rs"]
mod hystart;
#[path = "slow_start/hystart_plus_plus.rs"]
mod hystart_plus_plus;
#[expect(dead_code, reason = "the notes say what the samples and shares would")]
mod model;
#[path = "slow_start/paths.rs"]
mod paths;
#[path = "slow_start/properties.rs"]
mod properties;
#[path = "slow_start/search.rs"]
mod search;
#[path = "slow_start/search4.rs"]
mod search4;
