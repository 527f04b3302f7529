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
    "masque": "programs:masque",
    "worker": "worker:worker",
    "completion": "completion:completion",
}

# What to do next, for who types `bentpipe` alone.
_FIRST = """\
Bentpipe: real QUIC and TCP stacks over satellite links, in virtual time. What to do next:
  bentpipe explore       move a path's sliders in the browser, and see the transfer change
  bentpipe run           stacks against each other over the ground, LEO and GEO, and a report
  bentpipe stacks        which stacks are installed; bentpipe scenarios: which paths there are
  bentpipe --help        all commands; bentpipe COMMAND --help has examples"""


@click.group(
    cls=LazyGroup,
    places={name: f"{__package__}.{place}" for name, place in PLACES.items()},
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    invoke_without_command=True,
    epilog=f"Pages that help texts name, such as docs/reference/campaigns.md, are in {paths.root()}",
)
@click.version_option(bentpipe.__version__, prog_name="bentpipe")
@click.pass_context
def cli(context: click.Context) -> None:
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
      bentpipe masque proxy --config masque.toml    a proxy for UDP over HTTP/3
    """
    if context.invoked_subcommand is None:
        click.echo(_FIRST)


def invoke(arguments: list[str]) -> int:
    """Run one command; its exit code. Errors are printed, not raised, unless they are defects of Bentpipe."""
    return exit_code.of(cli, arguments, "bentpipe")
