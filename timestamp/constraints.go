package timestamp

import (
	"bytes"
	"cmp"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"
)

// crypto/x509 ignores name constraints of the kinds that it does not know, unless they are critical, and the names in a subject. It takes the
// hosts below a host for that host in addresses and URIs, and refuses URIs without a host whatever is constrained. It counts self-issued CAs
// for path lengths, and lets another key sign than the one that a certificate names. So paths are checked for these here: by RFC 5280, and as OpenSSL
// reads it.

var (
	oidSubjectAltName  = asn1.ObjectIdentifier{2, 5, 29, 17}
	oidNameConstraints = asn1.ObjectIdentifier{2, 5, 29, 30}
	oidAuthorityKeyID  = asn1.ObjectIdentifier{2, 5, 29, 35}
	oidCommonName      = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidEmailAddress    = asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}
	oidSMTPUTF8Mailbox = asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 8, 9} // RFC 9598
)

// Kinds of general names (RFC 5280, section 4.2.1.6), by their first byte in DER.
const (
	otherName     = 0xa0
	emailName     = 0x81
	hostName      = 0x82
	directoryName = 0xa4
	uriName       = 0x86
	addressName   = 0x87
)

const checkedKinds = "\x81\x82\xa4\x86\x87"

// minRSA is the least size of an RSA key of a CA.
const minRSA = 2048

// unconstrained returns a copy of which crypto/x509 checks neither path length nor name constraints: keeps does.
func unconstrained(c *x509.Certificate) *x509.Certificate {
	bare := *c
	bare.MaxPathLen, bare.MaxPathLenZero = -1, false
	bare.Extensions = slices.DeleteFunc(slices.Clone(c.Extensions), func(e pkix.Extension) bool { return e.Id.Equal(oidNameConstraints) })
	bare.UnhandledCriticalExtensions = slices.DeleteFunc(slices.Clone(c.UnhandledCriticalExtensions), oidNameConstraints.Equal)
	return &bare
}

// keeps returns an error unless a path, from a certificate to a trust anchor, keeps the key ids, sizes of keys, path lengths and name
// constraints of its CAs.
func keeps(path []*x509.Certificate) error {
	for i, ca := range path[1:] {
		if last := path[i]; !identifies(last, ca) || names(last, last) && identifies(last, last) {
			return fmt.Errorf("%q does not name the key of %q as its issuer's (authority key identifier)", last.Subject, ca.Subject)
		}
		if key, isRSA := ca.PublicKey.(*rsa.PublicKey); isRSA && key.N.BitLen() < minRSA {
			return fmt.Errorf("the key of %q has %d bits, and that of a CA at least %d", ca.Subject, key.N.BitLen(), minRSA)
		}
		// Self-issued CAs are exempt (RFC 5280, section 6.1).
		below := slices.DeleteFunc(slices.Clone(path[:i+1]), func(c *x509.Certificate) bool { return c != path[0] && names(c, c) })
		if cas := len(below) - 1; ca.BasicConstraintsValid && ca.MaxPathLen >= 0 && cas > ca.MaxPathLen {
			return fmt.Errorf("%q allows %d CAs below it, and there are %d", ca.Subject, ca.MaxPathLen, cas)
		}
		constraints, err := constraintsOf(ca)
		if err != nil {
			return err
		}
		for j, c := range below {
			if err := constraints.admit(c, j == 0); err != nil {
				return fmt.Errorf("%q may not certify %q: %w (name constraints)", ca.Subject, c.Subject, err)
			}
		}
	}
	return nil
}

// identifies reports whether the issuer may be the one that a certificate names by key id, name and serial number.
func identifies(c, by *x509.Certificate) bool {
	var id struct {
		Key    []byte          `asn1:"optional,tag:0"`
		Names  []asn1.RawValue `asn1:"optional,tag:1"`
		Serial *big.Int        `asn1:"optional,tag:2"`
	}
	value := extensionOf(c, oidAuthorityKeyID)
	if value == nil {
		return true
	}
	if !unmarshal(value, &id) || id.Serial != nil && id.Serial.Cmp(by.SerialNumber) != 0 {
		return false
	}
	i := slices.IndexFunc(id.Names, func(n asn1.RawValue) bool { return n.FullBytes[0] == directoryName })
	return (len(id.Key) == 0 || len(by.SubjectKeyId) == 0 || bytes.Equal(id.Key, by.SubjectKeyId)) && (i < 0 || bytes.Equal(id.Names[i].Bytes, by.RawIssuer))
}

func extensionOf(c *x509.Certificate, id asn1.ObjectIdentifier) []byte {
	if i := slices.IndexFunc(c.Extensions, func(e pkix.Extension) bool { return e.Id.Equal(id) }); i >= 0 {
		return c.Extensions[i].Value
	}
	return nil
}

