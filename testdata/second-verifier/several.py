#!/usr/bin/env python3
"""Runs verify.py several times, each time in a process of its own, and reads the program only once.

    python3 several.py <LISTS

reads a JSON array of lists of arguments, and prints for each list one JSON object on a line of its own: the exit code of
verify.py with these arguments, and what it printed.
"""

import json
import os
import sys

sys.dont_write_bytecode = True

import verify  # noqa: E402


def main():
    for arguments in json.load(sys.stdin):
        read, write = os.pipe()
        if os.fork() == 0:
            os.dup2(write, 1)
            os.close(read)
            os.close(write)
            sys.argv[1:] = arguments
            sys.exit(verify.main())
        os.close(write)
        with open(read, encoding="utf-8") as pipe:
            out = pipe.read()
        _, status = os.wait()
        print(json.dumps({"exit": os.waitstatus_to_exitcode(status), "out": out}), flush=True)


if __name__ == "__main__":
    main()
