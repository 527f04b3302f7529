//! Rates, times, sizes and ratios with their units.
