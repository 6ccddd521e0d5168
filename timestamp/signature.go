package timestamp

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"fmt"

	"golang.org/x/crypto/cryptobyte/asn1"

	"jurat/internal/sigkey"
)

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
