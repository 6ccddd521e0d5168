"""Everything that is left to the command openssl: signatures other than ES256, and certificate paths. Answers are remembered."""

import atexit
import base64
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import ecdsa

_folder = None


def _path(name, data):
    global _folder
    if _folder is None:
        _folder = Path(tempfile.mkdtemp(prefix="jurat-verify-"))
        atexit.register(shutil.rmtree, _folder)
    path = _folder / name
    path.write_bytes(data)
    return str(path)


def _pem(label, der):
    body = base64.encodebytes(der).decode()
    return f"-----BEGIN {label}-----\n{body}-----END {label}-----\n".encode()


def _run(*arguments):
    """Whether openssl says yes."""
    return subprocess.call(["openssl", *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) == 0


def verify_digest(spki, message, signature, digest="sha256", options=()):
    """A signature over a hash of the message: RSA PKCS #1 v1.5, RSA-PSS (by options), or ECDSA."""
    point = ecdsa.point(spki)
    if point and digest == "sha256" and not options:
        return ecdsa.verify(point, hashlib.sha256(message).digest(), signature)
    return _verify_digest(spki, message, signature, digest, options)


@functools.lru_cache(1024)
def _verify_digest(spki, message, signature, digest, options):
    key, signature = _path("key", _pem("PUBLIC KEY", spki)), _path("signature", signature)
    return _run("dgst", f"-{digest}", "-verify", key, "-signature", signature, *options, _path("message", message))


@functools.lru_cache(1024)
def verify_ed25519(spki, message, signature):
    key, signature = _path("key", _pem("PUBLIC KEY", spki)), _path("signature", signature)
    source = _path("message", message)
    return _run("pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin", "-in", source, "-sigfile", signature)


@functools.lru_cache(1024)
def is_certificate(certificate):
    """Whether openssl can read the certificate and its key."""
    return _run("x509", "-in", _path("certificate", _pem("CERTIFICATE", certificate)), "-noout", "-pubkey")


@functools.lru_cache(1024)
def is_key(spki):
    """Whether openssl can read the public key."""
    return ecdsa.point(spki) is not None or _run("pkey", "-pubin", "-in", _path("key", _pem("PUBLIC KEY", spki)), "-noout")


@functools.lru_cache(1024)
def verify_path(certificate, others, root, purpose, seconds):
    """Whether a path from a certificate to a root is valid at a time (None: at any); others may stand between."""
    if _leads(certificate, others, root, purpose, seconds):
        return True
    readable = tuple(filter(is_certificate, others))  # one that openssl cannot read ended the search
    return readable != others and _leads(certificate, readable, root, purpose, seconds)


def _leads(certificate, others, root, purpose, seconds):
    leaf, root = _path("leaf", _pem("CERTIFICATE", certificate)), _path("root", _pem("CERTIFICATE", root))
    between = ()
    if others:
        between = ("-untrusted", _path("others", b"".join(_pem("CERTIFICATE", other) for other in others)))
    time = ("-no_check_time",) if seconds is None else ("-attime", str(seconds))
    limits = ("-no-CApath", "-no-CAstore", "-partial_chain", "-purpose", purpose)
    return _run("verify", *limits, *time, "-CAfile", root, *between, leaf)
