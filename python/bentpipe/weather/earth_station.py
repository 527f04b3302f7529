"""An earth station and the geostationary satellite that it sees."""

from __future__ import annotations

import math
from dataclasses import dataclass

_EARTH_KM = 6378.137  # equatorial radius, WGS 84
_ORBIT_KM = 42164.17  # radius of the geostationary orbit


@dataclass(frozen=True)
class EarthStation:
    """A place on the ground and the longitude of its satellite, in degrees, north and east positive."""

    latitude: float
    longitude: float
    satellite_longitude: float

    def elevation(self) -> float:
        """How high the satellite stands above the horizon, in degrees, over a spherical Earth."""
        apart = math.radians(self.satellite_longitude - self.longitude)
        cosine = math.cos(math.radians(self.latitude)) * math.cos(apart)
        sine = math.sqrt(1 - cosine**2)
        return math.degrees(math.atan2(cosine - _EARTH_KM / _ORBIT_KM, sine))
