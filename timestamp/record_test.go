package timestamp

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// group returns the data objects of a record: signatures, payload, and some older tokens.
func group(n, tokens int) Group {
	g := Group{Required: [][]byte{fmt.Appendf(nil, "signatures of %d", n), fmt.Appendf(nil, "payload of %d", n)}}
	for i := range tokens {
		g.Optional = append(g.Optional, fmt.Appendf(nil, "token %d of %d", i, n))
	}
	return g
}

func (g Group) all() [][]byte { return slices.Concat(g.Required, g.Optional) }

// authorityOf returns the tests' authority with its clock at another time.
func authorityOf(t testing.TB, at time.Time) *Authority {
	return must[*Authority](t)(NewAuthority(AuthorityConfig{Key: testKey("tsa"), Certificate: testCertificate(t),
		Chain: []*x509.Certificate{testRoot(t)}, Now: func() time.Time { return at }}))
}

func stampRoot(t testing.TB, tree *Tree, a *Authority) []byte {
	t.Helper()
	root := must[Imprint](t)(tree.Root())
	return must[[]byte](t)(a.Issue(&Request{Wide: root, CertReq: true}))
}

// recordsOf makes the evidence records of groups 0 to n-1 with one token.
func recordsOf(t testing.TB, hash crypto.Hash, n, tokens int, a *Authority) (records [][]byte) {
	t.Helper()
	tree := must[*Tree](t)(NewTree(hash))
	for i := range n {
		if got := must[int](t)(tree.Add(group(i, tokens).all()...)); got != i {
			t.Fatalf("entry %d, want %d", got, i)
		}
	}
	token := stampRoot(t, tree, a)
	for i := range n {
		records = append(records, must[[]byte](t)(tree.EvidenceRecord(i, token)))
	}
	return records
}

func parseRecord(t testing.TB, der []byte) *EvidenceRecord {
	t.Helper()
	return must[*EvidenceRecord](t)(ParseEvidenceRecord(der))
}

// renewed adds a time stamp, or with data objects a chain, to one record.
func renewed(t testing.TB, der []byte, hash crypto.Hash, a *Authority, objects ...[]byte) []byte {
	t.Helper()
	tree, e := must[*Tree](t)(NewTree(hash)), parseRecord(t, der)
	if objects == nil {
		must[int](t)(tree.Renew(e))
	} else {
		must[int](t)(tree.Rehash(e, objects...))
	}
	return must[[]byte](t)(tree.EvidenceRecord(0, stampRoot(t, tree, a)))
}

func rootsOf(t testing.TB) Options { return Options{Roots: []*x509.Certificate{testRoot(t)}} }

func TestEvidenceRecordsOfOneTree(t *testing.T) {
	for _, hash := range []crypto.Hash{crypto.SHA256, crypto.SHA384, crypto.SHA512} {
		for _, n := range []int{1, 2, 3, 5, 8, 13} {
			t.Run(fmt.Sprintf("%v of %d", hash, n), func(t *testing.T) {
				records := recordsOf(t, hash, n, n%3, testAuthority(t))
				for i, der := range records {
					e := parseRecord(t, der)
					tokens := must[[]*Token](t)(e.Verify(group(i, n%3), rootsOf(t)))
					if len(tokens) != 1 || !tokens[0].GenTime.Equal(testTime.Truncate(time.Millisecond)) || e.Hash() != hash {
						t.Errorf("record %d: %+v", i, tokens)
					}
					for j := range n {
						if _, _, err := e.Links(group(j, n%3)); (err == nil) != (i == j) {
							t.Errorf("record %d for group %d: %v", i, j, err)
						}
					}
				}
			})
		}
	}
}

