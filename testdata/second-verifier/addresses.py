"""Addresses without what may be a secret: section "Addresses, pictures, files" of docs/readings.md."""

import ipaddress
import re

from lenient import brief, in_runs

_INVALID = "(an address that is not valid)"
_SCHEME = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):")
_BEFORE_COLON = re.compile(r"[a-zA-Z0-9+.-]*:")
_PERCENT = re.compile(rb"%(?![0-9a-fA-F]{2})")
_USER = re.compile(r"[a-zA-Z0-9\-._:~!$&'()*+,;=%@]*\Z")
_PORT = re.compile(rb"(?::[0-9]*)?\Z")
_CODE = re.compile(rb"%([0-9a-fA-F]{2})")
_LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_HOST = set(_LETTERS + b"!\"$&'()*+,-.:;<=>[]_~")
_PATH = set(_LETTERS + b"-._~$&+,/:;=@")
_AS_IT_STOOD = _PATH | set(b"%!'()*[]")


class _Wrong(Exception):
    pass


def clean(address):
    try:
        return brief(_clean(address))
    except _Wrong:
        return _INVALID


def _require(holds):
    if not holds:
        raise _Wrong


def _decoded(data):
    _require(not _PERCENT.search(data))
    return _CODE.sub(lambda match: bytes([int(match[1], 16)]), data)


def _written(data, plain):
    return "".join(chr(byte) if byte in plain else f"%{byte:02X}" for byte in data)


def _clean(address):
    address, _, fragment = address.partition("#")
    _decoded(fragment.encode("utf-8"))
    _require(not any(byte < 0x20 or byte == 0x7F for byte in address.encode("utf-8")))
    if address == "*":
        return "*"
    match = _SCHEME.match(address)
    _require(not address.startswith(":"))
    scheme, rest = (match[1].lower(), address[match.end() :]) if match else ("", address)
    rest = rest.partition("?")[0]
    before = scheme + ":" if scheme else ""
    if not rest.startswith("/"):
        if scheme:
            return before + rest
        _require(":" not in rest.partition("/")[0])
    host, authority = b"", None
    if rest.startswith("//") and (scheme or not rest.startswith("///")):
        authority, slash, rest = rest[2:].partition("/")
        rest = slash + rest
        host = _host(scheme, authority)
    path = _path(rest.encode("utf-8"))
    if host or authority is not None and (rest or "@" in authority):
        before += "//" + _written(host, _HOST)
    if not before and ":" in path.partition("/")[0]:
        before = "./"
    return before + path


def _host(scheme, authority):
    user, at, host = authority.rpartition("@")
    if at:
        _require(_USER.match(user))
        _decoded(user.encode("utf-8"))
    host = host.encode("utf-8")
    bracket = host.rfind(b"[")
    _require(bracket <= 0)
    if bracket == 0:
        return _literal(host)
    if b":" in host:
        strict = scheme in ("http", "https")
        _require(_PORT.match(host[host.find(b":") if strict else host.rfind(b":") :]))
    return _decoded_host(host)


def _decoded_host(host, in_zone=False):
    for match in _CODE.finditer(host):
        code = int(match[1], 16)
        _require(match[0] == b"%25" or (code == 0x20 or code in _HOST if in_zone else code >= 0x80))
    _require(all(byte >= 0x80 or byte in _HOST or byte == 0x25 for byte in host))
    return _decoded(host)


def _literal(host):
    inside, bracket, port = host[1:].rpartition(b"]")
    _require(bracket and _PORT.match(port))
    plain, zone_sign, zone = inside.partition(b"%25")
    plain = _decoded_host(plain) + (_decoded_host(zone_sign + zone, True) if zone_sign else b"")
    try:
        ipaddress.IPv6Address(in_runs(plain))
    except ValueError as err:
        raise _Wrong from err
    return b"[" + plain + b"]" + port


def _path(path):
    decoded = _decoded(path)
    if all(byte in _AS_IT_STOOD for byte in path):
        return path.decode()
    return _written(decoded, _PATH)
