"""Public keys and signatures: section "Signatures" of docs/format.md.

Of signatures, ECDSA over P-256 with SHA-256 (FIPS 186-5) is verified here: most are of this kind, and a process for each takes
longer. All others, and certificate paths, are left to the command openssl. Answers are remembered.
"""

import atexit
import base64
import functools
import hashlib
import shutil
import subprocess
import tempfile
from pathlib import Path

import der
from canonical import require, tried
from sigma import ORDER, B, G, P, total

_P256_PREFIX = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d03010703420004")
ED25519_PREFIX = bytes.fromhex("302a300506032b6570032100")
_MLDSA65_PREFIX = bytes.fromhex("308207b2300b0609608648016503040312038207a100")
_MLDSA65_SIZE = 1952
RSA, EC, ED25519 = "1.2.840.113549.1.1.1", "1.2.840.10045.2.1", "1.3.101.112"
# The algorithms of signatures in certificates, lists and tokens: the kind of key, and the digest.
SIGNATURES = {f"1.2.840.113549.1.1.{11 + i}": (RSA, digest) for i, digest in enumerate(("sha256", "sha384", "sha512"))}
SIGNATURES |= {f"1.2.840.10045.4.3.{2 + i}": (EC, digest) for i, digest in enumerate(("sha256", "sha384", "sha512"))}


class Unsupported(Exception):
    """Something that this verifier cannot check, though the format has it."""


def check_key(algorithm, spki):
    """Refuses a public key that is not of the algorithm, or is encoded in another way than the one."""
    if algorithm == "RS256":
        _check_rsa(spki)
    elif algorithm == "ES256":
        require(point(spki) is not None, "not a P-256 key")
    elif algorithm == "Ed25519":
        require(spki.startswith(ED25519_PREFIX) and len(spki) == 44, "not an Ed25519 key")
        require(not _is_small(spki[12:]), "a key of small order, or none")
    else:
        key = spki[len(_MLDSA65_PREFIX) :]
        require(spki.startswith(_MLDSA65_PREFIX) and len(key) == _MLDSA65_SIZE, "not an ML-DSA-65 key")
        require(any(key[32:]), "t1 is zero throughout")


def _check_rsa(spki):
    kind, bits = der.fields(der.read(spki), None, der.BIT_STRING)
    name, _ = der.fields(kind, der.OID, der.NULL)
    require(name.oid() == RSA, "not an RSA key")
    require(bits.content[:1] == b"\0", "bits that are not used")
    modulus, exponent = (number.integer() for number in der.fields(der.read(bits.content[1:]), der.INTEGER, der.INTEGER))
    require(modulus > 0 and 2048 <= modulus.bit_length() <= 8192, "the modulus has not 2048 to 8192 bits")
    require(exponent >= 3 and exponent % 2 == 1, "no exponent of an RSA key")


_P = 2**255 - 19
_D = -121665 * pow(121666, -1, _P) % _P


def _is_small(encoded):
    """Whether an Ed25519 key is no point (RFC 8032, section 5.1.3) or of an order that divides 8."""
    y = int.from_bytes(encoded, "little") & (2**255 - 1)
    square = (y * y - 1) * pow(_D * y * y + 1, -1, _P) % _P  # that of x, by the equation of the curve
    is_point = y < _P and pow(square, (_P - 1) // 2, _P) in (0, 1)
    # y is 1 or -1 of the orders 1 and 2, and 0 of the order 4; of the order 8, doubling gives 0.
    return not is_point or y * (y * y - 1) * (_D * y**4 + 2 * y * y - 1) % _P == 0


def is_valid(algorithm, spki, message, signature):
    """Whether a signature is the key's over the message, in the one encoding that is allowed."""
    if algorithm == "RS256":
        return verify_digest(spki, message, signature)
    if algorithm == "ES256":
        return 0 < _numbers(signature)[1] <= (ORDER - 1) // 2 and verify_digest(spki, message, signature)
    if algorithm == "Ed25519":
        return len(signature) == 64 and verify_ed25519(spki, message, signature)
    raise Unsupported("ML-DSA-65 needs OpenSSL 3.5")


def point(spki):
    """The point of a P-256 key in its one form; None: the key is another, or none."""
    x, y = int.from_bytes(spki[27:59], "big"), int.from_bytes(spki[59:], "big")
    is_one = len(spki) == 91 and spki.startswith(_P256_PREFIX) and x < P and y < P and (y * y - x * x * x + 3 * x - B) % P == 0
    return (x, y) if is_one else None


def _numbers(signature):
    """The two numbers of a signature in strict DER; (0, 0), which are none, for anything else."""
    pair = tried(lambda: [number.integer() for number in der.fields(der.read(signature), der.INTEGER, der.INTEGER)])
    return tuple(pair) if pair and all(0 < number < ORDER for number in pair) else (0, 0)


@functools.lru_cache(1 << 16)
def _verify_ecdsa(key, digest, signature):
    """Whether a key, which is a point, signed what has this SHA-256 digest."""
    r, s = _numbers(signature)
    if not s:
        return False
    inverse = pow(s, -1, ORDER)
    found = total(((int.from_bytes(digest, "big") * inverse, G), (r * inverse, key)))
    return found is not None and found[0] % ORDER == r


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
    key = point(spki)
    if key and digest == "sha256" and not options:
        return _verify_ecdsa(key, hashlib.sha256(message).digest(), signature)
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
    return point(spki) is not None or _run("pkey", "-pubin", "-in", _path("key", _pem("PUBLIC KEY", spki)), "-noout")


@functools.lru_cache(1024)
def verify_path(certificate, others, root, purpose, seconds):
    """Whether a path from a certificate to a root is valid at a time (None: at any); others may stand between."""
    if _leads(certificate, others, root, purpose, seconds):
        return True
    readable = tuple(filter(is_certificate, others))  # one that openssl cannot read ended the search
    return readable != others and _leads(certificate, readable, root, purpose, seconds)


def _leads(certificate, others, root, purpose, seconds):
    leaf, root = _path("leaf", _pem("CERTIFICATE", certificate)), _path("root", _pem("CERTIFICATE", root))
    between = ("-untrusted", _path("others", b"".join(_pem("CERTIFICATE", other) for other in others))) if others else ()
    time = ("-no_check_time",) if seconds is None else ("-attime", str(seconds))
    limits = ("-no-CApath", "-no-CAstore", "-partial_chain", "-purpose", purpose)
    return _run("verify", *limits, *time, "-CAfile", root, *between, leaf)