// TestCovered: Links reports which of a record's tokens an evidence record renews.
func TestCovered(t *testing.T) {
	tree := must[*Tree](t)(NewTree(crypto.SHA256))
	g := group(0, 3)
	must[int](t)(tree.Add(g.Required[0], g.Optional[1], g.Required[1]))
	e := parseRecord(t, must[[]byte](t)(tree.EvidenceRecord(0, stampRoot(t, tree, testAuthority(t)))))
	links, covered, err := e.Links(g)
	if err != nil || len(links) != 1 || !slices.Equal(covered, []bool{false, true, false}) {
		t.Errorf("%v, %v, %v", links, covered, err)
	}
	g.Optional = g.Optional[2:]
	_, _, err = e.Links(g)
	checkError(t, err, ErrGroup)
	_, _, err = e.Links(Group{Required: g.Required[:1], Optional: g.Required[1:]})
	if err == nil {
		t.Error("Links accepted a group of one data object")
	}
}

func TestRenewals(t *testing.T) {
	g, at := group(0, 1), testTime
	later := func() *Authority { at = at.AddDate(1, 0, 0); return authorityOf(t, at) }
	der := recordsOf(t, crypto.SHA256, 3, 1, testAuthority(t))[0]
	der = renewed(t, der, crypto.SHA256, later())
	der = renewed(t, der, crypto.SHA256, later())
	der = renewed(t, der, crypto.SHA512, later(), g.all()...)
	der = renewed(t, der, crypto.SHA512, later())
	der = renewed(t, der, crypto.SHA384, later(), g.all()...)
	e := parseRecord(t, der)
	first := parseRecord(t, recordsOf(t, crypto.SHA256, 3, 1, testAuthority(t))[0])
	again := parseRecord(t, renewed(t, der, crypto.SHA384, later()))
	if !again.Extends(e) || e.Extends(again) || e.Extends(e) || again.Extends(first) {
		t.Error("Extends is wrong about which record continues which")
	}
	tokens := must[[]*Token](t)(e.Verify(g, rootsOf(t)))
	if len(tokens) != 6 || len(e.Tokens()) != 6 || len(e.chains) != 3 || e.Hash() != crypto.SHA384 {
		t.Fatalf("%d tokens in %d chains", len(tokens), len(e.chains))
	}
	for i, token := range tokens {
		if want := testTime.AddDate(i, 0, 0).Truncate(time.Millisecond); !token.GenTime.Equal(want) {
			t.Errorf("token %d is of %v, want %v", i, token.GenTime, want)
		}
	}
	t.Run("another payload", func(t *testing.T) {
		_, err := e.Verify(Group{Required: [][]byte{g.Required[0], []byte("another")}, Optional: g.Optional}, rootsOf(t))
		checkError(t, err, ErrImprint)
	})
	t.Run("the covered token gone", func(t *testing.T) {
		_, err := e.Verify(Group{Required: g.Required}, rootsOf(t))
		checkError(t, err, ErrGroup)
	})
}

// TestRenewedTogether: evidence records with the same last token share one leaf of the tree that renews them.
func TestRenewedTogether(t *testing.T) {
	records := recordsOf(t, crypto.SHA256, 7, 0, testAuthority(t))
	other := recordsOf(t, crypto.SHA256, 1, 0, authorityOf(t, testTime.Add(time.Second)))[0]
	tree := must[*Tree](t)(NewTree(crypto.SHA256))
	for _, der := range append(records, other) {
		must[int](t)(tree.Renew(parseRecord(t, der)))
	}
	token := stampRoot(t, tree, authorityOf(t, testTime.Add(time.Hour)))
	if len(tree.leaves) != 2 {
		t.Errorf("%d leaves", len(tree.leaves))
	}
	for i := range 8 {
		e := parseRecord(t, must[[]byte](t)(tree.EvidenceRecord(i, token)))
		tokens, err := e.Verify(group(i%7, 0), rootsOf(t))
		if err != nil || len(tokens) != 2 {
			t.Errorf("record %d: %v", i, err)
		}
	}
}

