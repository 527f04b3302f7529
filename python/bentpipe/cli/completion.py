"""`bentpipe completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="Print what lets a shell complete commands and names.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print what lets SHELL complete the command line with the Tab key: commands, options, and the names of
    scenarios, stacks, treatments, suites, campaigns and studies. Bash must be 4.4 or newer.

    \b
    Examples:
      eval "$(bentpipe completion bash)"            in ~/.bashrc
      eval "$(bentpipe completion zsh)"             in ~/.zshrc
      bentpipe completion fish > ~/.config/fish/completions/bentpipe.fish
    """
    root = context.find_root()
    kind = get_completion_class(shell)
    assert kind is not None
    text = kind(root.command, {}, "bentpipe", "_BENTPIPE_COMPLETE").source()
    if shell == "fish":  # what it completes may have commas in it
        text = text.replace('string split ","', 'string split --max 1 ","')
    click.echo(text)
