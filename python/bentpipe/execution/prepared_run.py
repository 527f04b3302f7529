"""A run that can be executed."""

from __future__ import annotations

from dataclasses import dataclass

from bentpipe.plan.campaign import PlanVariants
from bentpipe.runs.manifest import Manifest
from bentpipe.runs.run_folder import RunFolder
from bentpipe.testbed import TESTBEDS, Testbed


@dataclass(frozen=True)
class PreparedRun:
    """A run with its folder, its manifest, and the variants of its stacks as they are here."""

    folder: RunFolder
    manifest: Manifest
    variants: PlanVariants

    @property
    def testbed(self) -> Testbed:
        return TESTBEDS[self.manifest.plan.testbed]