// TestAddHashes: a tree of given hashes equals the tree of their data, and keeps no reference to the caller's slices.
func TestAddHashes(t *testing.T) {
	g := group(0, 0).all()
	data, hashes := must[*Tree](t)(NewTree(crypto.SHA256)), must[*Tree](t)(NewTree(crypto.SHA256))
	must[int](t)(data.Add(g...))
	var brought [][]byte
	for _, object := range g {
		brought = append(brought, sum(crypto.SHA256, object))
	}
	must[int](t)(hashes.AddHashes(brought...))
	for _, hash := range brought {
		clear(hash)
	}
	token := stampRoot(t, data, testAuthority(t))
	if a, b := must[[]byte](t)(data.EvidenceRecord(0, token)), must[[]byte](t)(hashes.EvidenceRecord(0, token)); !bytes.Equal(a, b) {
		t.Errorf("%x and %x", a, b)
	}
}

func TestTreeRefuses(t *testing.T) {
	der := recordsOf(t, crypto.SHA256, 2, 0, testAuthority(t))[0]
	e, g := parseRecord(t, der), group(0, 0)
	newTree := func(hash crypto.Hash) *Tree { return must[*Tree](t)(NewTree(hash)) }
	for name, test := range map[string]struct {
		do   func() error
		want error // nil: any
	}{
		"SHA-1":                 {func() error { _, err := NewTree(crypto.SHA1); return err }, ErrAlgorithm},
		"no hash":               {func() error { _, err := NewTree(0); return err }, ErrAlgorithm},
		"one data object":       {func() error { _, err := newTree(crypto.SHA256).Add([]byte("a")); return err }, nil},
		"the same object twice": {func() error { _, err := newTree(crypto.SHA256).Add([]byte("a"), []byte("a")); return err }, nil},
		"a hash of another size": {func() error {
			_, err := newTree(crypto.SHA256).AddHashes(make([]byte, 32), make([]byte, 31))
			return err
		}, nil},
		"nothing in it":          {func() error { _, err := newTree(crypto.SHA256).Root(); return err }, nil},
		"another hash":           {func() error { _, err := newTree(crypto.SHA512).Renew(e); return err }, ErrAlgorithm},
		"other data for a chain": {func() error { _, err := newTree(crypto.SHA512).Rehash(e, []byte("a"), []byte("b")); return err }, ErrImprint},
		"too few data for a chain": {func() error {
			wide := parseRecord(t, recordsOf(t, crypto.SHA256, 1, 1, testAuthority(t))[0])
			_, err := newTree(crypto.SHA512).Rehash(wide, g.Required...)
			return err
		}, ErrGroup},
		"closed": {func() error {
			tree := newTree(crypto.SHA256)
			must[int](t)(tree.Renew(e))
			must[Imprint](t)(tree.Root())
			_, err := tree.Renew(e)
			return err
		}, nil},
		"a token for something else": {func() error {
			tree := newTree(crypto.SHA256)
			must[int](t)(tree.Add(g.all()...))
			_, err := tree.EvidenceRecord(0, must[[]byte](t)(testAuthority(t).Issue(&Request{Imprint: testImprint})))
			return err
		}, ErrImprint},
		"one renewal too many": {func() error {
			full := &EvidenceRecord{chains: []archiveChain{{hash: crypto.SHA256}}}
			for range maxArchiveTimeStamps {
				full.chains[0].stamps = append(full.chains[0].stamps, e.chains[0].stamps[0])
			}
			tree := newTree(crypto.SHA256)
			must[int](t)(tree.Renew(full))
			_, err := tree.EvidenceRecord(0, stampRoot(t, tree, testAuthority(t)))
			return err
		}, ErrUnsupported},
		"a token from before": {func() error {
			tree := newTree(crypto.SHA256)
			must[int](t)(tree.Renew(e))
			_, err := tree.EvidenceRecord(0, stampRoot(t, tree, authorityOf(t, testTime.Add(-time.Second))))
			return err
		}, ErrOrder},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.do()
			if err == nil {
				t.Fatal("accepted")
			}
			if test.want != nil {
				checkError(t, err, test.want)
			}
		})
	}
}

// ersDraft is an evidence record under construction, in which a test can replace any element.
type ersDraft struct {
	version, algorithms, crypto, encryption, sequence, tail []byte
	stamps                                                  []atsDraft // of one chain
}

