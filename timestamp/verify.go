package timestamp

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/kit/fault"
	"jurat/internal/kit/sigkey"
)

// Options say what the reader trusts and expects. They come from the reader, never from the source of the token.
type Options struct {
	Roots           []*x509.Certificate // trust anchors; without any, nothing verifies
	Intermediates   []*x509.Certificate // further certificates, not trusted; including the authority's if the token embeds none
	Policies        []x509.OID          // accepted policies; empty: any
	Nonce           *big.Int            // on receipt: the request's, which the token must repeat; nil: not checked
	Until           time.Time           // when the token was renewed: the path must have been valid until then; zero: not checked
	Memory          *Memory             // saves work over many tokens; nil: every path is searched
	Share           *Share              // budget of the search for the path; nil: that of a single record in a file
	Direct          bool                // no certificate may stand between the authority's and the root
	UnsafeAllowMock bool                // false: tokens of the mock authority are refused, whatever Roots holds
}

// Verify checks the token fully, as the package documentation lists, and returns what it states: its authority saw
// imprint, a SHA-256, at its time. The error is that of the first failed check.
func (u *Unverified) Verify(imprint [sha256.Size]byte, opts Options) (token *Token, err error) {
	defer fault.While(&err, "verifying time stamp token")
	if err := u.checkInfo(imprint, opts); err != nil {
		return nil, err
	}
	signer, err := u.findSigner(opts)
	if err != nil {
		return nil, err
	}
	if err := checkUsage(signer); err != nil {
		return nil, err
	}
	if err := u.checkSignatureOnce(signer); err != nil {
		return nil, err
	}
	chain, err := u.findPath(signer, opts)
	if err != nil {
		return nil, err
	}
	return &Token{u.info.Statement.clone(), signer, chain}, nil
}

// Concerns reports whether a certificate path of the token can end at root, if these certificates are Options.Intermediates. If not, Verify
// with this root fails as it does with every other such root.
func (u *Unverified) Concerns(root *x509.Certificate, further ...*x509.Certificate) bool {
	signer := &u.data.signer
	leads := func(c *x509.Certificate) bool { return names(c, root) || c.Equal(root) }
	return signer.names(root) || signer.issuer != nil && bytes.Equal(signer.issuer, root.RawSubject) ||
		slices.ContainsFunc(u.certificates, leads) || slices.ContainsFunc(further, leads)
}

// SignerAmong returns those of the certificates that the token names as its signer's. The token may embed none: its sender can leave it out.
func (u *Unverified) SignerAmong(certificates []*x509.Certificate) []*x509.Certificate {
	return slices.DeleteFunc(slices.Clone(certificates), func(c *x509.Certificate) bool { return !u.data.signer.names(c) })
}

// checkInfo compares what the token says with what the reader expects.
func (u *Unverified) checkInfo(imprint [sha256.Size]byte, opts Options) error {
	switch {
	case u.info.imprint.hash != crypto.SHA256 || !bytes.Equal(u.info.imprint.sum, imprint[:]):
		return ErrImprint
	case opts.Nonce != nil && (u.info.Nonce == nil || u.info.Nonce.Cmp(opts.Nonce) != 0):
		return ErrNonce
	case len(opts.Policies) > 0 && !slices.ContainsFunc(opts.Policies, u.info.Policy.Equal):
		return fmt.Errorf("%w: %s", ErrPolicy, u.info.Policy)
	case u.info.critical:
		return ErrExtension
	}
	return nil
}

// findSigner finds the certificate that both the signer identifier and the ESS attribute name. Several certificates
// can have one issuer and serial, or one key identifier; the sender of the token can add such. So the hash in the
// attribute decides.
func (u *Unverified) findSigner(opts Options) (*x509.Certificate, error) {
	matching := slices.DeleteFunc(slices.Concat(u.certificates, opts.Intermediates, opts.Roots), func(c *x509.Certificate) bool { return !u.data.signer.names(c) })
	if len(matching) == 0 {
		return nil, ErrNoCertificate
	}
	// RFC 5816 allows either attribute. The old one counts only if the new one is absent, because SHA-1 is the
	// weakest choice.
	id := u.data.signer.attributes.certificateV2
	if id == nil {
		id = u.data.signer.attributes.certificateV1
	}
	if id == nil {
		return nil, fmt.Errorf("%w: the attribute is missing", ErrCertificateID)
	}
	for _, candidate := range matching {
		named, err := id.names(candidate)
		if err != nil {
			return nil, err
		}
		if named {
			return candidate, nil
		}
	}
	return nil, fmt.Errorf("%w: the signed attribute names none of those that are there", ErrNoCertificate) // no signature covers which are there
}

