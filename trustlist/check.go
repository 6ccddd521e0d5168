package trustlist

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha1" // lists before 2019 name their signer's certificate by SHA-1
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"fmt"
	"math/big"
	"slices"
	"time"
)

// digests are the accepted hash functions.
var digests = map[string]crypto.Hash{
	"http://www.w3.org/2001/04/xmlenc#sha256":       crypto.SHA256,
	"http://www.w3.org/2001/04/xmldsig-more#sha384": crypto.SHA384,
	"http://www.w3.org/2001/04/xmlenc#sha512":       crypto.SHA512,
}

const sha1Digest = "http://www.w3.org/2000/09/xmldsig#sha1"

// A scheme is a signature scheme.
type scheme struct {
	hash   crypto.Hash
	verify func(key crypto.PublicKey, hash crypto.Hash, digest, signature []byte) bool
}

// schemes are those of RFC 9231 that lists use.
var schemes = map[string]scheme{
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256":      {crypto.SHA256, verifyPKCS1},
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha384":      {crypto.SHA384, verifyPKCS1},
	"http://www.w3.org/2001/04/xmldsig-more#rsa-sha512":      {crypto.SHA512, verifyPKCS1},
	"http://www.w3.org/2007/05/xmldsig-more#sha256-rsa-MGF1": {crypto.SHA256, verifyPSS},
	"http://www.w3.org/2007/05/xmldsig-more#sha384-rsa-MGF1": {crypto.SHA384, verifyPSS},
	"http://www.w3.org/2007/05/xmldsig-more#sha512-rsa-MGF1": {crypto.SHA512, verifyPSS},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256":    {crypto.SHA256, verifyECDSA},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha384":    {crypto.SHA384, verifyECDSA},
	"http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512":    {crypto.SHA512, verifyECDSA},
}

const minimumRSA = 2048 // bits

func verifyPKCS1(key crypto.PublicKey, hash crypto.Hash, digest, signature []byte) bool {
	public, ok := key.(*rsa.PublicKey)
	return ok && public.N.BitLen() >= minimumRSA && rsa.VerifyPKCS1v15(public, hash, digest, signature) == nil
}

func verifyPSS(key crypto.PublicKey, hash crypto.Hash, digest, signature []byte) bool {
	public, ok := key.(*rsa.PublicKey)
	options := &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}
	return ok && public.N.BitLen() >= minimumRSA && rsa.VerifyPSS(public, hash, digest, signature, options) == nil
}

// verifyECDSA takes r and s, concatenated, each as long as the order of the group (RFC 9231, 2.3.6).
func verifyECDSA(key crypto.PublicKey, _ crypto.Hash, digest, signature []byte) bool {
	public, ok := key.(*ecdsa.PublicKey)
	if !ok || len(signature) != 2*((public.Params().N.BitLen()+7)/8) {
		return false
	}
	half := len(signature) / 2
	return ecdsa.Verify(public, digest, new(big.Int).SetBytes(signature[:half]), new(big.Int).SetBytes(signature[half:]))
}

// verify checks that the certificate is one of the signers', and that its key signed the list.
func (s *signature) verify(root *element, signers Signers, issued time.Time) error {
	if !slices.Contains(signers, sha256.Sum256(s.certificate)) {
		return fmt.Errorf("%w: its certificate has the SHA-256 %x", ErrSigner, sha256.Sum256(s.certificate))
	}
	key, notAfter, err := publicKey(s.certificate)
	if err != nil {
		return err
	}
	if issued.After(notAfter) {
		return fmt.Errorf("%w: on %s", ErrExpired, notAfter.Format(time.RFC3339))
	}
	hash := digests[s.named.hash]
	if s.named.hash == sha1Digest {
		hash = crypto.SHA1
	}
	if err := holds("the signed properties, of the certificate", hash, s.named.digest, s.certificate); err != nil {
		return err
	}
	form := exclusive
	if len(s.signed.transforms) == 0 {
		form = inclusive // for a reference without transforms (XML Signature 1.1, 4.4.3.2)
	}
	if err := holds("SignedInfo, of the signed properties", digests[s.signed.hash], s.signed.digest, canonical(s.properties, form, nil)); err != nil {
		return err
	}
	if err := holds("SignedInfo, of the list", digests[s.list.hash], s.list.digest, canonical(root, exclusive, s.element)); err != nil {
		return err
	}
	by, known := schemes[s.scheme]
	if !known {
		return fmt.Errorf("%w: %s", ErrAlgorithm, s.scheme)
	}
	if !by.verify(key, by.hash, sum(by.hash, canonical(s.signedInfo, exclusive, nil)), s.value) {
		return fmt.Errorf("%w: it is not that of its certificate's key", ErrSignature)
	}
	return nil
}

func holds(where string, hash crypto.Hash, digest, content []byte) error {
	if hash == 0 {
		return fmt.Errorf("%w: a digest in %s", ErrAlgorithm, where)
	}
	if !bytes.Equal(digest, sum(hash, content)) {
		return fmt.Errorf("%w: the digest in %s is another", ErrSignature, where)
	}
	return nil
}

func sum(hash crypto.Hash, content []byte) []byte {
	h := hash.New()
	h.Write(content)
	return h.Sum(nil)
}

// publicKey reads only two fields of a certificate: its key, and the end of its validity. Package x509 refuses some
// names of signers of real lists.
func publicKey(der []byte) (key crypto.PublicKey, notAfter time.Time, err error) {
	var certificate struct {
		TBS struct {
			Version   int `asn1:"optional,explicit,default:0,tag:0"`
			Serial    *big.Int
			Algorithm asn1.RawValue
			Issuer    asn1.RawValue
			Validity  struct{ NotBefore, NotAfter time.Time }
			Subject   asn1.RawValue
			PublicKey asn1.RawValue
		}
		Algorithm asn1.RawValue
		Signature asn1.BitString
	}
	if _, err := asn1.Unmarshal(der, &certificate); err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: its signer's certificate: %w", ErrMalformed, err)
	}
	key, err = x509.ParsePKIXPublicKey(certificate.TBS.PublicKey.FullBytes)
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("%w: its signer's key: %w", ErrAlgorithm, err)
	}
	return key, certificate.TBS.Validity.NotAfter, nil
}
