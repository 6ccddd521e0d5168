package timestamp

import (
	"bytes"
	"crypto/x509"
	"math/big"

	"golang.org/x/crypto/cryptobyte"
	"golang.org/x/crypto/cryptobyte/asn1"
)

// Context-specific tags of the structures read and written here.
const (
	context0            asn1.Tag = 0x80
	context1            asn1.Tag = 0x81
	context0Constructed asn1.Tag = 0xa0
	context1Constructed asn1.Tag = 0xa1
	context2Constructed asn1.Tag = 0xa2
	context3Constructed asn1.Tag = 0xa3
	context4Constructed asn1.Tag = 0xa4
)

// decoder reads strict DER. After its first failure every method returns nothing, so a structure can be read as a
// list of its members, and the caller checks the error once. It never recurses: the depth of the code bounds the
// depth of reading, however deep the input nests.
type decoder struct {
	capacity int // of the whole input; see offset
	err      error
}

// decode starts a decoder on a copy of input, so that results stay unchanged when the caller reuses the buffer.
func decode(input []byte, limit int, what string) (*decoder, cryptobyte.String) {
	d := &decoder{}
	if len(input) > limit {
		d.err = &SyntaxError{Offset: limit, What: what + " is larger than accepted"}
		return d, nil
	}
	s := cryptobyte.String(bytes.Clone(input))
	d.capacity = cap(s)
	return d, s
}

// offset returns where s starts in the input. Every part is a slice of the same array, and slicing keeps the capacity
// up to the array's end.
func (d *decoder) offset(s cryptobyte.String) int { return d.capacity - cap(s) }

func (d *decoder) fail(at cryptobyte.String, what string) {
	d.failWith(&SyntaxError{Offset: d.offset(at), What: what})
}

func (d *decoder) failWith(err error) {
	if d.err == nil {
		d.err = err
	}
}

// next reads a part of s, unless reading has failed before, and fails at its place if it is not there.
func (d *decoder) next(s *cryptobyte.String, what string, read func() bool) bool {
	at := *s
	if d.err == nil && !read() {
		d.fail(at, what)
	}
	return d.err == nil
}

// read returns the contents of the next element, which must have this tag.
func (d *decoder) read(s *cryptobyte.String, tag asn1.Tag, what string) (contents cryptobyte.String) {
	if !d.next(s, what, func() bool { return s.ReadASN1(&contents, tag) }) {
		return nil
	}
	return contents
}

// element returns the next element with its header.
func (d *decoder) element(s *cryptobyte.String, tag asn1.Tag, what string) (element cryptobyte.String) {
	if !d.next(s, what, func() bool { return s.ReadASN1Element(&element, tag) }) {
		return nil
	}
	return element
}

// anyElement returns the next element with its header, of any tag.
func (d *decoder) anyElement(s *cryptobyte.String, what string) (element cryptobyte.String) {
	var tag asn1.Tag
	if !d.next(s, what, func() bool { return s.ReadAnyASN1Element(&element, &tag) }) {
		return nil
	}
	return element
}

// optional reads an element that may be left out.
func (d *decoder) optional(s *cryptobyte.String, tag asn1.Tag, what string) (contents cryptobyte.String, present bool) {
	if d.err != nil || !s.PeekASN1Tag(tag) {
		return nil, false
	}
	contents = d.read(s, tag, what)
	return contents, d.err == nil
}

// end refuses data after the last member of a structure.
func (d *decoder) end(s cryptobyte.String, what string) {
	if d.err == nil && !s.Empty() {
		d.fail(s, "trailing data after "+what)
	}
}

// more reports whether a SEQUENCE OF or SET OF has another member.
func (d *decoder) more(s cryptobyte.String) bool { return d.err == nil && !s.Empty() }

func (d *decoder) octets(s *cryptobyte.String, what string) []byte {
	return d.read(s, asn1.OCTET_STRING, what)
}

// oid reads an object identifier's contents. Identifiers are compared as bytes.
func (d *decoder) oid(s *cryptobyte.String, what string) string {
	at := *s
	contents := d.read(s, asn1.OBJECT_IDENTIFIER, what)
	if d.err == nil && !validOID(contents) {
		d.fail(at, what+" is not an object identifier")
	}
	return string(contents)
}

// validOID checks the arcs: each in the fewest octets, the last one complete (X.690, 8.19.2).
func validOID(contents []byte) bool {
	start := true
	for _, c := range contents {
		if start && c == 0x80 {
			return false
		}
		start = c&0x80 == 0
	}
	return start && len(contents) > 0
}

func (d *decoder) integer(s *cryptobyte.String, what string) *big.Int {
	n := new(big.Int)
	if !d.next(s, what, func() bool { return s.ReadASN1Integer(n) }) {
		return nil
	}
	return n
}

// optionalInteger reads an INTEGER that may be left out; nil if it is.
func (d *decoder) optionalInteger(s *cryptobyte.String, what string) *big.Int {
	if d.err != nil || !s.PeekASN1Tag(asn1.INTEGER) {
		return nil
	}
	return d.integer(s, what)
}

// version reads an INTEGER that must have this value.
func (d *decoder) version(s *cryptobyte.String, want int64, what string) {
	at := *s
	if n := d.integer(s, what); d.err == nil && n.Cmp(big.NewInt(want)) != 0 {
		d.fail(at, what+" is not the one defined")
	}
}

// optionalBoolean reads BOOLEAN DEFAULT FALSE in a signed part, where FALSE may be written out. Authorities do so.
// The signature covers the bytes as they are, so no other party can add or remove it.
func (d *decoder) optionalBoolean(s *cryptobyte.String, what string) (value bool) {
	return s.PeekASN1Tag(asn1.BOOLEAN) && d.next(s, what, func() bool { return s.ReadASN1Boolean(&value) }) && value
}

// sorted refuses a member of a SET OF that sorts before the previous one (X.690, 11.6).
func (d *decoder) sorted(last, next cryptobyte.String, what string) {
	if d.err == nil && bytes.Compare(last, next) > 0 {
		d.fail(next, what+" not in DER order")
	}
}

// extensions reads the members of an Extensions structure (RFC 5280, 4.1) and reports whether one is critical.
func (d *decoder) extensions(s cryptobyte.String) (critical bool) {
	if s.Empty() {
		d.fail(s, "extensions without a member")
	}
	for d.more(s) {
		extension := d.read(&s, asn1.SEQUENCE, "extension")
		d.oid(&extension, "extension identifier")
		critical = d.optionalBoolean(&extension, "extension criticality") || critical
		d.octets(&extension, "extension value")
		d.end(extension, "extension")
	}
	return critical
}

// unset reports whether oid is the zero value, which means none.
func unset(oid x509.OID) bool { return oid.Equal(x509.OID{}) }