type atsDraft struct{ digest, attributes, tree, token, tail []byte }

func (a atsDraft) build() []byte { return seq(a.digest, a.attributes, a.tree, a.token, a.tail) }

func (d *ersDraft) build() []byte {
	if d.sequence == nil {
		var chain [][]byte
		for _, a := range d.stamps {
			chain = append(chain, a.build())
		}
		d.sequence = seq(seq(chain...))
	}
	return seq(d.version, d.algorithms, d.crypto, d.encryption, d.sequence, d.tail)
}

func hashTree(lists ...[]byte) []byte { return tlv(context2Constructed, lists...) }

func hashSeq(hashes ...[]byte) []byte {
	var list [][]byte
	for _, h := range hashes {
		list = append(list, octets(h))
	}
	return seq(list...)
}

// newERSDraft returns a correct record over group 0, in a tree with one other leaf, renewed once.
func newERSDraft(t testing.TB) *ersDraft {
	h := func(parts ...[]byte) []byte { return sum(crypto.SHA256, bytes.Join(parts, nil)) }
	a, b := h([]byte("signatures of 0")), h([]byte("payload of 0"))
	if bytes.Compare(a, b) > 0 {
		a, b = b, a
	}
	node, beside := h(a, b), h([]byte("another leaf"))
	root := h(slices.Concat(slices.SortedFunc(slices.Values([][]byte{node, beside}), bytes.Compare)...))
	first := must[[]byte](t)(testAuthority(t).Issue(&Request{Wide: Imprint{crypto.SHA256, root}, CertReq: true}))
	second := must[[]byte](t)(authorityOf(t, testTime.Add(time.Hour)).Issue(&Request{Wide: Imprint{crypto.SHA256, h(first)}, CertReq: true}))
	sha256 := tlv(context0Constructed, oid(oidSHA256))
	return &ersDraft{version: integer(1), algorithms: seq(seq(oid(oidSHA256))), stamps: []atsDraft{
		{digest: sha256, tree: hashTree(hashSeq(a, b), hashSeq(beside)), token: first},
		{digest: sha256, token: second},
	}}
}

