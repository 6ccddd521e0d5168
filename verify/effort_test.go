package verify_test

import (
	"bytes"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/dertest"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
)

// A maze makes tokens whose certificates can be combined in many ways.
type maze struct {
	t    testing.TB
	root *x509.Certificate // of the authority that the reader trusts
	made int
}

func newMaze(t testing.TB, o verify.Options) *maze {
	t.Helper()
	return &maze{t: t, root: must.Get(x509.ParseCertificate(o.Trust.Authorities[0].Certificate))(t)}
}

// certificates returns CA certificates with the root's name. The first ones also name it as their issuer, the others
// name an unknown issuer. With the root itself, 3 and 0 of them take 31 steps, 3 and 4 take 95, 4 and 0 take 129.
func (m *maze) certificates(alike, others int) (list []*dertest.Node) {
	m.t.Helper()
	for i := range alike + others {
		m.made++
		issuer := &x509.Certificate{RawSubject: m.root.RawSubject}
		if i >= alike {
			issuer = &x509.Certificate{Subject: pkix.Name{CommonName: "elsewhere"}}
		}
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(m.made)), RawSubject: m.root.RawSubject, BasicConstraintsValid: true, IsCA: true,
			NotBefore: m.root.NotBefore, NotAfter: m.root.NotAfter}
		key := jurattest.AuthorityKey(m.t, "maze")
		der := must.Get(x509.CreateCertificate(nil, template, issuer, key.Public(), key))(m.t)
		list = append(list, must.Get(dertest.Parse(der))(m.t))
	}
	return list
}

// stuffed adds certificates to a token. No signature covers them.
func (m *maze) stuffed(token []byte, alike, others int) []byte {
	m.t.Helper()
	return m.stuffedWith(token, m.certificates(alike, others))
}

func (m *maze) stuffedWith(token []byte, certificates []*dertest.Node) []byte {
	m.t.Helper()
	return signedAnew(m.t, token, func(k *dertest.Token) {
		k.Data.At(3).Members = append(k.Data.At(3).Members, certificates...)
	})
}

// stranger returns a token by another authority whose root has the same name as the reader's.
func (m *maze) stranger(r *evidence.Record, alike, others int) []byte {
	m.t.Helper()
	rootKey, key := jurattest.AuthorityKey(m.t, "stranger root"), jurattest.AuthorityKey(m.t, "stranger")
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(6), NotBefore: m.root.NotBefore, NotAfter: m.root.NotAfter,
		Operator: "WORTHLESS: its keys are published "}
	root := must.Get(timestamp.NewRoot(config))(m.t)
	if !bytes.Equal(root.RawSubject, m.root.RawSubject) {
		m.t.Fatalf("the root's name is %s, want %s", root.Subject, m.root.Subject)
	}
	config.Key, config.Serial = key, big.NewInt(7)
	certificate := must.Get(timestamp.NewCertificate(config, root, rootKey))(m.t)
	authority := must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate,
		Now: func() time.Time { return jurattest.Start }, Rand: bytes.NewReader(bytes.Repeat([]byte{byte(m.made + 1)}, 64)), Policy: timestamp.MockPolicy()}))(m.t)
	token := dertest.ParseToken(m.t, must.Get(authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(m.t))
	token.Data.At(3).Members = append(token.Data.At(3).Members, m.certificates(alike, others)...)
	return token.Sign(m.t, key)
}

// spend puts tokens before those of a record. Each takes 95 steps and proves nothing.
func (m *maze) spend(r *evidence.Record, tokens int) {
	m.t.Helper()
	var stamps []evidence.Timestamp
	for range tokens {
		stamps = append(stamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: m.stranger(r, 3, 4)})
	}
	r.Timestamps = append(stamps, r.Timestamps...)
}

// An effort is a record whose time takes many steps to prove, or too many.
type effort struct {
	name   string
	change func(m *maze, r *evidence.Record)
	rule   string // by which it is not proved; "" if it is
}

