#!/usr/bin/env python3
"""Runs verify.py several times in one process, so that the program is read once and openssl is asked once.

    python3 several.py <LISTS

reads a JSON array of lists of arguments, and prints for each list one JSON object on a line of its own: the exit code of
verify.py with these arguments, and what it printed.
"""

import contextlib
import io
import json
import sys

sys.dont_write_bytecode = True

import verify  # noqa: E402


def main():
    for arguments in json.load(sys.stdin):
        sys.argv[1:] = arguments
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                code = verify.main()
            except SystemExit as refused:  # arguments that cannot be read
                code = refused.code
        print(json.dumps({"exit": code, "out": out.getvalue()}), flush=True)


if __name__ == "__main__":
    main()
