"""A client for jurat: seal what an agent said, sign it with one's own key, put an agent before the jury, verify what comes back.

It needs Python 3.9 and its standard library alone. Python has no signatures there, so the program `openssl` (3.0 or later)
makes them; `jurat verify` verifies. docs/api.md describes the server, docs/format.md the records.
"""

import base64
import decimal
import hashlib
import http.client
import json
import os
import pathlib
import secrets
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

MAX_BYTES = 33_554_432
MAX_DEPTH = 128


class Refused(ValueError):
    """The value has no canonical form, or the record is not what was signed. The message says where and why."""


class Problem(Exception):
    """What the server has against a request (RFC 9457): name, status, detail, field and hint."""

    def __init__(self, status, body):
        self.status, self.body = status, body
        self.name = str(body.get("type", "")).rpartition(":")[2]
        self.detail, self.field, self.hint = body.get("detail", ""), body.get("field", ""), body.get("hint", "")
        said = [f"{status} {self.name}: {self.detail or body.get('title', '')}"]
        super().__init__("; ".join(said + [f"{k}: {v}" for k, v in (("field", self.field), ("hint", self.hint)) if v]))


# Canonical JSON: RFC 8785, restricted as in docs/format.md, section "Canonical form".


def parse(document):
    """Reads JSON that has a canonical form. A member twice, or a number that a float cannot hold exactly, is Refused."""
    text = document
    if isinstance(document, (bytes, bytearray)):
        try:
            text = bytes(document).decode("utf-8")
        except UnicodeDecodeError as err:
            raise Refused(f"not UTF-8: {err}") from err
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise Refused(f"more than {MAX_BYTES} bytes")
    try:
        value = json.loads(text, object_pairs_hook=_members, parse_int=_exact, parse_float=_exact, parse_constant=_exact)
    except RecursionError as err:
        raise Refused(f"nested more than {MAX_DEPTH} deep") from err
    except json.JSONDecodeError as err:
        raise Refused(f"not JSON: {err}") from err
    canonical(value)
    return value