// TestEvidenceRecordRules breaks one rule at a time. Cases without an error are close to a rule and must be accepted.
func TestEvidenceRecordRules(t *testing.T) {
	hash := func(text string) []byte { return sum(crypto.SHA256, []byte(text)) }
	sig, payload := hash("signatures of 0"), hash("payload of 0")
	beside := hash("another leaf")
	stampAt := func(at time.Time, imprint []byte) []byte {
		return must[[]byte](t)(authorityOf(t, at).Issue(&Request{Wide: Imprint{crypto.SHA256, imprint}, CertReq: true}))
	}
	sha1 := "\x2b\x0e\x03\x02\x1a"
	for _, rule := range []struct {
		name   string
		change func(d *ersDraft)
		want   error
	}{
		{"correct", func(d *ersDraft) {}, nil},
		{"version 2", func(d *ersDraft) { d.version = integer(2) }, ErrMalformed},
		{"no version", func(d *ersDraft) { d.version = nil }, ErrMalformed},
		{"no digest algorithm", func(d *ersDraft) { d.algorithms = seq() }, ErrMalformed},
		{"a digest algorithm that is not used", func(d *ersDraft) { d.algorithms = seq(seq(oid(oidSHA256)), seq(oid(oidSHA512))) }, ErrMalformed},
		{"another digest algorithm", func(d *ersDraft) { d.algorithms = seq(seq(oid(oidSHA512))) }, ErrMalformed},
		{"a digest algorithm twice", func(d *ersDraft) { d.algorithms = seq(seq(oid(oidSHA256)), seq(oid(oidSHA256))) }, ErrMalformed},
		{"digest algorithms without end", func(d *ersDraft) { d.algorithms = seq(bytes.Repeat(seq(oid(oidSHA256)), 99)) }, ErrMalformed},
		{"NULL parameters", func(d *ersDraft) { d.algorithms = seq(seq(oid(oidSHA256), null())) }, nil},
		{"SHA-1", func(d *ersDraft) { d.algorithms = seq(seq(oid(sha1))) }, ErrAlgorithm},
		{"cryptoInfos", func(d *ersDraft) { d.crypto = tlv(context0Constructed, seq()) }, ErrUnsupported},
		{"encryptionInfo", func(d *ersDraft) { d.encryption = tlv(context1Constructed) }, ErrUnsupported},
		{"a further member", func(d *ersDraft) { d.tail = null() }, ErrMalformed},
		{"no chain", func(d *ersDraft) { d.sequence = seq() }, ErrMalformed},
		{"an empty chain", func(d *ersDraft) { d.sequence = seq(seq()) }, ErrMalformed},
		{"the token's own algorithm", func(d *ersDraft) { d.stamps[0].digest, d.stamps[1].digest = nil, nil }, nil},
		{"SHA-1 in a time stamp", func(d *ersDraft) { d.stamps[0].digest = tlv(context0Constructed, oid(sha1)) }, ErrAlgorithm},
		{"another algorithm in a chain", func(d *ersDraft) { d.stamps[1].digest = tlv(context0Constructed, oid(oidSHA512)) }, ErrMalformed},
		{"a token over SHA-1", func(d *ersDraft) {
			d.stamps[0].digest, d.stamps[0].token, d.stamps = nil, tokenOverSHA1(t), d.stamps[:1]
		}, ErrAlgorithm},
		{"a token over SHA-1, without a hash tree", func(d *ersDraft) {
			d.stamps[0].digest, d.stamps[0].tree, d.stamps[0].token, d.stamps = nil, nil, tokenOverSHA1(t), d.stamps[:1]
		}, ErrAlgorithm},
		{"a renewal over SHA-1, in a hash tree", func(d *ersDraft) {
			d.stamps[1].digest, d.stamps[1].tree, d.stamps[1].token = nil, hashTree(hashSeq(sig, payload)), tokenOverSHA1(t)
		}, ErrAlgorithm},
		{"a token over SHA-1 where SHA-256 is named", func(d *ersDraft) { d.stamps[0].token = tokenOverSHA1(t) }, ErrImprint},
		{"attributes", func(d *ersDraft) { d.stamps[0].attributes = tlv(context1Constructed, null()) }, ErrUnsupported},
		{"no token", func(d *ersDraft) { d.stamps[0].token = nil }, ErrMalformed},
		{"a token that is none", func(d *ersDraft) { d.stamps[0].token = seq(null()) }, ErrMalformed},
		{"a further member of a time stamp", func(d *ersDraft) { d.stamps[0].tail = null() }, ErrMalformed},
		{"a list in another order", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(payload, sig), hashSeq(beside)) }, nil},
		{"the same list in the other order", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload), hashSeq(beside)) }, nil},
		{"no hash tree", func(d *ersDraft) { d.stamps[0].tree = nil }, ErrImprint},
		{"an empty hash tree", func(d *ersDraft) { d.stamps[0].tree = hashTree() }, ErrMalformed},
		{"one hash at the bottom", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig), hashSeq(payload), hashSeq(beside)) }, ErrMalformed},
		{"an empty list", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload), seq()) }, ErrMalformed},
		{"a short hash", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload), hashSeq(beside[1:])) }, ErrMalformed},
		{"a hash twice", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload), hashSeq(beside, beside)) }, ErrMalformed},
		{"a computed hash in its list", func(d *ersDraft) {
			d.stamps[0].tree = hashTree(hashSeq(sig, payload), hashSeq(nodeHash(crypto.SHA256, hashList{sig, payload})))
		}, ErrImprint},
		{"a hash too many", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload, beside)) }, ErrGroup},
		{"a hash of something else", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, hash("x")), hashSeq(beside)) }, ErrImprint},
		{"another way up", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload), hashSeq(hash("x"))) }, ErrImprint},
		{"a list too few", func(d *ersDraft) { d.stamps[0].tree = hashTree(hashSeq(sig, payload)) }, ErrImprint},
		{"lists without end", func(d *ersDraft) {
			d.stamps[0].tree = hashTree(bytes.Repeat(hashSeq(sig, payload), maxHashLists+1))
		}, ErrUnsupported},
		{"time stamps without end", func(d *ersDraft) {
			bare := testBare(t)
			d.stamps = slices.Repeat([]atsDraft{{token: bare}}, maxArchiveTimeStamps+1)
		}, ErrUnsupported},
		{"a renewal of something else", func(d *ersDraft) { d.stamps[1].token = stampAt(testTime.Add(time.Hour), hash("x")) }, ErrImprint},
		{"a renewal of something else, in a tree", func(d *ersDraft) {
			d.stamps[1].tree = hashTree(hashSeq(sig, payload))
			d.stamps[1].token = stampAt(testTime.Add(time.Hour), nodeHash(crypto.SHA256, hashList{sig, payload}))
		}, ErrImprint},
		{"a renewal in a tree", func(d *ersDraft) {
			list := hashList{sum(crypto.SHA256, d.stamps[0].token), beside}
			d.stamps[1].tree = hashTree(hashSeq(list...))
			d.stamps[1].token = stampAt(testTime.Add(time.Hour), nodeHash(crypto.SHA256, list))
		}, nil},
		{"a renewal at the same time", func(d *ersDraft) {
			d.stamps[1].token = stampAt(testTime, sum(crypto.SHA256, d.stamps[0].token))
		}, nil},
		{"a renewal before what it renews", func(d *ersDraft) {
			d.stamps[1].token = stampAt(testTime.Add(-time.Millisecond), sum(crypto.SHA256, d.stamps[0].token))
		}, ErrOrder},
		{"stamps in the other order", func(d *ersDraft) { slices.Reverse(d.stamps) }, ErrImprint},
		{"a forged first token", func(d *ersDraft) {
			d.stamps[0].token[len(d.stamps[0].token)-1] ^= 1
			d.stamps[1].token = stampAt(testTime.Add(time.Hour), sum(crypto.SHA256, d.stamps[0].token))
		}, ErrSignature},
	} {
		t.Run(rule.name, func(t *testing.T) {
			d := newERSDraft(t)
			rule.change(d)
			e, err := ParseEvidenceRecord(d.build())
			if err == nil {
				_, err = e.Verify(group(0, 0), rootsOf(t))
			}
			checkError(t, err, rule.want)
		})
	}
}

