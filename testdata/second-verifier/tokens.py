"""RFC 3161 time-stamp tokens: section "Tokens" of docs/format.md."""

import hashlib
from fractions import Fraction

import der
import keys
from canonical import Refused, require, tried
from certificates import Certificate, Spent, between, verify_path

_SIGNED_DATA = "1.2.840.113549.1.7.2"
_TST_INFO = "1.2.840.113549.1.9.16.1.4"
_CONTENT_TYPE, _MESSAGE_DIGEST = "1.2.840.113549.1.9.3", "1.2.840.113549.1.9.4"
_SIGNING_CERTIFICATE, _SIGNING_CERTIFICATE_V2 = "1.2.840.113549.1.9.16.2.12", "1.2.840.113549.1.9.16.2.47"
_KNOWN = (_CONTENT_TYPE, _MESSAGE_DIGEST, _SIGNING_CERTIFICATE, _SIGNING_CERTIFICATE_V2)
DIGESTS = {"2.16.840.1.101.3.4.2.1": "sha256", "2.16.840.1.101.3.4.2.2": "sha384", "2.16.840.1.101.3.4.2.3": "sha512"}
_CURVES = ("1.2.840.10045.3.1.7", "1.3.132.0.34")
_PSS, _MGF1 = "1.2.840.113549.1.1.10", "1.2.840.113549.1.1.8"
_MOCK = (
    "f28a178c9b6a1c9250a90f2dc09a70b8f828ae5ce8c07b8f3812fab38abd6c4c",
    "41bcd95f8c1c4871d2bedef7b0c350f808dea9548694fd60fa393168237b1a10",
)
MAX_BYTES = 65_536


class NotProved(Exception):
    """The token may be good, but shows this reader nothing. The rule says why."""

    def __init__(self, reason, rule="authority"):
        super().__init__(reason)
        self.rule = rule


def unless(holds, reason):
    require(holds, reason, NotProved)


class Token:
    """A token that was read. Raises Refused for what is none."""

    def __init__(self, data):
        require(len(data) <= MAX_BYTES, "the token is too long")
        kind, content = der.fields(der.read(data), der.OID, 0xA0)
        require(kind.oid() == _SIGNED_DATA, "no SignedData")
        members = der.fields(content.explicit(), der.INTEGER, der.SET, None, [0xA0], [0xA1], der.SET)
        version, digests, content, certificates, revocations, signers = members
        digests = [algorithm_name(child) for child in digests.children]
        self._read_content(content)
        certificates = _members(certificates, (der.SEQUENCE, 0xA0, 0xA1, 0xA2, 0xA3))
        looked_at = [child for child in certificates if child.tag == der.SEQUENCE][:16]
        self.certificates = [child.encoding for child in looked_at if tried(Certificate, child.encoding)]
        revocations = _members(revocations, (der.SEQUENCE, 0xA1))
        _check_version(version.integer(), {child.tag for child in certificates}, {child.tag for child in revocations})
        require(len(signers.children) == 1, "other than one SignerInfo")
        self._read_signer(signers.children[0])
        require(self.digest_algorithm[0] in digests, "the signer's digest algorithm is not stated")

    def _read_content(self, node):
        kind, content = der.fields(node, der.OID, 0xA0)
        require(kind.oid() == _TST_INFO, "no TSTInfo")
        self.content = content.explicit().expect(der.OCTET_STRING).content
        optional = [der.SEQUENCE], [der.BOOLEAN], [der.INTEGER], [0xA0], [0xA1]
        wanted = der.INTEGER, der.OID, None, der.INTEGER, der.GENERALIZED_TIME
        version, policy, imprint, _, time, accuracy, _, _, name, extensions = der.fields(der.read(self.content), *wanted, *optional)
        require(version.integer() == 1, "TSTInfo of another version than 1")
        self.policy = policy.oid()
        algorithm, imprint = der.fields(imprint, None, der.OCTET_STRING)
        self.imprint_algorithm, self.imprint = algorithm_name(algorithm), imprint.content
        self.time, self.accuracy = der.moment(time), _accuracy(accuracy)
        require(name is None or name.explicit(), "no name")
        require(extensions is None or extensions.children, "extensions without a member")
        self.critical = any([_is_critical(extension) for extension in (extensions.children if extensions else [])])

    def _read_signer(self, node):
        wanted = der.INTEGER, None, None, 0xA0, None, der.OCTET_STRING, [0xA1]
        version, self.signer, digest, self.signed_attributes, algorithm, signature, unsigned = der.fields(node, *wanted)
        require(version.integer() == (3 if self.signer.tag == 0x80 else 1), "a SignerInfo of another version than its identifier's")
        if self.signer.tag != 0x80:
            issuer, serial = der.fields(self.signer, der.SEQUENCE, der.INTEGER)
            self.issuer, self.serial = issuer.encoding, serial.integer()
        der.require_set_order(self.signed_attributes)
        self.digest_algorithm, self.signature_algorithm, self.signature = _algorithm(digest), _algorithm(algorithm), signature.content
        require(unsigned is None or unsigned.children, "unsigned attributes without a member")
        for attribute in unsigned.children if unsigned else []:
            name, values = der.fields(attribute, der.OID, der.SET)
            require(name.oid() and list(der.Reader(values.content).all()), "an attribute without a value")
        self._read_attributes()

    def _read_attributes(self):
        self.attributes = {}
        for attribute in self.signed_attributes.children:
            name, values = der.fields(attribute, der.OID, der.SET)
            require(values.content, "a signed attribute without a value")
            if name.oid() in _KNOWN:
                require(name.oid() not in self.attributes, "a signed attribute twice")
                require(len(values.children) == 1, "a signed attribute with other than one value")
                self.attributes[name.oid()] = values.children[0]
        require(_CONTENT_TYPE in self.attributes and _MESSAGE_DIGEST in self.attributes, "a signed attribute is missing")
        require(self.attributes[_CONTENT_TYPE].oid() == _TST_INFO, "another contentType")
        self.message_digest = self.attributes[_MESSAGE_DIGEST].expect(der.OCTET_STRING).content
        self.named = None  # the signer's certificate: its hash, and how it is made
        for name in (_SIGNING_CERTIFICATE, _SIGNING_CERTIFICATE_V2):
            if name in self.attributes:
                self.named = _signing_certificate(self.attributes[name], name == _SIGNING_CERTIFICATE_V2)

    def proved_time(self):
        """What it proves if everything holds: the signatures existed by then."""
        return self.time + self.accuracy


