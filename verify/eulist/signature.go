package eulist

import (
	"bytes"
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/rsa"
	_ "crypto/sha1" // lists before 2019 name their signer's certificate by SHA-1
	"crypto/sha256"
	_ "crypto/sha512"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	dsig            = "http://www.w3.org/2000/09/xmldsig#"
	xades           = "http://uri.etsi.org/01903/v1.3.2#"
	exclusiveMethod = "http://www.w3.org/2001/10/xml-exc-c14n#"
	enveloped       = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
	propertiesType  = "http://uri.etsi.org/01903#SignedProperties"
)

// A signature holds what the only Signature of a list says. None of it is verified yet.
type signature struct {
	element                *element
	signedInfo, properties *element
	list                   reference // over the list without its signature
	signed                 reference // over the signed properties
	scheme                 string
	value                  []byte
	certificate            []byte    // DER of the first certificate in KeyInfo
	named                  reference // over that certificate
}

// A reference states the digest of a part of the document.
type reference struct {
	transforms []string
	hash       string
	digest     []byte
}

// readSignature reads the Signature of a list. It must be a child of the root, the only one in the document, and of
// the form of trusted lists (ETSI TS 119 612, 5.7.1 and annex B): enveloped, XAdES baseline B, over the whole list
// and the signed properties.
func (r *reader) readSignature(root *element) (s signature) {
	if n := count(root, "Signature"); n != 1 {
		r.fail(root, "%d signatures, want one", n)
	}
	s.element = r.only(root, dsig, "Signature")
	parts := r.exactly(s.element, dsig, "SignedInfo", "SignatureValue", "KeyInfo", "Object")
	s.signedInfo, s.value = parts[0], r.bytes(parts[1])
	s.certificate = r.bytes(r.first(r.first(parts[2], "X509Data"), "X509Certificate"))
	s.properties = r.readProperties(s.element, parts[3])
	s.named = r.readNamed(s.properties)
	r.readSignedInfo(root, &s)
	return s
}

func count(e *element, local string) (n int) {
	if e.is(dsig, local) {
		n++
	}
	for _, child := range e.children {
		if child.element != nil {
			n += count(child.element, local)
		}
	}
	return n
}

func (r *reader) first(e *element, local string) *element {
	list := r.all(e, dsig, local)
	if len(list) == 0 {
		r.fail(e, "%s is missing", local)
		return nil
	}
	return list[0]
}

// readProperties finds the signed properties at their place.
func (r *reader) readProperties(signature, object *element) *element {
	qualifying := r.only(object, xades, "QualifyingProperties")
	if len(r.elements(object)) != 1 {
		r.fail(object, "something stands beside the qualifying properties")
	}
	if target := r.attributeOf(qualifying, "Target"); target != "#"+r.attributeOf(signature, "Id") {
		r.fail(qualifying, "they are those of another signature")
	}
	return r.only(qualifying, xades, "SignedProperties")
}

// readNamed reads which certificate the signed properties name first. The older and the newer attribute begin alike.
func (r *reader) readNamed(properties *element) reference {
	signed := r.only(properties, xades, "SignedSignatureProperties")
	list := append(r.all(signed, xades, "SigningCertificateV2"), r.all(signed, xades, "SigningCertificate")...)
	if len(list) != 1 {
		r.fail(signed, "%d attributes name the signer's certificate, want one", len(list))
		return reference{}
	}
	all := r.all(list[0], xades, "Cert")
	if len(all) == 0 {
		r.fail(list[0], "Cert is missing")
		return reference{}
	}
	parts := r.exactly(r.only(all[0], xades, "CertDigest"), dsig, "DigestMethod", "DigestValue")
	return reference{hash: r.attributeOf(parts[0], "Algorithm"), digest: r.bytes(parts[1])}
}

func (r *reader) readSignedInfo(root *element, s *signature) {
	parts := r.exactly(s.signedInfo, dsig, "CanonicalizationMethod", "SignatureMethod", "Reference", "Reference")
	if r.algorithm(parts[0]) != exclusiveMethod {
		r.fail(parts[0], "another canonical form than the exclusive one")
	}
	s.scheme = r.algorithm(parts[1])
	list, signed := parts[2], parts[3]
	if r.err == nil && isProperties(list) {
		list, signed = signed, list
	}
	if r.err == nil && (!isProperties(signed) || isProperties(list)) {
		r.fail(s.signedInfo, "the references are not one over the list and one over the signed properties")
	}
	if uri := r.attributeOf(list, "URI"); uri != "" && uri != "#"+r.attributeOf(root, "Id") {
		r.fail(list, "it is not over the list")
	}
	if uri := r.attributeOf(signed, "URI"); uri != "#"+r.attributeOf(s.properties, "Id") {
		r.fail(signed, "it is not over the signed properties")
	}
	s.list, s.signed = r.reference(list), r.reference(signed)
	if !slices.Equal(s.list.transforms, []string{enveloped, exclusiveMethod}) {
		r.fail(list, "the transforms are others than those of trusted lists")
	}
	if t := s.signed.transforms; len(t) > 1 || len(t) == 1 && t[0] != exclusiveMethod {
		r.fail(signed, "the transforms are others than those of trusted lists")
	}
}

func isProperties(reference *element) bool {
	return slices.ContainsFunc(reference.attributes, func(a attribute) bool { return a.is("", "Type") && a.value == propertiesType })
}