// tokenOverSHA1 returns a valid token whose imprint algorithm this package does not know.
func tokenOverSHA1(t testing.TB) []byte {
	f := newDraft(t)
	f.imprint = imprintElement(seq(oid("\x2b\x0e\x03\x02\x1a")), make([]byte, 20))
	return f.build(t)
}

// testBare returns a token without a certificate. Many of them fit into one record.
func testBare(t testing.TB) []byte {
	return must[[]byte](t)(testAuthority(t).Issue(&Request{Imprint: testImprint}))
}

// TestRenewedInTime: each token must still have been valid when the next one was made.
func TestRenewedInTime(t *testing.T) {
	template := leaf()
	template.NotAfter = testTime.AddDate(1, 0, 0).Truncate(time.Second)
	root, key := authorityCA(t, "ca", nil, nil)
	short := issueTest(t, template, testKey("short").Public(), root, key)
	brief := must[*Authority](t)(NewAuthority(AuthorityConfig{Key: testKey("short"), Certificate: short, Now: func() time.Time { return testTime }}))
	der := recordsOf(t, crypto.SHA256, 2, 0, brief)[0]
	opts := Options{Roots: []*x509.Certificate{root, testRoot(t)}}
	for _, test := range []struct {
		at   time.Time
		want error
	}{{template.NotAfter, nil}, {template.NotAfter.Add(time.Second), ErrExpired}} {
		e := parseRecord(t, renewed(t, der, crypto.SHA256, authorityOf(t, test.at)))
		_, err := e.Verify(group(0, 0), opts)
		checkError(t, err, test.want)
	}
	// The last token needs only to have been valid when it was made.
	must[[]*Token](t)(parseRecord(t, der).Verify(group(0, 0), opts))
}

