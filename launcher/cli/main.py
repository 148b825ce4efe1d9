"""main: arguments to an exit code; the only broad except."""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from contextlib import suppress
from pathlib import Path

from launcher.model.problem import Exit, LauncherError, Problem

# garbage is looked for after so many new objects: with the usual 700, a tenth of a run without changes goes
# into hundreds of looks at the modules that were just imported
OBJECTS_UNTIL_COLLECTION = 50_000

# what a machine may say to any file at any time
NOT_OURS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO})


def main() -> None:
    """The command `dsv32-launch`: what is wrong with input or fleet ends in Problems, our bugs in a line."""
    gc.set_threshold(OBJECTS_UNTIL_COLLECTION)
    prepare_streams()
    from launcher.cli.app import app
    from launcher.cli.interrupt import Stopped, stop_on_signal

    stop_on_signal()
    try:
        app(prog_name="dsv32-launch")
    except LauncherError as error:
        report(error)
        sys.exit(error.exit_code)
    except Stopped:
        sys.stderr.write("\ninterrupted\n")
        sys.exit(Exit.INTERRUPTED)
    except BrokenPipeError:
        sys.stderr.close()  # whoever read our output has seen enough
        sys.exit(Exit.DONE)
    except OSError as error:
        if error.errno not in NOT_OURS:
            sys.exit(own_fault(error, save_traceback(error)))
        sys.exit(no_room(error))
    except Exception as error:
        # late: hosts wait to be connected
        from launcher.cli.running import BugInRunError

        if isinstance(error, BugInRunError):
            sys.exit(own_fault(error.__cause__ or error, error.path))
        sys.exit(own_fault(error, save_traceback(error)))
    finally:
        gc.freeze()  # or the interpreter looks through all objects once more at its end: another tenth


def prepare_streams() -> None:
    """What is written goes somewhere, whatever the caller closed and whichever letters its locale has."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed, in the order of numbers: no connection may take its number
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
        elif mode == "w" and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def report(error: LauncherError) -> None:
    """The Problems, for people or as JSON lines."""
    from launcher.cli.output import choose

    choose(json_lines="--json" in sys.argv).problems(error.problems)


def no_room(error: OSError) -> Exit:
    """This machine, not a host, did not take what we had to write; said where there may be room."""
    from launcher.cli.words import problem_lines

    problem = Problem(
        f"this machine cannot write: {os.strerror(error.errno or errno.EIO).lower()}",
        where=str(error.filename or "what this command prints to"),
        do="make room, or write somewhere else; then run it again",
    )
    with suppress(OSError):
        sys.stderr.writelines(f"{line}\n" for line in problem_lines((problem,)))
    return Exit.HOSTS_FAILED


def own_fault(error: BaseException, path: Path) -> Exit:
    """One line to the user: this is a bug, and where its traceback is."""
    sys.stderr.write(
        f"error: this is a bug of dsv32-launch: {type(error).__name__}: {error}\n  more   {path}\n"
    )
    return Exit.HOSTS_FAILED


def save_traceback(error: BaseException) -> Path:
    """A file of its own for an exception outside of any run."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="dsv32-launch-", suffix=".txt", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return Path(file.name)


if __name__ == "__main__":
    main()