func unmarshal(data []byte, value any) bool {
	rest, err := asn1.Unmarshal(data, value)
	return err == nil && len(rest) == 0
}

// A generalName is a name of a kind with its content in DER; of a subject's common name, and of an international address, the text.
type generalName struct {
	kind    byte
	content []byte
}

type nameConstraints struct {
	Permitted [][]asn1.RawValue `asn1:"optional,tag:0"`
	Excluded  [][]asn1.RawValue `asn1:"optional,tag:1"`
}

// constraintsOf returns the name constraints of a CA; nil: it has none. It returns an error for those that are not checked here: of
// another kind, or with a minimum or maximum.
func constraintsOf(ca *x509.Certificate) (*nameConstraints, error) {
	value := extensionOf(ca, oidNameConstraints)
	if value == nil {
		return nil, nil
	}
	var n nameConstraints
	readable := unmarshal(value, &n)
	for _, base := range slices.Concat(n.Permitted, n.Excluded) {
		readable = readable && len(base) == 1 && strings.Contains(checkedKinds, string(base[0].FullBytes[:1]))
	}
	if !readable {
		return nil, fmt.Errorf("%q has name constraints of a kind that is not checked", ca.Subject)
	}
	return &n, nil
}

// admit returns an error unless the constraints admit all names of a certificate. end: it is at the path's end.
func (n *nameConstraints) admit(c *x509.Certificate, end bool) error {
	if n == nil {
		return nil
	}
	all, err := namesOf(c, end)
	for _, name := range all {
		permitted, asked, errPermitted := name.withinAny(n.Permitted)
		excluded, _, errExcluded := name.withinAny(n.Excluded)
		err = cmp.Or(err, errPermitted, errExcluded)
		switch {
		case asked && !permitted:
			err = cmp.Or(err, errors.New("it has a name that is not permitted"))
		case excluded:
			err = cmp.Or(err, errors.New("it has a name that is excluded"))
		}
	}
	return err
}

// withinAny reports whether a name is within a subtree, and whether there is any of its kind.
func (name generalName) withinAny(subtrees [][]asn1.RawValue) (within, asked bool, err error) {
	for _, subtree := range subtrees {
		base := subtree[0]
		if kind := base.FullBytes[0]; kind == name.kind || kind == emailName && name.kind == otherName {
			one, fault := name.within(base.Bytes)
			within, asked, err = within || one, true, cmp.Or(err, fault)
		}
	}
	return within, asked, err
}

// isHostLike reports whether a common name has the form of a host's: labels of letters, digits, underscores and, inside, hyphens, with points between them.
func isHostLike(name string) bool {
	foreign := func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '_' && c != '-'
	}
	labels := strings.Split(name, ".")
	return len(labels) > 1 && !slices.ContainsFunc(labels, func(label string) bool {
		return label == "" || strings.Trim(label, "-") != label || strings.ContainsFunc(label, foreign)
	})
}

// namesOf returns the names of a certificate: its subject, the addresses in that, its alternative names, and at the path's end, if none of
// these is a host, the common names that look like one.
func namesOf(c *x509.Certificate, end bool) (all []generalName, err error) {
	var alternative []asn1.RawValue
	if value := extensionOf(c, oidSubjectAltName); value != nil && !unmarshal(value, &alternative) {
		return nil, errNames
	}
	for _, name := range alternative {
		kind, content := name.FullBytes[0], name.Bytes
		end = end && kind != hostName
		if kind == otherName {
			address, fault := internationalAddress(content)
			if err = cmp.Or(err, fault); address == nil {
				continue
			}
			content = address
		}
		if strings.Contains(checkedKinds, string([]byte{kind ^ 0x20})) { // a text in pieces
			err = errNames
		}
		all = append(all, generalName{kind, content})
	}
	subject, fault := readName(c.RawSubject)
	err = cmp.Or(err, fault)
	if len(subject) > 0 {
		all = append(all, generalName{directoryName, c.RawSubject})
	}
	for _, part := range slices.Concat(subject...) {
		switch {
		case part.ID.Equal(oidEmailAddress):
			all = append(all, generalName{emailName, part.Value.Bytes})
			if part.Value.FullBytes[0] != asn1.TagIA5String {
				err = errNames
			}
		case part.ID.Equal(oidCommonName) && end:
			text, _, fault := textOf(part.Value)
			if err = cmp.Or(err, fault); strings.ContainsRune(text, 0) {
				err = errNames
			}
			if isHostLike(text) {
				all = append(all, generalName{hostName, []byte(text)})
			}
		}
	}
	return all, err
}

var errNames = errors.New("its names cannot be read")