// TestForgedBehindUnknown: a forged token is reported even if a later token cannot be checked.
func TestForgedBehindUnknown(t *testing.T) {
	d := newERSDraft(t)
	d.stamps[0].token[len(d.stamps[0].token)-1] ^= 1
	otherRoot, otherKey := authorityCA(t, "other root", nil, nil)
	other := issueTest(t, leaf(), testKey("other").Public(), otherRoot, otherKey)
	unknown := must[*Authority](t)(NewAuthority(AuthorityConfig{Key: testKey("other"), Certificate: other, Now: func() time.Time { return testTime.Add(time.Hour) }}))
	d.stamps[1].token = must[[]byte](t)(unknown.Issue(&Request{Wide: Imprint{crypto.SHA256, sum(crypto.SHA256, d.stamps[0].token)}, CertReq: true}))
	_, err := parseRecord(t, d.build()).Verify(group(0, 0), rootsOf(t))
	if !errors.Is(err, ErrSignature) || !errors.Is(err, ErrUntrusted) {
		t.Error(err)
	}
}

// TestEveryByteOfAnEvidenceRecord flips each byte of a record with a tree and both kinds of renewal.
func TestEveryByteOfAnEvidenceRecord(t *testing.T) {
	g := group(0, 1)
	der := recordsOf(t, crypto.SHA256, 3, 1, testAuthority(t))[0]
	der = renewed(t, der, crypto.SHA256, authorityOf(t, testTime.Add(time.Hour)))
	der = renewed(t, der, crypto.SHA512, authorityOf(t, testTime.Add(2*time.Hour)), g.all()...)
	opts := rootsOf(t)
	must[[]*Token](t)(parseRecord(t, der).Verify(g, opts))
	for i := range der {
		for _, flip := range []byte{1, 0x80, 0xff} {
			mutant := bytes.Clone(der)
			mutant[i] ^= flip
			e, err := ParseEvidenceRecord(mutant)
			if err != nil {
				continue
			}
			if _, err := e.Verify(g, opts); err == nil {
				t.Errorf("a change at %d of %d survives", i, len(der))
			}
		}
	}
	for n := range der {
		if _, err := ParseEvidenceRecord(der[:n]); err == nil {
			t.Errorf("%d bytes of %d parse", n, len(der))
		}
	}
	if _, err := ParseEvidenceRecord(make([]byte, MaxTokenSize+1)); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
	if _, err := ParseEvidenceRecord(bytes.Repeat([]byte{0x30, 0x80}, 30_000)); !errors.Is(err, ErrMalformed) {
		t.Error(err)
	}
}

// TestOpenSSLReadsEvidenceRecords: asn1parse reads the structure, and ts -verify accepts each token over the root that
// this test computes.
func TestOpenSSLReadsEvidenceRecords(t *testing.T) {
	s, g := newSSL(t), group(0, 1)
	der := recordsOf(t, crypto.SHA256, 5, 1, testAuthority(t))[0]
	der = renewed(t, der, crypto.SHA256, authorityOf(t, testTime.Add(time.Hour)))
	der = renewed(t, der, crypto.SHA512, authorityOf(t, testTime.Add(2*time.Hour)), g.all()...)
	s.write("record.der", der)
	s.must("asn1parse", "-inform", "DER", "-in", "record.der")
	s.certificates("root.pem", testRoot(t))
	at := strconv.FormatInt(testTime.Unix(), 10)
	e := parseRecord(t, der)
	links, _, err := e.Links(g)
	if err != nil {
		t.Fatal(err)
	}
	i := 0
	for _, c := range e.chains {
		for _, stamp := range c.stamps {
			s.write("token.tst", stamp.stamp)
			verify := []string{"ts", "-verify", "-in", "token.tst", "-token_in", "-CAfile", "root.pem", "-attime", at, "-digest"}
			s.must(append(verify, hex.EncodeToString(links[i].Imprint.Sum))...)
			s.mustFail("message imprint mismatch", append(verify, hex.EncodeToString(sum(c.hash, []byte("x"))))...)
			i++
		}
	}
	if i != 3 {
		t.Errorf("%d tokens", i)
	}
}

