"""The commands of `bentpipe`."""

from __future__ import annotations

import click

import bentpipe
from bentpipe import paths
from bentpipe.cli import exit_code
from bentpipe.cli.lazy_group import LazyGroup

PLACES = {
    "run": "run:run",
    "explore": "explore:explore",
    "shell": "shell:shell",
    "doctor": "doctor:doctor",
    "lab": "lab:lab",
    "scenarios": "scenarios:scenarios",
    "page": "page:page",
    "stacks": "stacks:stacks",
    "report": "report:report",
    "site": "site:site",
    "check": "check:check",
    "objectives": "objectives:objectives",
    "study": "study:study",
    "compare": "compare:compare",
    "trace": "trace:trace",
    "plot": "plot:plot",
    "losses": "losses:losses_command",
    "qlog": "qlog:qlog",
    "replay": "replay:replay",
    "runner": "runner:runner",
    "perf": "programs:perf",
    "pep": "programs:pep",
    "tcp-pep": "programs:tcp_pep",
    "worker": "worker:worker",
}


@click.group(
    cls=LazyGroup,
    places={name: f"{__package__}.{place}" for name, place in PLACES.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=f"Pages that help texts name, such as docs/reference/campaigns.md, are in {paths.root()}",
)
@click.version_option(bentpipe.__version__, prog_name="bentpipe")
def cli() -> None:
    """The laboratory for transport over satellite links.

    \b
    Examples:
      bentpipe run                                  the demo campaign, in virtual time
      bentpipe run --scenario sat --client quinn --server quic-go
      bentpipe check quic-4-sat --server quinn      is it good enough, and did it get worse?
      bentpipe shell sat -- ping server             any command behind a satellite link
      bentpipe scenarios                            which paths there are
      bentpipe stacks                               which implementations of QUIC and TCP there are
      bentpipe perf server                          an iperf3 for QUIC, with `bentpipe perf client`
      bentpipe pep --config pep.toml                a proxy for QUIC over satellites
      bentpipe tcp-pep --config tcp-pep.toml        a proxy for TCP over satellites
    """


def invoke(arguments: list[str]) -> int:
    """Run one command; its exit code. Errors are printed, not raised, unless they are defects of Bentpipe."""
    return exit_code.of(cli, arguments, "bentpipe")