def _members(node, tags):
    """The members of an optional set that may have these tags, in any order."""
    members = node.children if node else []
    require(all(child.tag in tags for child in members), "something of no kind is embedded")
    return members


def _check_version(version, certificates, revocations):
    """The version of SignedData that RFC 5652, section 5.1, demands, or one that is sent in its place."""
    wanted = 5 if 0xA3 in certificates or 0xA1 in revocations else 4 if 0xA2 in certificates else 3
    taken = {wanted, 1} | ({4} if wanted == 3 and 0xA1 in certificates else set())
    require(version in taken, "another version of SignedData than that of what is embedded")


def _is_critical(node):
    name, critical, _ = der.fields(node, der.OID, [der.BOOLEAN], der.OCTET_STRING)
    return bool(name.oid()) and critical is not None and critical.content == b"\xff"


def _algorithm(node):
    """An algorithm's object identifier, and its parameters, which may be left out."""
    members = node.expect(der.SEQUENCE).children
    require(1 <= len(members) <= 2, "an algorithm without a name, or with several parameters")
    return members[0].oid(), members[1] if len(members) == 2 else None


def _is_plain(parameters):
    return parameters is None or parameters.encoding == b"\x05\x00"


def _digest(algorithm):
    """The digest that an algorithm is; None: another, or one with parameters."""
    return DIGESTS.get(algorithm[0]) if _is_plain(algorithm[1]) else None


def _signing_certificate(attribute, second):
    """The first certificate that SigningCertificate names, or SigningCertificateV2: how its hash is made, the hash, and issuer and serial number."""
    named, policies = der.fields(attribute, der.SEQUENCE, [der.SEQUENCE])
    named = [_certificate_id(item, second) for item in named.children]
    require(all(item.tag == der.SEQUENCE for item in (policies.children if policies else [])), "a policy that is none")
    return named[0]


def _certificate_id(node, second):
    *stated, digest, issued = der.fields(node, *([[der.SEQUENCE]] if second else []), der.OCTET_STRING, [der.SEQUENCE])
    name = _digest(_algorithm(stated[0])) if second and stated[0] else "sha256" if second else "sha1"
    if not issued:
        return name, digest.content, None, None
    names, serial = der.fields(issued, der.SEQUENCE, der.INTEGER)
    [directory] = names.children
    return name, digest.content, directory.expect(0xA4).explicit().expect(der.SEQUENCE).encoding, serial.integer()


def algorithm_name(node):
    """An algorithm's object identifier, if it has no parameters but NULL."""
    name, _ = der.fields(node, der.OID, [der.NULL])
    return name.oid()


def _accuracy(node):
    if node is None:
        return 0
    seconds, millis, micros = der.fields(node, [der.INTEGER], [0x80], [0x81])
    total = Fraction(seconds.integer() if seconds else 0)
    require(0 <= total <= 9223372035, "an accuracy below zero, or of more than 292 years")
    for part, scale in ((millis, 1000), (micros, 1_000_000)):
        if part:
            value = int.from_bytes(part.content, "big", signed=True)
            require(1 <= value <= 999, "an accuracy that cannot be")
            total += Fraction(value, scale)
    return total