// TestEvidenceRecordVectors compares the mock's records with the committed ones, byte for byte.
func TestEvidenceRecordVectors(t *testing.T) {
	mock, g := NewMock(), group(0, 1)
	one := recordsOf(t, crypto.SHA256, 1, 1, mock)[0]
	many := recordsOf(t, crypto.SHA256, 5, 1, mock)
	again := renewed(t, many[4], crypto.SHA256, mock)
	for name, vector := range map[string]struct {
		der    []byte
		group  Group
		stamps int
	}{
		"one":     {one, g, 1},
		"first":   {many[0], g, 1},
		"last":    {many[4], group(4, 1), 1},
		"renewed": {again, group(4, 1), 2},
		"sha512":  {renewed(t, again, crypto.SHA512, mock, group(4, 1).all()...), group(4, 1), 3},
		"sha384":  {recordsOf(t, crypto.SHA384, 2, 1, mock)[0], g, 1},
	} {
		file := filepath.Join("testdata", "evidence-record-"+name+".der")
		if *update {
			if err := os.WriteFile(file, vector.der, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if committed := must[[]byte](t)(os.ReadFile(file)); !bytes.Equal(committed, vector.der) {
			t.Errorf("%s differs from what the mock makes", file)
		}
		opts := Options{Roots: mock.Certificates()[1:], UnsafeAllowMock: true}
		tokens, err := parseRecord(t, vector.der).Verify(vector.group, opts)
		if err != nil || len(tokens) != vector.stamps {
			t.Errorf("%s: %d tokens, %v", name, len(tokens), err)
		}
		_, err = parseRecord(t, vector.der).Verify(vector.group, Options{Roots: opts.Roots})
		checkError(t, err, ErrMock)
	}
}

// stampsOf joins the tokens of a record.
func stampsOf(e *EvidenceRecord) (joined string) {
	for _, c := range e.chains {
		for _, stamp := range c.stamps {
			joined += string(stamp.stamp)
		}
	}
	return joined
}

// FuzzParseEvidenceRecord: a record that parses can be renewed, and a record that verifies has the tokens of one of the
// vectors. (The order within a list may differ.)
func FuzzParseEvidenceRecord(f *testing.F) {
	files, err := filepath.Glob("testdata/evidence-record-*.der")
	if err != nil || len(files) < 6 {
		f.Fatalf("%d vectors, %v", len(files), err)
	}
	genuine := map[string]bool{}
	for _, file := range files {
		der := must[[]byte](f)(os.ReadFile(file))
		genuine[stampsOf(parseRecord(f, der))] = true
		f.Add(der)
	}
	mock := NewMock()
	opts := Options{Roots: mock.Certificates()[1:], UnsafeAllowMock: true}
	f.Fuzz(func(t *testing.T, der []byte) {
		e, err := ParseEvidenceRecord(der)
		if err != nil {
			return
		}
		for _, g := range []Group{group(0, 1), group(4, 1)} {
			if _, err := e.Verify(g, opts); err == nil && !genuine[stampsOf(e)] {
				t.Errorf("%x verifies", der)
			}
		}
		tree := must[*Tree](t)(NewTree(e.Hash()))
		must[int](t)(tree.Renew(e))
		if again, err := tree.EvidenceRecord(0, stampRoot(t, tree, testAuthority(t))); err == nil {
			if more := parseRecord(t, again); len(more.Tokens()) != len(e.Tokens())+1 {
				t.Errorf("%d tokens became %d", len(e.Tokens()), len(more.Tokens()))
			}
		}
	})
}