def _members(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        raise Refused(f"member {next(n for n in names if names.count(n) > 1)!r} is there twice")
    return members


def _exact(text):
    """The number that a text stands for, if its canonical form has the same value."""
    try:
        value = float(text)
        if not text.lower().partition("e")[0].strip("0.") and not text.startswith("-"):
            return 0
        if decimal.Decimal(_number(value)) == decimal.Decimal(text) and value != 0:
            return int(value) if value.is_integer() and abs(value) < 2**53 else value
    except (ValueError, OverflowError, decimal.InvalidOperation):
        pass
    raise Refused(f"number {text[:40]}: its canonical form would have another value; send it as a string")


def canonical(value):
    """The canonical form of a value, in bytes. Signatures and digests are over these."""
    form = _form(value, "", 0).encode("utf-8")
    if len(form) > MAX_BYTES:
        raise Refused(f"more than {MAX_BYTES} bytes")
    return form


def _form(value, at, depth):
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _string(value, at)
    if isinstance(value, (int, float)):
        try:
            form = _number(float(value))
        except OverflowError:
            form = "nan"
        if form == "nan" or isinstance(value, int) and decimal.Decimal(form) != value:
            raise Refused(f"{at or '/'}: the number has another value in canonical form, or none; send it as a string")
        if value == 0 and str(value).startswith("-"):
            raise Refused(f"{at or '/'}: negative zero has no canonical form")
        return form
    if depth == MAX_DEPTH and isinstance(value, (list, tuple, dict)):
        raise Refused(f"nested more than {MAX_DEPTH} deep")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(_form(v, f"{at}/{i}", depth + 1) for i, v in enumerate(value)) + "]"
    if isinstance(value, dict):
        names = {_text(name, at): name for name in value}  # names sort by their UTF-16 code units
        return "{" + ",".join(f"{_string(n, at)}:{_form(value[n], f'{at}/{n}', depth + 1)}" for n in map(names.get, sorted(names))) + "}"
    raise Refused(f"{at or '/'}: {type(value).__name__} is nothing that JSON has")


def _text(text, at):
    if not isinstance(text, str):
        raise Refused(f"{at or '/'}: the name of a member is a {type(text).__name__}, not a string")
    try:
        return text.encode("utf-16-be")
    except UnicodeEncodeError as err:
        raise Refused(f"{at or '/'}: a surrogate without its other half") from err


def _string(text, at):
    _text(text, at)
    return json.dumps(text, ensure_ascii=False)  # the escapes of RFC 8785


def _number(value):
    """A float as ECMAScript writes it."""
    if value != value or abs(value) == float("inf"):
        return "nan"
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    text, point = "".join(map(str, digits)).rstrip("0"), len(digits) + exponent
    if value == 0:
        form = "0"
    elif 0 < point <= 21:
        form = text + "0" * (point - len(text)) if point >= len(text) else f"{text[:point]}.{text[point:]}"
    elif -6 < point <= 0:
        form = "0." + "0" * -point + text
    else:
        form = text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{'+' if point > 0 else '-'}{abs(point - 1)}"
    return ("-" if sign and value else "") + form


def digest(data):
    """SHA-256 as records write it."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


# Signing with one's own key.

_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551  # of P-256
_KINDS = {"3059301306072a8648ce3d020106082a8648ce3d030107034200": "ES256", "302a300506032b6570032100": "Ed25519"}


class Key:
    """A private key in a file (PKCS #8 in PEM, P-256 or Ed25519). It stays in its file: openssl signs."""

    def __init__(self, path):
        self.path = str(path)
        public = _run("openssl", "pkey", "-in", self.path, "-pubout", "-outform", "DER")
        self.alg = next((alg for head, alg in _KINDS.items() if public.hex().startswith(head)), "")
        if not self.alg:
            raise Refused(f"{self.path}: this client signs with P-256 and Ed25519 alone; 'jurat seal --sign-only' knows more kinds")
        self.id = digest(public)

    def sign(self, message):
        """The signature over a message, as records have it."""
        with tempfile.TemporaryDirectory() as folder:  # openssl signs Ed25519 from files alone
            path = pathlib.Path(folder, "message")
            path.write_bytes(message)
            if self.alg == "Ed25519":
                return _run("openssl", "pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in", str(path))
            return _low(_run("openssl", "dgst", "-sha256", "-sign", self.path, str(path)))


def _low(der):
    """The one form of an ECDSA signature that records have: with the lower s."""
    r, rest = der[4 : 4 + der[3]], der[4 + der[3] :]
    s = int.from_bytes(rest[2 : 2 + rest[1]], "big")
    parts = [int.from_bytes(r, "big"), min(s, _ORDER - s)]
    body = b"".join(b"\x02" + bytes([n.bit_length() // 8 + 1]) + n.to_bytes(n.bit_length() // 8 + 1, "big") for n in parts)
    return b"\x30" + bytes([len(body)]) + body


def _run(*command):
    done = subprocess.run(command, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} {command[1]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


def new_record_id():
    """A UUIDv7 (RFC 9562)."""
    raw = bytearray(int(time.time() * 1000).to_bytes(6, "big") + secrets.token_bytes(10))
    raw[6], raw[8] = raw[6] & 0x0F | 0x70, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def sign(payload, *keys):
    """Completes a payload (docs/format.md, "As actors send it") and signs it. Gives the record, for Client.deposit."""
    whole = parse(canonical(payload))
    step = "chain_position" in whole and not whole.keys() & {"model", "model_version", "prompt", "parameters"}
    whole.setdefault("action_type", "chain_step" if step else "model_output")
    whole.setdefault("schema", "jurat/evidence/v1")
    whole.setdefault("record_id", new_record_id())
    whole.setdefault("signers", [{"alg": key.alg, "key_id": key.id} for key in keys])
    if whole["action_type"] in ("chain_step", "delivery"):
        now = time.time()
        whole.setdefault("timestamp", time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now * 1000) % 1000:03d}Z")
    form = canonical(whole)
    signatures = [base64.b64encode(key.sign(form)).decode() for key in keys]
    return {"digest": digest(form), "payload": whole, "signatures": signatures, "timestamps": []}


# The server.


class _Straight(urllib.request.HTTPRedirectHandler):
    """The server never redirects: following would carry the token to another host."""

    def redirect_request(self, *_):
        return None


class Client:
    """Sends requests to one server. A POST carries an Idempotency-Key, so that repeating it makes nothing twice."""

    def __init__(self, url, token="", attempts=3, timeout=60):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme != "https" and (parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "::1", "localhost")):
            raise ValueError(f"{url}: want https://, or http:// to this machine: the connection must protect the token")
        self.url, self.token, self.attempts, self.timeout = url.rstrip("/"), token, attempts, timeout
        self._opener = urllib.request.build_opener(_Straight)

    def seal(self, payload, key=""):
        """Has the installation seal a payload with the key that it keeps for the token's owner. Gives the record.

        A program that may end in between keeps an Idempotency-Key of its own, and repeats the call with it.
        """
        return self._json("POST", "/v1/records", canonical(payload), key)

    def deposit(self, signed):
        """Sends a record of sign, and gives it as the server sealed it."""
        sealed = self._json("POST", "/v1/records", canonical(signed) + b"\n")
        if any(sealed.get(part) != signed[part] for part in ("digest", "payload", "signatures")):
            raise Refused("the server answered with another record than was signed")
        return sealed

    def submit(self, conversation=None, agent_card=None, key="", **other):
        """Puts an agent before the jury: a conversation with the agent's card, or records=…, or chainId=…, or recorded=…. Gives the submission."""
        case = {"agentCard": agent_card, "conversation": conversation, **other}
        return self._json("POST", "/v1/submissions", canonical({k: v for k, v in case.items() if v is not None}), key)

    def submission(self, id):
        """The submission as it stands: state, outcome, verdict, result."""
        return self._json("GET", "/v1/submissions/" + urllib.parse.quote(id, safe=""))

    def wait(self, id, seconds=1800, every=1.0):
        """Waits for the verdict. RuntimeError says why there will be none, TimeoutError that there is none yet."""
        until = time.monotonic() + seconds
        while True:
            now = self.submission(id)
            if now["state"] == "over":
                return now
            if now["state"] == "cancelled" or now["state"] == "broken_off" and "next" not in now:
                raise RuntimeError(f"{id}: {now['state']}: {now.get('reason', '')}")
            if time.monotonic() >= until:
                raise TimeoutError(f"{id} is {now['state']} after {seconds} s; it goes on, and you can wait again")
            time.sleep(every)

    def case(self, id):
        """The case file of a trial, in bytes: keep it, it can be verified offline."""
        return self._bytes("GET", f"/v1/submissions/{urllib.parse.quote(id, safe='')}/case")

    def bundle(self, chain):
        """All records of a chain, or of what a record belongs to, in bytes."""
        return self._bytes("GET", "/v1/chains/" + urllib.parse.quote(chain, safe=""))

    def trust(self):
        """The installation's trust file, in bytes. Compare its fingerprint over another channel before you rely on it."""
        return self._bytes("GET", "/v1/trust")

    def _json(self, method, path, body=None, key=""):
        return json.loads(self._bytes(method, path, body, key))

    def _bytes(self, method, path, body=None, key=""):
        head = {"Authorization": "Bearer " + self.token} if self.token else {}
        if body is not None:
            head.update({"Content-Type": "application/json", "Idempotency-Key": key or new_record_id()})
        for left in reversed(range(self.attempts)):
            try:
                request = urllib.request.Request(self.url + path, data=body, headers=head, method=method)
                with self._opener.open(request, timeout=self.timeout) as answer:
                    return answer.read()
            except urllib.error.HTTPError as err:
                if err.code not in (429, 503) or not left:
                    raise _problem(err) from err
                time.sleep(min(float(err.headers.get("Retry-After") or 1), 60))
            except (OSError, http.client.HTTPException):  # no answer, or half of one
                if not left:
                    raise
                time.sleep(1)


def _problem(err):
    text = err.read()
    try:
        return Problem(err.code, dict(json.loads(text)))
    except ValueError:
        return Problem(err.code, {"title": f"{err.reason}: not an answer of jurat"})


def verify(file, trust, command="jurat"):
    """Verifies a record, bundle or case file by a trust file (both in bytes) with the command jurat, offline. Gives the report.

    report["outcome"] is "proved", "not proved" or "refuted". The trust file must not come from the sender of the file.
    """
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("file.json", file), ("trust.json", trust)):
            pathlib.Path(folder, name).write_bytes(content)
        done = subprocess.run([command, "verify", "--json", "--trust", "trust.json", "file.json"], cwd=folder, capture_output=True, env=os.environ)
    if done.returncode not in (0, 1, 3):
        raise RuntimeError(f"{command} verify: {done.stderr.decode(errors='replace').strip()}")
    return json.loads(done.stdout)