func efforts() []effort {
	stuff := func(alike, others int) func(m *maze, r *evidence.Record) {
		return func(m *maze, r *evidence.Record) {
			r.Timestamps[0].Token = m.stuffed(r.Timestamps[0].Token, alike, others)
		}
	}
	return []effort{
		{"31 steps to a path", stuff(3, 0), ""},
		{"95 steps to a path", stuff(3, 4), ""},
		{"more than 128 steps to a path", stuff(4, 0), "effort"},
		{"certificates that lead nowhere", stuff(0, 12), ""},
		{"95 steps to no path, and 31 to one", func(m *maze, r *evidence.Record) {
			stuff(3, 0)(m, r)
			m.spend(r, 1)
		}, ""},
		{"95 steps to no path, and 95 to one", func(m *maze, r *evidence.Record) {
			stuff(3, 4)(m, r)
			m.spend(r, 1)
		}, "effort"},
	}
}

// effortVectors are single records, and a bundle in which some records use up the steps that others need.
func effortVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, e := range efforts() {
		r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
		e.change(newMaze(t, o), r)
		list = append(list, givenRecord(t, slug("effort", e.name), r, o))
	}
	b, o := effortBundle(t)
	return append(list, givenBundle(t, "effort-of-all-records", b, o))
}

// effortBundle has 46 records. Each of the first 43 takes 95 steps, so that 11 are left. The next needs 31, one after it the 95 of the first, and
// the last the step to its own path, as those before did.
func effortBundle(t testing.TB) (*evidence.Bundle, verify.Options) {
	t.Helper()
	house := jurattest.NewForStrangers(t)
	o := house.Options(t)
	m := newMaze(t, o)
	var sealed []*evidence.Record
	for i := range 46 {
		sealed = append(sealed, house.Seal(t, output(fmt.Sprint("effort ", i))))
	}
	b := house.Bundle(t, sealed...)
	stuff := func(i int, certificates []*dertest.Node) {
		b.Records[i].Timestamps[0].Token = m.stuffedWith(b.Records[i].Timestamps[0].Token, certificates)
	}
	first := m.certificates(3, 4)
	stuff(0, first)
	for i := 1; i < 43; i++ {
		stuff(i, m.certificates(3, 4))
	}
	stuff(43, m.certificates(3, 0))
	stuff(44, first)
	return b, o
}

// TestEffort: if the certificates of a record can be combined in too many ways, its time is not proved, and the
// report says why.
func TestEffort(t *testing.T) {
	for _, e := range efforts() {
		t.Run(e.name, func(t *testing.T) {
			r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
			e.change(newMaze(t, o), r)
			found := verify.Record(r, o).Of(verify.Time)
			want := verify.Proved
			if e.rule != "" {
				want = verify.NotProved
			}
			if found.Status != want || found.Rule != e.rule {
				t.Errorf("%+v, want %v %s", found, want, e.rule)
			}
		})
	}
}

// TestEffortOfAFile: steps that some records use are not available to later ones. Parallel work and earlier files do not
// change the result.
func TestEffortOfAFile(t *testing.T) {
	b, o := effortBundle(t)
	file := must.Get(b.Marshal())(t)
	var first *verify.Report
	for _, cores := range []int{1, 2, 8} {
		before := runtime.GOMAXPROCS(cores)
		for range 5 {
			o.Memory = nil
			if cores == 8 {
				o.Memory = timestamp.NewMemory()
				must.Get(verify.File(file, o))(t)
			}
			report := must.Get(verify.File(file, o))(t)
			if first == nil {
				first = report
			}
			if diff := cmp.Diff(first, report); diff != "" {
				t.Fatalf("on %d cores: %s", cores, diff)
			}
		}
		runtime.GOMAXPROCS(before)
	}
	if found := first.Of(verify.Time); found.Status != verify.NotProved || found.Rule != "effort" || found.Record != b.Records[43].Payload.RecordID || len(first.Times) != 45 {
		t.Errorf("%+v, %d times", found, len(first.Times))
	}
}

// mazeOfCAs adds certificates to a record that have the issuing CA's name, as subject and as issuer.
func mazeOfCAs(t *testing.T, n int) func(*world, *evidence.Record, *verify.Options) {
	return func(w *world, r *evidence.Record, _ *verify.Options) {
		for i := range n {
			key := newKey(t)
			template := caTemplate("issuing", int64(100+i))
			r.Certificates = append(r.Certificates, certify(t, template, key.Public(), template, key).Raw)
		}
	}
}
