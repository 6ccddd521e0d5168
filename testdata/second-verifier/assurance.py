"""What a proof rests on, what a reader demands of that, and policy files: sections "What a proof rests on" and "Policy file" of docs/format.md."""

import report as reports
from canonical import parse, without_mark
from shapes import digest_of_value, members, require

LEVELS = ("signed", "operator", "independent", "independent-qualified")
KEYS = ("operator", "ca", "owner")
CLOCKS = ("operator", "independent", "qualified")
LOGS = ("alone", "compared", "witnessed", "witnessed_and_compared")
_WORDS = {"level": LEVELS, "keys": KEYS, "time": CLOCKS, "log": LOGS}
_ROLES = ("agent", "reviewer", "submitter", "juror", "judge", "clerk", "operator", "recorder")


class Need:
    """What a reader demands. Each part is a word, or None."""

    def __init__(self, level=None, keys=None, time=None, log=None, require_=(), file=None):
        self.level, self.keys, self.time, self.log = level, keys, time, log
        self.require, self.file = tuple(require_), file

    def counts(self, kind, guarantee, default):
        """Whether a guarantee counts for the outcome of a file of this kind; default: whether it does by default."""
        if guarantee in self.require:
            return True
        if self.level == "signed":
            return guarantee in ("content", "authentication") or kind == "checkpoint" and guarantee == "order"
        if kind not in ("checkpoint", "files"):
            if guarantee == "non_repudiation" and self.level in LEVELS[2:] or guarantee == "qualified" and self.level == LEVELS[3]:
                return True
        return default

    def of_clock(self):
        """Whether the operator's clock is not enough."""
        return self.level in LEVELS[2:] or self.time in CLOCKS[1:]

    def unmet(self, kind, basis):
        """The parts that fall short."""
        alone = kind == "checkpoint"
        independent = self.level in LEVELS[2:]
        time = max(_rank(CLOCKS, self.time), {LEVELS[2]: 1, LEVELS[3]: 2}.get(self.level, -1))
        keys = max(_rank(KEYS, self.keys), 1 if independent else -1)
        short = {
            "keys": not alone and _rank(KEYS, basis.get("keys")) < keys,
            "time": not alone and _rank(CLOCKS, basis.get("time")) < time,
            "log": not _log_meets(basis.get("log"), self.log) or independent and basis.get("log") in (None, "alone"),
        }
        return [part for part, is_short in short.items() if is_short]

    def stated(self):
        """The member demanded of a report."""
        said = {name: value for name in _WORDS if (value := getattr(self, name))}
        if self.require:
            said["guarantees"] = list(self.require)
        return said | ({"policy_file": self.file} if self.file else {})


def parse_need(texts):
    """The need of arguments as 'jurat verify --require' has them."""
    found, guarantees = {}, []
    for text in texts:
        part, is_part, value = text.partition("=")
        if text in LEVELS:
            part, value = "level", text
        elif not is_part:
            require(text.replace("-", "_") in reports.GUARANTEES, f"{text} is no level, part or guarantee")
            guarantees.append(text.replace("-", "_"))
            continue
        require(value in _WORDS.get(part, ()) and (part != "level" or text == value), f"{text} is no demand")
        found[part] = _both(part, found.get(part, value), value)
    return Need(**found, require_=guarantees)


def _both(part, one, other):
    """What demands both words of a part."""
    require(part != "level" or one == other, "two levels")
    if part == "log":
        return one if _log_meets(one, other) else other if one == "alone" else LOGS[3]
    return max(one, other, key=_WORDS[part].index)


def parse_policy(data):
    """A policy file."""
    require(len(data) <= 1 << 20, "it is too long")
    source = parse(without_mark(data))
    members(source, ("format",), ("name", "level", "keys", "time", "log", "strict", "require", "demands"))
    require(source["format"] == "jurat/policy/v1", "no policy file")
    for name, words in _WORDS.items():
        require(name not in source or source[name] in words, f"{name} is no word that it may have")
    for name, kind in (("name", str), ("strict", bool), ("require", list), ("demands", list)):
        require(source.get(name) is None or isinstance(source[name], kind), f"{name} is of another kind")
    guarantees = source.get("require") or []
    require(all(item in reports.GUARANTEES for item in guarantees), "require has what is no guarantee")
    require(len(set(guarantees)) == len(guarantees), "require has one twice")
    require(not source.get("strict") and not source.get("demands"), "this verifier knows neither strict nor demands")
    require(guarantees or any(name in source for name in _WORDS), "it demands nothing")
    file = ({"name": source["name"]} if source.get("name") else {}) | {"fingerprint": digest_of_value(source)}
    return Need(*(source.get(name) for name in _WORDS), require_=guarantees, file=file)


def rate(findings, answers):
    """What the proof of one file rests on."""
    proved = {item["guarantee"] for item in answers if item["status"] == reports.PROVED}
    asked = {item["guarantee"] for item in answers}
    refuted = any(item["status"] == reports.REFUTED for item in answers)
    alone = findings.kind == "checkpoint"
    basis = {}
    if findings.log is not None and "order" in proved:
        basis["log"] = LOGS[2 * findings.witnessed + findings.compared]
    signed = "order" in proved if alone else {"content", "authentication"} <= proved
    if signed and not alone:
        by_ca = any(party[2] == "cas" for party in findings.parties)
        basis["keys"] = "operator" if "non_repudiation" not in proved else "ca" if by_ca else "owner"
        if "time" in proved and findings.times:
            basis["time"] = min(map(_clock, findings.times), key=CLOCKS.index)
        parties = sorted(findings.parties, key=lambda party: (_ROLES.index(party[0]), *party[1:]))
        if parties:
            basis["parties"] = [dict(zip(("role", "custody", "by"), party)) for party in parties]
    required = {guarantee for guarantee in asked if reports.counts_by_default(findings.kind, guarantee)}
    if level := _level(basis, signed, required <= proved and not refuted, alone, bool(findings.own_word)):
        basis["level"] = level
    return basis


def _clock(time):
    if time["clock"] != "independent" and "independent" not in time:
        return "operator"
    return "qualified" if "qualified" in time else "independent"


def _level(basis, signed, proved, alone, own_word):
    if not signed:
        return None
    if not proved:
        return "signed"
    if own_word or basis.get("log") in (None, "alone") or not alone and (basis["keys"] == "operator" or basis.get("time") in (None, "operator")):
        return "operator"
    return "independent-qualified" if basis.get("time") == "qualified" else "independent"


def _rank(words, word):
    return words.index(word) if word else -1


def _log_meets(log, wanted):
    return log == wanted or wanted is None or wanted == "alone" and log is not None or log == "witnessed_and_compared"