// internationalAddress returns the address that another name is; nil: it is none.
func internationalAddress(content []byte) ([]byte, error) {
	var id asn1.ObjectIdentifier
	var wrapped, address asn1.RawValue
	rest, err := asn1.Unmarshal(content, &id)
	if err != nil || !id.Equal(oidSMTPUTF8Mailbox) {
		return nil, err
	}
	if !unmarshal(rest, &wrapped) || !unmarshal(wrapped.Bytes, &address) || address.FullBytes[0] != asn1.TagUTF8String {
		return nil, errNames
	}
	return address.Bytes, nil
}

// within reports whether a name is within a subtree of its kind. It returns an error for a name that cannot be compared.
func (name generalName) within(base []byte) (bool, error) {
	is, of := lower(name.content), lower(base)
	switch name.kind {
	case hostName:
		return of == "" || is == of || strings.HasSuffix(is, of) && (of[0] == '.' || is[len(is)-len(of)-1] == '.'), nil
	case emailName, otherName:
		at, part := bytes.LastIndexByte(name.content, '@'), bytes.LastIndexByte(base, '@')
		if at < 0 || name.kind == otherName && strings.Contains(of, "xn--") { // which would have to be written as the other is
			return false, errNames
		}
		if name.kind == emailName && part >= 0 {
			return is[at:] == of[part:] && (part == 0 || bytes.Equal(name.content[:at], base[:part])), nil
		}
		return hostWithin(is[at+1:], of), nil
	case uriName:
		_, rest, _ := strings.Cut(is, ":")
		host, hasHost := strings.CutPrefix(rest, "//")
		if i := cmp.Or(strings.IndexByte(host, ':')+1, strings.IndexByte(host, '/')+1); i > 0 {
			host = host[:i-1]
		}
		if !hasHost || host == "" {
			return false, errors.New("it has a URI without a host")
		}
		return hostWithin(host, of), nil
	case addressName:
		n := len(name.content)
		if n != 4 && n != 16 {
			return false, errNames
		}
		within := len(base) == 2*n
		for i := 0; within && i < n; i++ {
			within = (name.content[i]^base[i])&base[n+i] == 0
		}
		return within, nil
	}
	whole, err := canonical(name.content)
	part, fault := canonical(base)
	return len(part) <= len(whole) && slices.Equal(whole[:len(part)], part), cmp.Or(err, fault)
}

// hostWithin: a host is itself, and with a point before it all below it.
func hostWithin(host, base string) bool {
	return host == base || strings.HasPrefix(base, ".") && len(host) > len(base) && strings.HasSuffix(host, base)
}

// A nameSET is a part of a distinguished name. encoding/asn1 reads a type of such a name as a set.
type nameSET []struct {
	ID    asn1.ObjectIdentifier
	Value asn1.RawValue
}

func readName(raw []byte) (list []nameSET, err error) {
	if !unmarshal(raw, &list) {
		err = errNames
	}
	return list, err
}

// canonical writes the parts of a distinguished name such that equal ones are equal: whatever kind of string they are, in whatever case
// of ASCII, with whatever white space.
func canonical(raw []byte) (parts []string, err error) {
	list, err := readName(raw)
	for _, set := range list {
		var part []string
		for _, one := range set {
			text, kind, fault := textOf(one.Value)
			err = cmp.Or(err, fault)
			words := strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r >= '\t' && r <= '\r' })
			part = append(part, fmt.Sprintf("%s %d %q", one.ID, kind, lower([]byte(strings.Join(words, " ")))))
		}
		slices.Sort(part)
		parts = append(parts, strings.Join(part, "\n"))
	}
	return parts, err
}

// textOf returns a string of a distinguished name in UTF-8, and what kind it is; all kinds that are compared with each other are UTF8String.
func textOf(v asn1.RawValue) (text string, kind int, err error) {
	var width int
	switch v.FullBytes[0] {
	case asn1.TagUTF8String:
		text, v.Bytes = string(v.Bytes), nil
	case asn1.TagPrintableString, asn1.TagIA5String, asn1.TagT61String, 26: // VisibleString
		width = 1
	case asn1.TagBMPString:
		width = 2
	case 28: // UniversalString
		width = 4
	case asn1.TagNumericString:
		return string(v.Bytes), asn1.TagNumericString, nil
	default:
		return "", 0, errNames
	}
	for rest := v.Bytes; len(rest) > 0; rest = rest[width:] {
		if len(rest) < width {
			return "", 0, errNames
		}
		var r rune
		for _, b := range rest[:width] {
			r = r<<8 | rune(b)
		}
		text += string(r)
	}
	if strings.ContainsRune(text, utf8.RuneError) {
		return "", 0, errNames
	}
	return text, asn1.TagUTF8String, nil
}

// lower writes ASCII in lower case. strings.ToLower would make other letters ASCII.
func lower(text []byte) string {
	text = slices.Clone(text)
	for i, b := range text {
		if b >= 'A' && b <= 'Z' {
			text[i] = b + 'a' - 'A'
		}
	}
	return string(text)
}