// names compares the signer identifier with a certificate (RFC 5652, 5.3). It compares names as bytes, because
// issuers copy them.
func (si *signerInfo) names(c *x509.Certificate) bool {
	if si.issuer == nil {
		return len(c.SubjectKeyId) > 0 && bytes.Equal(si.keyID, c.SubjectKeyId)
	}
	return bytes.Equal(si.issuer, c.RawIssuer) && si.serial.Cmp(c.SerialNumber) == 0
}

// names compares the hash. A certificate with this hash must have the issuer and serial number, too, if they are stated.
func (id *certificateID) names(c *x509.Certificate) (bool, error) {
	hash, err := id.sum(c.Raw)
	if err != nil || !bytes.Equal(id.hash, hash) {
		return false, err
	}
	if id.issuer != nil && !(bytes.Equal(id.issuer, c.RawIssuer) && id.serial.Cmp(c.SerialNumber) == 0) {
		return false, ErrCertificateID
	}
	return true, nil
}

// checkUsage: "The corresponding certificate MUST contain only one instance of the extended key usage field extension
// … with KeyPurposeID having value id-kp-timeStamping. This extension MUST be critical" (RFC 3161, 2.3). A key that
// also signs other things could be made to sign a token.
func checkUsage(c *x509.Certificate) error {
	alone := len(c.ExtKeyUsage) == 1 && c.ExtKeyUsage[0] == x509.ExtKeyUsageTimeStamping && len(c.UnknownExtKeyUsage) == 0
	if !alone {
		return fmt.Errorf("%w: extended key usage is missing or has another purpose", ErrUsage)
	}
	for _, extension := range c.Extensions {
		switch extension.Id.String() {
		case oidExtKeyUsage:
			if !extension.Critical {
				return fmt.Errorf("%w: extended key usage is not critical", ErrUsage)
			}
		case oidKeyUsage: // optional, but if present it must allow signing
			if c.KeyUsage&(x509.KeyUsageDigitalSignature|x509.KeyUsageContentCommitment) == 0 {
				return fmt.Errorf("%w: key usage does not allow signatures", ErrUsage)
			}
		}
	}
	return nil
}

// findPath returns the path to the reader's roots at the token's time. The authority's certificate may have expired
// since.
func (u *Unverified) findPath(signer *x509.Certificate, opts Options) ([]*x509.Certificate, error) {
	if isMock(signer) && !opts.UnsafeAllowMock {
		return nil, ErrMock
	}
	at := u.info.GenTime
	if at.IsZero() { // the year 1, which crypto/x509 treats as now
		return nil, fmt.Errorf("%w at %s", ErrUntrusted, formatGenTime(at))
	}
	share := opts.Share
	if share == nil {
		share = NewShare()
	}
	between := slices.Concat(Between(u.certificates), opts.Intermediates)
	if opts.Direct {
		between = nil
	}
	paths, err := share.Find(Search{From: signer, Between: between, Roots: opts.Roots,
		At: at, Usage: x509.ExtKeyUsageTimeStamping, Memory: opts.Memory})
	if errors.Is(err, ErrEffort) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w at %s: %w", ErrUntrusted, formatGenTime(at), err)
	}
	untilThen := false
	for _, path := range paths {
		if !opts.UnsafeAllowMock && slices.ContainsFunc(path, isMock) {
			continue
		}
		ended := func(c *x509.Certificate) bool { return opts.Until.After(c.NotAfter) }
		if opts.Until.IsZero() || !slices.ContainsFunc(path, ended) {
			return path, nil
		}
		untilThen = true
	}
	if !untilThen {
		return nil, ErrMock
	}
	return nil, fmt.Errorf("%w: at %s", ErrExpired, formatGenTime(opts.Until.UTC()))
}

const (
	maxEmbedded = 16 // certificates of a token that are used, in their order
	maxCostly   = 2  // keys of more than 4096 bits that may be intermediates, in the order of their certificates
)

// Between returns the certificates that may be intermediates of a path, from those that came with the verified
// object. They are unverified. It leaves out RSA keys so slow that they would be an attack, and takes at most the
// first two of the slow ones.
func Between(certificates []*x509.Certificate) (between []*x509.Certificate) {
	costly := 0
	for _, c := range certificates {
		if key, ok := c.PublicKey.(*rsa.PublicKey); ok {
			some, none := sigkey.Costly(key)
			if none || some && costly == maxCostly {
				continue
			}
			if some {
				costly++
			}
		}
		between = append(between, c)
	}
	return between
}

// SHA-256 of the SubjectPublicKeyInfo of the mock authority's keys, which are published.
const (
	mockRootKeyDigest = "41bcd95f8c1c4871d2bedef7b0c350f808dea9548694fd60fa393168237b1a10"
	mockKeyDigest     = "f28a178c9b6a1c9250a90f2dc09a70b8f828ae5ce8c07b8f3812fab38abd6c4c"
)

