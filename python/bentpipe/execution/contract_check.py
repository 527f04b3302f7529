"""A check that every endpoint refuses a test case that it does not know, with a random one."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bentpipe.plan.campaign import PlanVariants
from bentpipe.stacks import loopback, pipe
from bentpipe.stacks.model import Stack
from bentpipe.testbed import Testbed


@dataclass(frozen=True)
class ContractCheck:
    """The check of a plan's stacks on a testbed; its files go to `scratch`."""

    variants: PlanVariants
    testbed: Testbed
    scratch: Path
    silence_s: int

    def breaches(self, pool: ThreadPoolExecutor) -> dict[str, str]:
        """The breaches of the contract: `stack as role` → what it did instead of ending with 127."""
        word = f"unknown-{random.SystemRandom().getrandbits(32):08x}"
        wanted = {}
        for role, variants in (("client", self.variants.clients), ("server", self.variants.servers)):
            for variant in variants.values():
                wanted[f"{variant.stack.name} as {role}"] = (variant.stack, role)
        asked = {name: pool.submit(self._refusal, *which, word) for name, which in wanted.items()}
        return {name: answer for name, future in asked.items() if (answer := future.result())}

    def _refusal(self, stack: Stack, role: str, word: str) -> str | None:
        """None if the program says that it does not know the test case `word`; else what it did, in words."""
        if self.testbed.mode == "sockets":
            www, folder = self.scratch / "www", self.scratch / f"{stack.name}-{role}"
            www.mkdir(exist_ok=True)
            asked = loopback.Transfer(www, ("/1000",), folder, testcase=word, alpn=stack.alpn[0])
            return loopback.refusal(stack, role, asked)
        greeting = pipe.hello(role, word, {}, self.scratch, stack.file_protocol)
        return pipe.refusal(stack.command("virtual-time"), greeting, self.silence_s)