// algorithm returns the algorithm of an element without parameters.
func (r *reader) algorithm(e *element) string {
	r.exactly(e, dsig)
	return r.attributeOf(e, "Algorithm")
}

func (r *reader) reference(e *element) (ref reference) {
	locals := []string{"Transforms", "DigestMethod", "DigestValue"}
	if r.maybe(e, dsig, "Transforms") == nil {
		locals = locals[1:]
	}
	parts := r.exactly(e, dsig, locals...)
	if len(parts) == 3 {
		for _, t := range r.elements(parts[0]) {
			if !t.is(dsig, "Transform") {
				r.fail(t, "it is no transform")
			}
			ref.transforms = append(ref.transforms, r.algorithm(t))
		}
		parts = parts[1:]
	}
	ref.hash, ref.digest = r.algorithm(parts[0]), r.bytes(parts[1])
	return ref
}

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
	form := exclusive
	if len(s.signed.transforms) == 0 {
		form = inclusive // for a reference without transforms (XML Signature 1.1, 4.4.3.2)
	}
	err = cmp.Or(holds("the signed properties, of the certificate", hash, s.named.digest, s.certificate),
		holds("SignedInfo, of the signed properties", digests[s.signed.hash], s.signed.digest, canonical(s.properties, form, nil)),
		holds("SignedInfo, of the list", digests[s.list.hash], s.list.digest, canonical(root, exclusive, s.element)))
	if err != nil {
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

// A reader takes values out of a tree. After its first failure it returns nothing, so a structure can be read as a
// list of its members, and the caller checks the error once.
type reader struct{ err error }

func (r *reader) fail(e *element, format string, args ...any) {
	if r.err == nil {
		where := ""
		for ; e != nil; e = e.parent {
			where = "/" + e.local + where
		}
		r.err = fmt.Errorf("%w: %s: %s", ErrMalformed, where, fmt.Sprintf(format, args...))
	}
}

// elements returns the child elements of e. It fails if there is text between them.
func (r *reader) elements(e *element) (list []*element) {
	if e == nil || r.err != nil {
		return nil
	}
	for _, child := range e.children {
		if child.element != nil {
			list = append(list, child.element)
		} else if strings.Trim(child.text, " \t\r\n") != "" {
			r.fail(e, "a text between elements")
		}
	}
	return list
}

// all returns the elements of one name within e.
func (r *reader) all(e *element, space, local string) (list []*element) {
	for _, child := range r.elements(e) {
		if child.is(space, local) {
			list = append(list, child)
		}
	}
	return list
}

// maybe returns the only element of a name within e, or nil.
func (r *reader) maybe(e *element, space, local string) *element {
	list := r.all(e, space, local)
	if len(list) > 1 {
		r.fail(e, "%s is there %d times", local, len(list))
	}
	if len(list) != 1 {
		return nil
	}
	return list[0]
}

// only returns the only element of a name within e. With several names, each is looked up within the one before.
func (r *reader) only(e *element, space string, path ...string) *element {
	for _, local := range path {
		found := r.maybe(e, space, local)
		if found == nil {
			r.fail(e, "%s is missing", local)
		}
		e = found
	}
	return e
}

// exactly returns the elements of e, which must have these names in this order.
func (r *reader) exactly(e *element, space string, locals ...string) []*element {
	list := r.elements(e)
	if r.err == nil && len(list) != len(locals) {
		r.fail(e, "it holds %d elements, want %s", len(list), strings.Join(locals, ", "))
	}
	for i := 0; r.err == nil && i < len(list); i++ {
		if !list[i].is(space, locals[i]) {
			r.fail(e, "it holds %s, want %s", list[i].local, locals[i])
		}
	}
	if r.err != nil {
		return make([]*element, len(locals))
	}
	return list
}

// value returns the text of an element without child elements, without white space around it.
func (r *reader) value(e *element) string {
	if e == nil || r.err != nil {
		return ""
	}
	var text strings.Builder
	for _, child := range e.children {
		if child.element != nil {
			r.fail(e, "it holds an element, want a text")
		}
		text.WriteString(child.text)
	}
	return strings.Trim(text.String(), " \t\r\n")
}

// values returns the values of all elements of one name within e.
func (r *reader) values(e *element, space, local string) (list []string) {
	for _, child := range r.all(e, space, local) {
		list = append(list, r.value(child))
	}
	return list
}

func (r *reader) number(e *element) int {
	n, err := strconv.ParseUint(r.value(e), 10, 31)
	if err != nil {
		r.fail(e, "it is not a whole number")
	}
	return int(n)
}

func (r *reader) time(e *element) time.Time {
	t, err := time.Parse(time.RFC3339, r.value(e))
	if err != nil {
		r.fail(e, "it is not a time with its zone")
	}
	return t.UTC()
}

func (r *reader) bytes(e *element) []byte {
	data, err := decode(r.value(e))
	if err != nil || len(data) == 0 {
		r.fail(e, "it is not base64")
	}
	return data
}

// decode reads base64 with white space anywhere.
func decode(text string) ([]byte, error) {
	return base64.StdEncoding.Strict().DecodeString(strings.Join(strings.Fields(text), ""))
}

// attributeOf returns the value of an attribute without a namespace.
func (r *reader) attributeOf(e *element, local string) string {
	if e == nil || r.err != nil {
		return ""
	}
	for _, a := range e.attributes {
		if a.is("", local) {
			return a.value
		}
	}
	r.fail(e, "the attribute %s is missing", local)
	return ""
}
