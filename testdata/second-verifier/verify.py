#!/usr/bin/env python3
"""A second verifier of jurat's records, bundles and trials, written from docs/format.md alone.

    python3 verify.py [--trust TRUST] [--before TIME] [--at TIME] [--crl FILE]... [--grace SECONDS]
                      [--checkpoint FILE] [--consistency FILE] [--entries FILE] [--require WHAT]... [--policy FILE] FILE...
    python3 verify.py - <LISTS

prints the report on each file as JSON. LISTS is a JSON array of lists of such arguments; then one JSON object is printed for
each, on a line of its own: the exit code that they have, and what they print. It needs Python 3.11 and the command openssl, and nothing else. It ends with the
exit code that the section "Exit codes" gives.
"""

import argparse
import base64
import contextlib
import io
import json
import sys
import traceback
from pathlib import Path

sys.dont_write_bytecode = True

import assurance  # noqa: E402
import files  # noqa: E402
import keys  # noqa: E402
import report as reports  # noqa: E402
import revocation  # noqa: E402
import trust as trusts  # noqa: E402
import verification  # noqa: E402
from canonical import Refused  # noqa: E402
from shapes import moment, require  # noqa: E402


def main(given):
    arguments = _arguments(given)
    try:
        trust = trusts.Trust(Path(arguments.trust).read_bytes()) if arguments.trust else trusts.NO_TRUST
        reader = _reader(arguments)
    except (OSError, Refused) as err:
        print(f"verify.py: {err}", file=sys.stderr)
        return 2
    found = [_verify(path, trust, reader) for path in arguments.files]
    joint = list(reader.together.reports(trust, reader.need))
    for report in joint:
        print(json.dumps(report, indent=2, ensure_ascii=False))
    return exit_code([*outcomes_of(found, joint), *(report["outcome"] for report in joint)])


def outcomes_of(found, joint):
    """The outcome of each file, None of one that could not be read. What a file alone leaves open, all together can prove."""
    proved = {report["log"]["origin"] for report in joint if report["outcome"] == reports.PROVED}
    for report in found:
        rests = report and report.get("log", {}).get("origin") in proved and reports.is_open_alone(report)
        yield reports.PROVED if rests else report and report["outcome"]


def _arguments(given):
    parser = argparse.ArgumentParser(description="Verifies files of jurat, offline.")
    parser.add_argument("--trust", help="the trust file")
    parser.add_argument("--before", type=_moment, help="a moment: did it exist before?")
    parser.add_argument("--at", type=_moment, help="the moment of checking")
    parser.add_argument("--crl", action="append", default=[], help="a certificate revocation list, in DER or PEM")
    parser.add_argument("--grace", type=int, help="seconds after a record's proved time from which a list counts that is out of date")
    parser.add_argument("--checkpoint", help="a checkpoint of the log that was got elsewhere")
    parser.add_argument("--consistency", help="a consistency file between that checkpoint and the file's")
    parser.add_argument("--entries", help="all entries of the log")
    parser.add_argument("--require", action="append", default=[], help="a level, keys=, time=, log= or a guarantee that must be proved")
    parser.add_argument("--policy", help="a policy file")
    parser.add_argument("files", nargs="+", metavar="FILE")
    return parser.parse_args(given)


def _several():
    for given in json.load(sys.stdin):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exit_ = main(given)
            except SystemExit as refused:  # arguments that cannot be read
                exit_ = refused.code
        print(json.dumps({"exit": exit_, "out": out.getvalue()}), flush=True)
    return 0


def _moment(text):
    time = moment(text)
    if time is None:
        raise argparse.ArgumentTypeError("no RFC 3339 time")
    return time


def _reader(given):
    require(not (given.policy and given.require), "this verifier takes --policy or --require, and not both")
    need = assurance.parse_policy(Path(given.policy).read_bytes()) if given.policy else assurance.parse_need(given.require)
    known = {name: Path(path).read_bytes() for name in verification.GIVEN if (path := getattr(given, name))}
    return verification.Reader(given.before, given.at, [_list(path) for path in given.crl], given.grace, need, **known)


def _list(path):
    data = Path(path).read_bytes()
    if not data.startswith(b"\x30"):
        data = base64.b64decode(b"".join(line for line in data.splitlines() if not line.startswith(b"-----")))
    return revocation.List(data)


def _verify(path, trust, reader):
    """Prints the report and gives it, or None if there is nothing to report on."""
    try:
        report = verification.verify(Path(path).read_bytes(), trust, reader)
    except (OSError, files.NoFile, keys.Unsupported) as err:
        print(f"verify.py: {path}: {err}", file=sys.stderr)
        return None
    print(json.dumps(report, indent=2, ensure_ascii=False))
    return report


def exit_code(outcomes):
    """1 if any is refuted, else 2 if any could not be read, else 3 if any is not proved."""
    if reports.REFUTED in outcomes:
        return 1
    if None in outcomes:
        return 2
    return 3 if reports.NOT_PROVED in outcomes else 0


if __name__ == "__main__":
    try:
        code = _several() if sys.argv[1:] == ["-"] else main(sys.argv[1:])
    except Exception:  # pylint: disable=broad-exception-caught
        traceback.print_exc()  # a fault of this program refutes nothing: Python would end with 1
        code = 2
    sys.exit(code)
