"""Weather on the way to a satellite: attenuation over time, synthesised from the climate of a place."""
