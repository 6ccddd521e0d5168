package trustlist

import "slices"

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