// isMock recognises the mock authority by its keys, so that other certificates for these keys are refused, too.
func isMock(c *x509.Certificate) bool {
	digest := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return slices.Contains([]string{mockRootKeyDigest, mockKeyDigest}, hex.EncodeToString(digest[:]))
}

// checkSignatureOnce remembers the last answer of checkSignature. The answer depends only on the certificate.
func (u *Unverified) checkSignatureOnce(signer *x509.Certificate) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.checked != signer {
		u.checked, u.found = signer, u.checkSignature(signer)
	}
	return u.found
}

// checkSignature verifies what RFC 5652, 5.4 and 5.6 describe: the message digest attribute is the digest of the
// content, and the signature is over the attributes. Together they show that the content is signed.
func (u *Unverified) checkSignature(signer *x509.Certificate) error {
	si := &u.data.signer
	hash, err := si.digest.digest()
	if err != nil {
		return err
	}
	if !bytes.Equal(si.attributes.messageDigest, sum(hash, u.data.content)) {
		return fmt.Errorf("%w: message digest is not that of the content", ErrSignature)
	}
	digest := sum(hash, si.attributes.signed)
	switch key := signer.PublicKey.(type) {
	case *ecdsa.PublicKey:
		return si.checkECDSA(key, hash, digest)
	case *rsa.PublicKey:
		return si.checkRSA(key, hash, digest)
	}
	return fmt.Errorf("%w: key of type %T", ErrAlgorithm, signer.PublicKey)
}

// checkECDSA follows RFC 5754, 3.3. The algorithm must name the signer's digest. Otherwise an attacker could replace
// the unsigned algorithm identifier.
func (si *signerInfo) checkECDSA(key *ecdsa.PublicKey, hash crypto.Hash, digest []byte) error {
	if key.Curve != elliptic.P256() && key.Curve != elliptic.P384() {
		return fmt.Errorf("%w: curve %s", ErrAlgorithm, key.Curve.Params().Name)
	}
	want := map[crypto.Hash]string{crypto.SHA256: oidECDSAWithSHA256, crypto.SHA384: oidECDSAWithSHA384, crypto.SHA512: oidECDSAWithSHA512}
	if si.algorithm.oid != want[hash] || si.algorithm.parameters != nil {
		return fmt.Errorf("%w: signature algorithm is not ECDSA with the signer's digest", ErrAlgorithm)
	}
	if !ecdsa.VerifyASN1(key, digest, si.signature) {
		return ErrSignature
	}
	return nil
}

// checkRSA follows RFC 5754, 3.2 and RFC 4056, 3.
func (si *signerInfo) checkRSA(key *rsa.PublicKey, hash crypto.Hash, digest []byte) error {
	if err := sigkey.CheckCertified(key); err != nil {
		return fmt.Errorf("%w: %w", ErrAlgorithm, err)
	}
	if si.algorithm.oid == oidRSAPSS {
		return si.checkPSS(key, hash, digest)
	}
	want := map[crypto.Hash]string{crypto.SHA256: oidSHA256WithRSA, crypto.SHA384: oidSHA384WithRSA, crypto.SHA512: oidSHA512WithRSA}
	if si.algorithm.oid != oidRSA && si.algorithm.oid != want[hash] || !si.algorithm.plain() {
		return fmt.Errorf("%w: signature algorithm is not RSA with the signer's digest", ErrAlgorithm)
	}
	if rsa.VerifyPKCS1v15(key, hash, digest, si.signature) != nil {
		return ErrSignature
	}
	return nil
}

func (si *signerInfo) checkPSS(key *rsa.PublicKey, hash crypto.Hash, digest []byte) error {
	salt, err := si.algorithm.pssSalt(hash)
	if err != nil {
		return err
	}
	if rsa.VerifyPSS(key, hash, digest, si.signature, &rsa.PSSOptions{SaltLength: salt, Hash: hash}) != nil {
		return ErrSignature
	}
	return nil
}

