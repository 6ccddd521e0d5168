package trustlist

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"jurat/internal/listtest"
	"jurat/internal/must"
)

// TestChainRules breaks a chain of two pivots. In the correct chain, the Journal's signer names the second signer, and
// the second names the third.
func TestChainRules(t *testing.T) {
	one, two, three := listtest.NewSigner(t, "one"), listtest.NewSigner(t, "two"), listtest.NewSigner(t, "three")
	list := func(sequence int, by, next *listtest.Signer, uris ...string) *Unverified {
		l := listtest.List{Type: ListOfLists, Territory: "EU", Sequence: sequence, Issued: "2026-05-01T00:00:00Z", Next: "2026-10-01T00:00:00Z", URIs: uris,
			Pointers: []listtest.Pointer{{Location: "https://lists.example/eu.xml", Type: ListOfLists, Territory: "EU", Signers: []*listtest.Signer{next}}}}
		return must.Get(Parse(l.Sign(t, by)))(t)
	}
	const journal, newer = "https://journal.example/old", "https://journal.example/new"
	at := func(n int) string { return fmt.Sprintf("https://lists.example/eu-pivot-%d.xml", n) }
	first, second := list(10, one, two, at(10), journal), list(20, two, three, at(20), at(10), journal)
	both := []*Unverified{second, first}
	named := []string{at(20), at(10), journal, "https://lists.example/legal.html"}
	national := newDraft(t).build(t)
	for _, tt := range []struct {
		name   string
		began  *listtest.Signer
		pivots []*Unverified
		list   *Unverified
		want   error
	}{
		{"through two pivots", one, both, list(30, three, three, named...), nil},
		{"with a forged pivot beside", one, []*Unverified{list(10, three, three, journal), first, second}, list(30, three, three, named...), nil},
		{"from a newer publication", three, nil, list(30, three, three, newer, at(20), at(10), journal), nil},
		{"from the older publication, past the newer one", one, both, list(30, three, three, newer, at(20), at(10), journal), nil},
		{"without the first pivot", one, both[:1], list(30, three, three, named...), ErrChain},
		{"without the second pivot", one, both[1:], list(30, three, three, named...), ErrChain},
		{"without the named pivots, under the Journal's own signer", one, nil, list(30, one, three, named...), ErrChain},
		{"signed by the signer before the last pivot", one, both, list(30, two, three, named...), ErrSigner},
		{"a forged pivot alone", one, []*Unverified{list(10, three, two, journal), second}, list(30, three, three, named...), ErrSigner},
		{"pivots that the list does not name", one, both, list(30, three, three, journal), ErrSigner},
		{"pivots in another order", one, both, list(30, three, three, at(10), at(20), journal), ErrSigner},
		{"no publication named", one, both, list(30, three, three, at(20), at(10)), ErrChain},
		{"nothing named", one, both, list(30, three, three), ErrChain},
		{"signed by a stranger", three, both, list(30, three, three, named...), ErrSigner},
		{"a national list", one, nil, func() *Unverified { u, _ := Parse(national); return u }(), ErrMalformed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l, err := Chain(Signers{sha256.Sum256(tt.began.Certificate)}, tt.pivots, tt.list)
			checkError(t, err, tt.want)
			if err == nil && l.Sequence != 30 {
				t.Errorf("list %d", l.Sequence)
			}
		})
	}
}
