package verify_test

import (
	"bytes"
	"crypto"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"errors"
	"slices"
	"testing"

	"jurat/internal/test/must"
)

// A derNode is a part of DER that tests take apart: when a part is exchanged, every length around it is right, so that what reads the parts is reached. It is
// one element: constructed if it has Members, even none, and primitive if these are nil.
type derNode struct {
	Tag     byte // of one byte
	Content []byte
	Members []*derNode
}

const derConstructed = 0x20

var errDER = errors.New("no DER")

// maxDERDepth is deeper than anything that tests take apart.
const maxDERDepth = 64

// parseDER reads one element, and all in it. It refuses what is not exactly one element in DER.
func parseDER(der []byte) (*derNode, error) {
	list, err := parseAllDER(der, 0)
	if err != nil || len(list) != 1 {
		return nil, errDER
	}
	return list[0], nil
}

func parseAllDER(der []byte, depth int) (list []*derNode, err error) {
	if depth > maxDERDepth {
		return nil, errDER
	}
	list = []*derNode{}
	for len(der) > 0 {
		var raw asn1.RawValue
		rest, err := asn1.Unmarshal(der, &raw)
		if err != nil || der[0]&0x1f == 0x1f {
			return nil, errDER
		}
		n := &derNode{Tag: der[0], Content: raw.Bytes}
		if raw.IsCompound {
			if n.Members, err = parseAllDER(raw.Bytes, depth+1); err != nil {
				return nil, err
			}
			n.Content = nil
		}
		list, der = append(list, n), rest
	}
	return list, nil
}

// Bytes writes the element with the lengths that its parts have.
func (n *derNode) Bytes() []byte {
	content := n.Content
	if n.Members != nil {
		content = nil
		for _, m := range n.Members {
			content = append(content, m.Bytes()...)
		}
	}
	der, err := asn1.Marshal(asn1.RawValue{Class: int(n.Tag >> 6), Tag: int(n.Tag & 0x1f), IsCompound: n.Tag&derConstructed != 0, Bytes: content})
	if err != nil {
		panic(err) // every content of an element can be written
	}
	return der
}

// At is the element that is reached by these places, one in the other; nil if there is none.
func (n *derNode) At(places ...int) *derNode {
	for _, i := range places {
		if n == nil || i >= len(n.Members) {
			return nil
		}
		n = n.Members[i]
	}
	return n
}

// all are the element and everything in it, each with what it is in.
func (n *derNode) all() (nodes []place) {
	var walk func(in *derNode)
	walk = func(in *derNode) {
		for i, m := range in.Members {
			nodes = append(nodes, place{in, i})
			walk(m)
		}
	}
	walk(n)
	return nodes
}

type place struct {
	in *derNode
	i  int
}

// Mutate changes one part of what is in the element as the bytes choose, and returns those that are left: which part, how, and with
// what. The same bytes make the same change.
func (n *derNode) Mutate(choice []byte) (rest []byte) {
	next := func(below int) int {
		if len(choice) == 0 || below == 0 {
			return 0
		}
		value := int(choice[0])
		choice = choice[1:]
		if below > 0x100 && len(choice) > 0 {
			value, choice = value<<8|int(choice[0]), choice[1:]
		}
		return value % below
	}
	nodes := n.all()
	if len(nodes) == 0 {
		return choice
	}
	at, other := nodes[next(len(nodes))], nodes[next(len(nodes))]
	m, from := at.in.Members[at.i], other.in.Members[other.i]
	copied := clone(from)
	switch next(10) {
	case 0: // left out
		at.in.Members = slices.Delete(slices.Clone(at.in.Members), at.i, at.i+1)
	case 1: // twice
		at.in.Members = slices.Insert(slices.Clone(at.in.Members), at.i, clone(m))
	case 2: // another in its place
		at.in.Members[at.i] = copied
	case 3: // another beside it
		at.in.Members = slices.Insert(slices.Clone(at.in.Members), at.i, copied)
	case 4: // another kind
		m.Tag = byte(next(0x100))
		if m.Tag&0x1f == 0x1f {
			m.Tag ^= 1
		}
	case 5: // nothing in it
		if m.Content = nil; m.Members != nil {
			m.Members = []*derNode{}
		}
	case 6, 7: // a byte of it
		if len(m.Content) > 0 {
			m.Content = bytes.Clone(m.Content)
			m.Content[next(len(m.Content))] = byte(next(0x100))
		}
	case 8: // very long
		if m.Members == nil {
			m.Content = bytes.Repeat([]byte{byte(next(0x100))}, 1+next(5000))
		}
	case 9: // one more around it
		at.in.Members[at.i] = &derNode{Tag: 0x30, Members: []*derNode{m}}
	}
	return choice
}

func clone(n *derNode) *derNode {
	c := &derNode{Tag: n.Tag, Content: bytes.Clone(n.Content)}
	if n.Members != nil {
		c.Members = []*derNode{}
		for _, m := range n.Members {
			c.Members = append(c.Members, clone(m))
		}
	}
	return c
}

// A derToken is a time-stamp token (RFC 3161) that was taken apart.
type derToken struct {
	Whole  *derNode // ContentInfo
	Data   *derNode // SignedData
	Info   *derNode // TSTInfo, which Bytes puts into the eContent
	Signer *derNode // the SignerInfo

	octets *derNode // eContent
}

// parseDERToken takes a token apart that has one signer.
func parseDERToken(t testing.TB, der []byte) *derToken {
	t.Helper()
	whole := must.Get(parseDER(der))(t)
	token := &derToken{Whole: whole, Data: whole.At(1, 0)}
	token.octets = token.Data.At(2, 1, 0)
	token.Info = must.Get(parseDER(token.octets.Content))(t)
	token.Signer = token.Data.Members[len(token.Data.Members)-1].At(0)
	return token
}

var messageDigest = []byte("\x2a\x86\x48\x86\xf7\x0d\x01\x09\x04")

// Sign puts TSTInfo into the token, and its digest and a signature over the attributes, all with SHA-256. The attributes stay in the
// order in which they are.
func (k *derToken) Sign(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	k.octets.Content = k.Info.Bytes()
	attributes := k.Signer.At(3)
	for _, attribute := range attributes.Members {
		kind, value := attribute.At(0), attribute.At(1, 0)
		if kind != nil && value != nil && bytes.Equal(kind.Content, messageDigest) { // else a test has broken it
			digest := sha256.Sum256(k.octets.Content)
			value.Content = digest[:]
		}
	}
	signed := attributes.Bytes()
	signed[0] = 0x31 // as SET OF (RFC 5652, section 5.4)
	digest := sha256.Sum256(signed)
	k.Signer.At(5).Content = must.Get(key.Sign(rand.Reader, digest[:], crypto.SHA256))(t)
	return k.Whole.Bytes()
}