def verify(data, imprint, authority, budget, known=(), direct=False, policies=True):
    """The token, if it proves a time by an authority (None: by nobody, only what needs no trust is looked at).

    Known are the certificates of all authorities. Directly: its certificate is the authority's root, or that issued it.

    Raises Refused where the format says R, and NotProved where it says N.
    """
    try:
        token = Token(data)
    except (Refused, ValueError, IndexError) as err:  # it has not the form of a token, and contradicts nothing
        raise NotProved(str(err)) from err
    _check_statement(token, imprint, authority if policies else None)
    certificate = _signer_certificate(token, known)
    require(certificate.stamps_alone(), "the extended key usage is not critical and time stamping alone")
    require(certificate.may(0, 1), "the key usage allows no signatures")
    _check_signature(token, certificate)
    unless(authority is not None, "no authority that is trusted")
    unless(hashlib.sha256(certificate.spki).hexdigest() not in _MOCK, "the mock authority")
    token.certificate = certificate
    others = _others(token, direct)
    try:
        others = budget.candidates(certificate, others, authority.root, token.time)
    except Spent as err:
        raise NotProved("too many steps to a certificate path", "effort") from err
    unless(others is not None and _path(token, others, authority, token.time), "no certificate path to the authority's root")
    return token


def path_is_valid(token, authority, time, direct=False):
    """Whether a path from the signer's certificate to the authority's root, as of the token's time, was still valid at a later one."""
    others = [item for item in _others(token, direct) if time <= item.not_after]
    still = all(time <= item.not_after for item in (token.certificate, Certificate(authority.root)))
    return still and _path(token, others, authority, token.time)


def _others(token, direct):
    """The certificates that may stand between."""
    return [] if direct else between([Certificate(item) for item in token.certificates])


def _path(token, others, authority, time):
    root = Certificate(authority.root)
    if root.encoding != token.certificate.encoding and not root.is_usable():
        return False
    return verify_path(token.certificate, [item for item in others if item.is_usable()], root, "timestampsign", time // 1)


def _check_statement(token, imprint, authority):
    require(DIGESTS.get(token.imprint_algorithm) == "sha256", "the imprint is of another algorithm")
    require(token.imprint == imprint, "the token is over something else")
    policies = authority.policies if authority else []
    unless(not policies or token.policy in policies, "a policy that the reader does not accept")
    unless(not token.critical, "a critical extension")


def _signer_certificate(token, known):
    """The signer's certificate: of those that the SignerInfo names, the one whose hash is signed."""
    named = [item for item in map(Certificate, [*token.certificates, *known]) if _is_signer(token, item)]
    unless(named, "the signer's certificate is not there")
    require(token.named is not None, "nothing signed names the certificate")
    algorithm, digest, issuer, serial = token.named
    unless(algorithm is not None, "the certificate is named by another hash")
    found = next((item for item in named if hashlib.new(algorithm, item.encoding).digest() == digest), None)
    unless(found, "none of the certificates is the one that is named")
    require(issuer in (None, found.issuer) and serial in (None, found.serial), "the certificate has another issuer or serial number")
    return found


def _is_signer(token, certificate):
    if token.signer.tag == 0x80:
        return token.signer.content == certificate.subject_key_id()
    return token.issuer == certificate.issuer and token.serial == certificate.serial


def _check_signature(token, certificate):
    digest = _digest(token.digest_algorithm)
    unless(digest is not None, "a digest algorithm that is not accepted")
    require(token.message_digest == hashlib.new(digest, token.content).digest(), "messageDigest is not that of the TSTInfo")
    options = _signature_options(token.signature_algorithm, certificate, digest)
    message = bytes([der.SET]) + token.signed_attributes.encoding[1:]  # as a signature over an implicitly tagged set needs it
    valid = keys.verify_digest(certificate.spki, message, token.signature, digest, options)
    require(valid, "the signature is not valid")


def _signature_options(algorithm, certificate, digest):
    """The options that openssl needs, if the algorithm and key are among those accepted."""
    name, parameters = algorithm
    key, curve = certificate.key_algorithm
    is_named = keys.SIGNATURES.get(name) == (key, digest)
    if key == keys.EC:
        unless(curve in _CURVES and is_named and parameters is None, "an algorithm that is not accepted")
        return ()
    unless(key == keys.RSA, "an algorithm that is not accepted")
    unless(2048 <= certificate.rsa_bits <= 8192, "an RSA key that is not accepted")
    unless(certificate.rsa_exponent % 2 == 1 and 3 <= certificate.rsa_exponent <= 65537, "an RSA exponent that is not accepted")
    if name == _PSS:
        return ("-sigopt", "rsa_padding_mode:pss", "-sigopt", f"rsa_mgf1_md:{digest}", "-sigopt", f"rsa_pss_saltlen:{_salt(parameters, digest)}")
    unless((name == keys.RSA or is_named) and _is_plain(parameters), "an algorithm that is not accepted")
    return ()


def _salt(parameters, digest):
    """The length of the salt that RSA-PSS parameters state, with this digest throughout."""
    try:
        first, mask, salt = (member.explicit() for member in der.fields(parameters, 0xA0, 0xA1, 0xA2))
        first, (mask, inner), salt = _algorithm(first), _algorithm(mask), salt.integer()
        good = _digest(first) == digest and mask == _MGF1 and _digest(_algorithm(inner)) == digest
    except (Refused, AttributeError) as err:
        raise NotProved("no RSA-PSS parameters") from err
    unless(good and 1 <= salt <= 64, "RSA-PSS parameters that are not accepted")
    return salt
