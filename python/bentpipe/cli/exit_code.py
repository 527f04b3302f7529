"""The exit code of a command: errors are printed here, in one form.

    error: what is wrong, with the file, the key and the value
    hint: what to do about it

0 done, 1 failed, 2 not understood (nothing was started), 130 interrupted.
"""

from __future__ import annotations

import os
import sys

import click

from bentpipe.errors import BentpipeError


def of(command: click.Command, arguments: list[str], name: str) -> int:
    """Run a command, which the user knows by this name. Errors are printed, not raised, unless they are
    defects of Bentpipe.
    """
    try:
        code = command.main(arguments, prog_name=name, standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BentpipeError as error:
        return _fail(str(error), error.hint, error.exit_code)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message())
        return 0
    except click.UsageError as error:
        return _fail(error.format_message(), _usage_hint(error), 2)
    except click.ClickException as error:
        return _fail(error.format_message(), "", 1)
    except (KeyboardInterrupt, click.Abort):
        return _fail("interrupted", "", 130)
    except BrokenPipeError:  # the reader of our output went away; it needs no message
        _give_up_stdout()
        return 1
    except OSError as error:
        if error.filename is None and not _stdout_works():
            _give_up_stdout()
            return _fail(f"standard output: cannot be written: {error.strerror}", "", 1)
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error), "", 1)


def _stdout_works() -> bool:
    """Whether standard output takes one more line's end. What failed before may be lost to its buffer."""
    try:
        os.write(sys.stdout.fileno(), b"\n")
    except OSError:
        return False
    return True


def _give_up_stdout() -> None:
    """Send what is left to nowhere, so that the end of the process does not stumble over it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, hint: str, code: int) -> int:
    click.echo(f"error: {message}", err=True)
    if hint:
        click.echo(f"hint: {hint}", err=True)
    return code


def _usage_hint(error: click.UsageError) -> str:
    return f"see {error.ctx.command_path if error.ctx else 'bentpipe'} --help"
