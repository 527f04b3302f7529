"""Places on the ground, on the WGS84 ellipsoid, and what they see of the sky."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bentpipe.errors import UsageError

Positions = NDArray[np.float64]  # a row of x, y and z for each satellite

EQUATOR_KM = 6378.137  # WGS84, as is the flattening
_FLATTENING = 1 / 298.257223563
_HIGHEST_KM = 20.0  # of a place on the ground or above it


@dataclass(frozen=True)
class Place:
    """A place by geodetic latitude and longitude in degrees, and its altitude above the ellipsoid."""

    latitude: float
    longitude: float
    altitude_km: float = 0.0

    @classmethod
    def parse(cls, text: str, where: str) -> Place:
        """`49.6,11.0` or `49.6,11.0,0.3`, the altitude in kilometres; UsageError that names `where`."""
        hint = f"write LATITUDE,LONGITUDE in degrees, north and east positive, as in {where} 49.6,11.0"
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise UsageError(f'{where}: "{text}" is no place', hint) from None
        if len(numbers) not in (2, 3) or not all(map(math.isfinite, numbers)):
            raise UsageError(f'{where}: "{text}" is no place', hint)
        latitude, longitude, altitude = (*numbers, 0.0)[:3]
        if abs(latitude) > 90:
            raise UsageError(f"{where}: {text}: a latitude of {latitude:g} is not from -90 to 90", hint)
        if abs(longitude) > 180:
            raise UsageError(f"{where}: {text}: a longitude of {longitude:g} is not from -180 to 180", hint)
        if not -1 <= altitude <= _HIGHEST_KM:
            raise UsageError(
                f"{where}: {text}: an altitude of {altitude:g} km is not from -1 to {_HIGHEST_KM:g} km",
                "the third number is the altitude above the ellipsoid in kilometres",
            )
        return cls(latitude, longitude, altitude)

    def __str__(self) -> str:
        altitude = f",{self.altitude_km:g}" if self.altitude_km else ""
        return f"{self.latitude:g},{self.longitude:g}{altitude}"

    def position(self) -> Positions:
        """Its position, x towards latitude 0 and longitude 0, z towards the north."""
        sine, squared = math.sin(math.radians(self.latitude)), _FLATTENING * (2 - _FLATTENING)
        normal = EQUATOR_KM / math.sqrt(1 - squared * sine * sine)
        across, along = normal + self.altitude_km, normal * (1 - squared) + self.altitude_km
        return np.asarray(self.up() * np.array([across, across, along]))

    def up(self) -> Positions:
        """The direction at right angles to the ellipsoid, of length 1."""
        latitude, longitude = math.radians(self.latitude), math.radians(self.longitude)
        return np.array(
            [
                math.cos(latitude) * math.cos(longitude),
                math.cos(latitude) * math.sin(longitude),
                math.sin(latitude),
            ]
        )

    def ranges(self, satellites: Positions) -> NDArray[np.float64]:
        """The distance to each satellite in a straight line, in kilometres."""
        return np.asarray(np.linalg.norm(satellites - self.position(), axis=-1))

    def elevations(self, satellites: Positions) -> NDArray[np.float64]:
        """How high each satellite stands above the horizon, in degrees, without refraction."""
        towards = satellites - self.position()
        sine = (towards @ self.up()) / np.linalg.norm(towards, axis=-1)
        return np.asarray(np.degrees(np.arcsin(np.clip(sine, -1, 1))))