// pssSalt reads RSASSA-PSS-params (RFC 4055, 3.1). It accepts one form: both digests those of the signer, a stated
// salt length, the default trailer.
func (a algorithm) pssSalt(hash crypto.Hash) (int, error) {
	d, s := decode(a.parameters, len(a.parameters), "RSA-PSS parameters")
	params := d.read(&s, asn1.SEQUENCE, "RSA-PSS parameters")
	d.end(s, "RSA-PSS parameters")

	explicit := d.read(&params, context0Constructed, "RSA-PSS digest")
	digest := d.algorithm(&explicit, "RSA-PSS digest")
	d.end(explicit, "RSA-PSS digest")

	explicit = d.read(&params, context1Constructed, "RSA-PSS mask")
	mask := d.algorithm(&explicit, "RSA-PSS mask")
	d.end(explicit, "RSA-PSS mask")
	maskDigest := d.algorithm(&mask.parameters, "RSA-PSS mask digest")
	d.end(mask.parameters, "RSA-PSS mask digest")

	explicit = d.read(&params, context2Constructed, "RSA-PSS salt length")
	salt := d.integer(&explicit, "RSA-PSS salt length")
	d.end(explicit, "RSA-PSS salt length")
	d.end(params, "RSA-PSS salt length")
	if d.err != nil {
		return 0, fmt.Errorf("%w: RSA-PSS parameters", ErrAlgorithm)
	}

	first, err1 := digest.digest()
	second, err2 := maskDigest.digest()
	// A salt of 1 to 64 bytes. 0 and negative values have another meaning in crypto/rsa.
	if err1 != nil || err2 != nil || first != hash || second != hash || mask.oid != oidMGF1 ||
		!salt.IsInt64() || salt.Int64() < 1 || salt.Int64() > int64(crypto.SHA512.Size()) {
		return 0, fmt.Errorf("%w: RSA-PSS parameters", ErrAlgorithm)
	}
	return int(salt.Int64()), nil
}

// Object identifiers as the contents of their DER encoding.
const (
	oidSignedData = "\x2a\x86\x48\x86\xf7\x0d\x01\x07\x02"         // 1.2.840.113549.1.7.2
	oidTSTInfo    = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x01\x04" // 1.2.840.113549.1.9.16.1.4

	oidContentType          = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x03"         // 1.2.840.113549.1.9.3
	oidMessageDigest        = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04"         // 1.2.840.113549.1.9.4
	oidSigningCertificate   = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x0c" // 1.2.840.113549.1.9.16.2.12
	oidSigningCertificateV2 = "\x2a\x86\x48\x86\xf7\x0d\x01\x09\x10\x02\x2f" // 1.2.840.113549.1.9.16.2.47

	oidSHA256 = "\x60\x86\x48\x01\x65\x03\x04\x02\x01" // 2.16.840.1.101.3.4.2.1
	oidSHA384 = "\x60\x86\x48\x01\x65\x03\x04\x02\x02" // 2.16.840.1.101.3.4.2.2
	oidSHA512 = "\x60\x86\x48\x01\x65\x03\x04\x02\x03" // 2.16.840.1.101.3.4.2.3

	oidRSA             = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01" // 1.2.840.113549.1.1.1
	oidMGF1            = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x08" // 1.2.840.113549.1.1.8
	oidRSAPSS          = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a" // 1.2.840.113549.1.1.10
	oidSHA256WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b" // 1.2.840.113549.1.1.11
	oidSHA384WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c" // 1.2.840.113549.1.1.12
	oidSHA512WithRSA   = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d" // 1.2.840.113549.1.1.13
	oidECDSAWithSHA256 = "\x2a\x86\x48\xce\x3d\x04\x03\x02"     // 1.2.840.10045.4.3.2
	oidECDSAWithSHA384 = "\x2a\x86\x48\xce\x3d\x04\x03\x03"     // 1.2.840.10045.4.3.3
	oidECDSAWithSHA512 = "\x2a\x86\x48\xce\x3d\x04\x03\x04"     // 1.2.840.10045.4.3.4

	oidKeyUsage    = "2.5.29.15" // as crypto/x509 prints them
	oidExtKeyUsage = "2.5.29.37"
)

// algorithm is an AlgorithmIdentifier (RFC 5280, 4.1.1.2).
type algorithm struct {
	oid        string
	parameters cryptobyte.String // the element, nil when left out
}

func (d *decoder) algorithm(s *cryptobyte.String, what string) (a algorithm) {
	contents := d.read(s, asn1.SEQUENCE, what)
	a.oid = d.oid(&contents, what)
	if d.more(contents) {
		a.parameters = d.anyElement(&contents, what+" parameters")
	}
	d.end(contents, what)
	return a
}

// plain reports whether the parameters are absent or NULL. For digests and RSA
// PKCS #1 v1.5 both forms must be accepted (RFC 5754, 2 and 3.2).
func (a algorithm) plain() bool {
	return a.parameters == nil || string(a.parameters) == "\x05\x00"
}

var digests = map[string]crypto.Hash{oidSHA256: crypto.SHA256, oidSHA384: crypto.SHA384, oidSHA512: crypto.SHA512}

// digest returns the hash of a digest algorithm, or ErrAlgorithm if it is not accepted under a signature.
func (a algorithm) digest() (crypto.Hash, error) {
	if hash := digests[a.oid]; hash != 0 && a.plain() {
		return hash, nil
	}
	return 0, fmt.Errorf("%w: digest", ErrAlgorithm)
}

// sum hashes data.
func sum(hash crypto.Hash, data []byte) []byte {
	h := hash.New()
	h.Write(data)
	return h.Sum(nil)
}
