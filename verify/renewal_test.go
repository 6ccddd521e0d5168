package verify_test

import (
	"bytes"
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/asn1"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

const day = 24 * time.Hour

// on is n days after the start of the tests' time.
func on(n int) time.Time { return jurattest.Start.Add(time.Duration(n) * day) }

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// tsa is an authority with its own keys and a clock that tests set.
type tsa struct {
	*timestamp.Authority
	name    string
	root    *x509.Certificate
	rootKey crypto.Signer
	now     time.Time
}

func newTSA(t testing.TB, name string, ends time.Time) *tsa {
	t.Helper()
	a := &tsa{name: name}
	config := func(key string) timestamp.CertificateConfig {
		return timestamp.CertificateConfig{Key: jurattest.AuthorityKey(t, key), Serial: big.NewInt(5), NotBefore: jurattest.Start, NotAfter: ends, Operator: name}
	}
	top, under := config("tsa root "+name), config("tsa "+name)
	a.rootKey = top.Key
	a.root = must[*x509.Certificate](t)(timestamp.NewRoot(top))
	leaf := must[*x509.Certificate](t)(timestamp.NewCertificate(under, a.root, top.Key))
	a.Authority = must[*timestamp.Authority](t)(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: under.Key, Certificate: leaf,
		Chain: []*x509.Certificate{a.root}, Now: func() time.Time { return a.now }, Rand: rand.NewChaCha8([32]byte{5})}))
	return a
}

func (a *tsa) trusted(clock trust.Clock, notAfter time.Time) trust.Authority {
	return trust.Authority{Name: a.name, Certificate: a.root.Raw, Clock: clock, NotAfter: notAfter}
}

// plain stamps a record with a plain token.
func (a *tsa) plain(t testing.TB, r *evidence.Record, at time.Time) evidence.Timestamp {
	t.Helper()
	a.now = at
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: must[[]byte](t)(a.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))}
}

// stamp closes a tree and writes the first evidence record of it.
func (a *tsa) stamp(t testing.TB, tree *timestamp.Tree, at time.Time) evidence.Timestamp {
	t.Helper()
	a.now = at
	token := must[[]byte](t)(a.Issue(&timestamp.Request{Wide: must[timestamp.Imprint](t)(tree.Root()), CertReq: true}))
	return evidence.Timestamp{Kind: evidence.RFC4998, Token: must[[]byte](t)(tree.EvidenceRecord(0, token))}
}

// cover makes an evidence record over a record and some of its tokens.
func (a *tsa) cover(t testing.TB, r *evidence.Record, at time.Time, tokens ...evidence.Timestamp) evidence.Timestamp {
	t.Helper()
	tree := must[*timestamp.Tree](t)(timestamp.NewTree(crypto.SHA256))
	must[int](t)(tree.Add(objects(r, tokens...)...))
	must[int](t)(tree.Add([]byte("of another record"), []byte("its payload")))
	return a.stamp(t, tree, at)
}

// renew adds a time stamp to an evidence record, and rehash a chain with SHA-512.
func (a *tsa) renew(t testing.TB, ers evidence.Timestamp, at time.Time) evidence.Timestamp {
	t.Helper()
	tree := must[*timestamp.Tree](t)(timestamp.NewTree(crypto.SHA256))
	must[int](t)(tree.Renew(must[*timestamp.EvidenceRecord](t)(timestamp.ParseEvidenceRecord(ers.Token))))
	return a.stamp(t, tree, at)
}

func (a *tsa) rehash(t testing.TB, ers evidence.Timestamp, at time.Time, objects ...[]byte) evidence.Timestamp {
	t.Helper()
	tree := must[*timestamp.Tree](t)(timestamp.NewTree(crypto.SHA512))
	must[int](t)(tree.Rehash(must[*timestamp.EvidenceRecord](t)(timestamp.ParseEvidenceRecord(ers.Token)), objects...))
	return a.stamp(t, tree, at)
}

func objects(r *evidence.Record, tokens ...evidence.Timestamp) [][]byte {
	list := [][]byte{bytes.Join(r.Signatures, nil), r.Canonical()}
	for _, stamp := range tokens {
		list = append(list, stamp.Token)
	}
	return list
}

// trusting replaces the authorities of a trust.
func trusting(t testing.TB, trusted *trust.Trust, authorities ...trust.Authority) *trust.Trust {
	t.Helper()
	changed := *trusted
	changed.Authorities = authorities
	return must[*trust.Trust](t)(trust.Parse(must[[]byte](t)(changed.Marshal())))
}

// TestEveryRuleOfRenewal: an authority stamps on day 1 and another renews on day 100; the first one's key is lost on day
// 200, and the reader looks on day 300. Each case breaks one thing.
func TestEveryRuleOfRenewal(t *testing.T) {
	first, second, third := newTSA(t, "first", on(1000)), newTSA(t, "second", on(1000)), newTSA(t, "third", on(1000))
	brief := newTSA(t, "brief", on(150))
	type stamps = []evidence.Timestamp
	whole := func(t *testing.T, r *evidence.Record) stamps {
		token := first.plain(t, r, on(1))
		return stamps{token, second.cover(t, r, on(100), token)}
	}
	for _, tt := range []struct {
		name   string
		stamps func(t *testing.T, r *evidence.Record) stamps
		trust  func(t *testing.T, o *verify.Options)
		status verify.Status
		rule   string
		says   string
		time   time.Time   // of a proved record
		clock  trust.Clock // "": independent
	}{
		{name: "renewed in time", status: verify.Proved, time: on(1)},
		{name: "in the other order", stamps: func(t *testing.T, r *evidence.Record) stamps {
			list := whole(t, r)
			slices.Reverse(list)
			return list
		}, status: verify.Proved, time: on(1)},
		{name: "not renewed", stamps: func(t *testing.T, r *evidence.Record) stamps { return whole(t, r)[:1] },
			status: verify.NotProved, rule: "renewal", says: "no longer trusted"},
		{name: "the renewal alone", stamps: func(t *testing.T, r *evidence.Record) stamps { return whole(t, r)[1:] },
			status: verify.NotProved, rule: "group", says: "something else"},
		{name: "a renewal that does not cover the token", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{first.plain(t, r, on(1)), second.cover(t, r, on(100))}
		}, status: verify.Proved, time: on(100)},
		{name: "renewed too late", stamps: func(t *testing.T, r *evidence.Record) stamps {
			token := first.plain(t, r, on(1))
			return stamps{token, second.cover(t, r, on(200).Add(time.Millisecond), token)}
		}, status: verify.Proved, time: on(200).Add(time.Millisecond)},
		{name: "renewed at the last moment", stamps: func(t *testing.T, r *evidence.Record) stamps {
			token := first.plain(t, r, on(1))
			return stamps{token, second.cover(t, r, on(200), token)}
		}, status: verify.Proved, time: on(1)},
		{name: "a second one that renews in time", stamps: func(t *testing.T, r *evidence.Record) stamps {
			token := first.plain(t, r, on(1))
			return stamps{token, second.cover(t, r, on(250), token), third.cover(t, r, on(150), token)}
		}, status: verify.Proved, time: on(1)},
		{name: "before the loss", stamps: func(t *testing.T, r *evidence.Record) stamps { return whole(t, r)[:1] },
			trust: func(t *testing.T, o *verify.Options) { o.At = on(200) }, status: verify.Proved, time: on(1)},
		{name: "no moment of checking", stamps: func(t *testing.T, r *evidence.Record) stamps { return whole(t, r)[:1] },
			trust:  func(t *testing.T, o *verify.Options) { o.At = time.Time{} },
			status: verify.NotProved, rule: "renewal", says: "no longer trusted"},
		{name: "a renewer whom nobody knows", trust: func(t *testing.T, o *verify.Options) {
			o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)))
		}, status: verify.NotProved, rule: "renewal", says: "time stamp 1"},
		{name: "a renewer who is lost, too", trust: func(t *testing.T, o *verify.Options) {
			o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)), second.trusted(trust.Independent, on(299)))
		}, status: verify.NotProved, rule: "renewal", says: "no longer trusted"},
		{name: "renewed by the operator's word", trust: func(t *testing.T, o *verify.Options) {
			o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)), second.trusted(trust.OperatorClock, time.Time{}))
		}, status: verify.Proved, time: on(1), clock: trust.OperatorClock},
		{name: "renewed from the future", trust: func(t *testing.T, o *verify.Options) {
			o.At = on(100).Add(-6 * time.Minute)
			o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(50)), second.trusted(trust.Independent, time.Time{}))
		}, status: verify.NotProved, rule: "future", says: "time stamp 1"},
		{name: "a renewal of another record", stamps: func(t *testing.T, r *evidence.Record) stamps {
			token := first.plain(t, r, on(1))
			other := *r
			other.Signatures = [][]byte{[]byte("another")}
			return stamps{token, second.cover(t, &other, on(100), token)}
		}, status: verify.Refuted, rule: "token", says: "time stamp 1"},
		{name: "a token that calls itself an evidence record", stamps: func(t *testing.T, r *evidence.Record) stamps {
			list := whole(t, r)
			list[1].Token = second.plain(t, r, on(100)).Token
			return list
		}, status: verify.NotProved, rule: "renewal", says: "evidence record version"},
		{name: "an evidence record that calls itself a token", stamps: func(t *testing.T, r *evidence.Record) stamps {
			list := whole(t, r)
			list[1].Kind = evidence.RFC3161
			return list
		}, status: verify.NotProved, rule: "renewal", says: "malformed"},

		{name: "an evidence record alone", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{second.cover(t, r, on(7))}
		}, status: verify.Proved, time: on(7)},
		{name: "an evidence record of the lost one", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{first.cover(t, r, on(7))}
		}, status: verify.NotProved, rule: "renewal", says: "no longer trusted"},
		{name: "an evidence record of the lost one, renewed", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{second.renew(t, first.cover(t, r, on(7)), on(100))}
		}, status: verify.Proved, time: on(7)},
		{name: "an evidence record of the lost one, renewed with another hash", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{second.rehash(t, first.cover(t, r, on(7)), on(100), objects(r)...)}
		}, status: verify.Proved, time: on(7)},
		{name: "an evidence record of the lost one, renewed too late", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{second.renew(t, first.cover(t, r, on(7)), on(201))}
		}, status: verify.NotProved, rule: "renewal", says: "its time stamp 0"},
		{name: "an evidence record of the lost one, renewed twice", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{third.renew(t, second.renew(t, first.cover(t, r, on(7)), on(150)), on(250))}
		}, status: verify.Proved, time: on(7)},
		{name: "an evidence record whose certificate ended first", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{second.renew(t, brief.cover(t, r, on(7)), on(151))}
		}, trust: func(t *testing.T, o *verify.Options) {
			o.Trust = trusting(t, o.Trust, brief.trusted(trust.Independent, time.Time{}), second.trusted(trust.Independent, time.Time{}))
		}, status: verify.NotProved, rule: "renewal", says: "certificates had run out"},
		{name: "an evidence record in the wrong order of time", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{earlierRenewal(t, third, second, r)}
		}, status: verify.NotProved, rule: "renewal", says: "renewed before it was issued"},
		{name: "a forged token behind one that nobody knows", stamps: func(t *testing.T, r *evidence.Record) stamps {
			ers := first.cover(t, r, on(7))
			ers.Token[len(ers.Token)-1] ^= 1
			return stamps{newTSA(t, "nobody", on(1000)).renew(t, ers, on(100))}
		}, status: verify.Refuted, rule: "token", says: "signature does not verify"},
		{name: "what an evidence record has that is not looked into", stamps: func(t *testing.T, r *evidence.Record) stamps {
			return stamps{encrypted(t, second.cover(t, r, on(7)))}
		}, status: verify.NotProved, rule: "authority", says: "not supported"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, output("a"))
			if tt.stamps == nil {
				tt.stamps = whole
			}
			r.Timestamps = tt.stamps(t, r)
			o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)), second.trusted(trust.Independent, time.Time{}),
				third.trusted(trust.Independent, time.Time{}))
			o.At = on(300)
			if tt.trust != nil {
				tt.trust(t, &o)
			}
			report := verify.Record(r, o)
			got := report.Of(verify.Time)
			if got.Status != tt.status || got.Rule != tt.rule || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("%+v; want %s by rule %q, saying %q", got, tt.status, tt.rule, tt.says)
			}
			at, proved := report.TimeOf(r.Payload.RecordID)
			if tt.clock == "" {
				tt.clock = trust.Independent
			}
			if proved != (tt.status == verify.Proved) || proved && (!at.Time.Equal(tt.time) || at.Clock != tt.clock) {
				t.Errorf("time %+v, want %v by a clock that is %s", at, tt.time, tt.clock)
			}
		})
	}
}

// ersForm is an evidence record in parts. A test can replace parts, which a tree cannot do.
type ersForm struct {
	Version    int
	Algorithms asn1.RawValue
	Sequence   [][]asn1.RawValue // chains of archive time stamps
}

func readERS(t *testing.T, ers evidence.Timestamp) (form ersForm) {
	t.Helper()
	if rest, err := asn1.Unmarshal(ers.Token, &form); err != nil || len(rest) > 0 {
		t.Fatal(err)
	}
	return form
}

// earlierRenewal returns an evidence record of day 100 by one authority, which another renewed on day 7 by its own
// clock.
func earlierRenewal(t *testing.T, a, b *tsa, r *evidence.Record) evidence.Timestamp {
	t.Helper()
	form := readERS(t, b.renew(t, a.cover(t, r, on(100)), on(100)))
	var renewal []asn1.RawValue // digestAlgorithm and token
	must[[]byte](t)(asn1.Unmarshal(form.Sequence[0][1].FullBytes, &renewal))
	var first []asn1.RawValue
	must[[]byte](t)(asn1.Unmarshal(form.Sequence[0][0].FullBytes, &first))
	b.now = on(7)
	early := must[[]byte](t)(b.Issue(&timestamp.Request{Imprint: sha256.Sum256(first[len(first)-1].FullBytes), CertReq: true}))
	renewal[1] = asn1.RawValue{FullBytes: early}
	form.Sequence[0][1] = asn1.RawValue{FullBytes: must[[]byte](t)(asn1.Marshal(renewal))}
	return evidence.Timestamp{Kind: evidence.RFC4998, Token: must[[]byte](t)(asn1.Marshal(form))}
}

// encrypted adds an encryptionInfo.
func encrypted(t *testing.T, ers evidence.Timestamp) evidence.Timestamp {
	t.Helper()
	form := readERS(t, ers)
	ers.Token = must[[]byte](t)(asn1.Marshal(struct {
		Version          int
		Algorithms, Info asn1.RawValue
		Sequence         [][]asn1.RawValue
	}{form.Version, form.Algorithms, asn1.RawValue{FullBytes: []byte{0xa1, 0}}, form.Sequence}))
	return ers
}

// TestRenewedTooLate: a record with a lost token proves only the time of the renewal.
func TestRenewedTooLate(t *testing.T) {
	first, second := newTSA(t, "first", on(1000)), newTSA(t, "second", on(1000))
	for late, want := range map[int]verify.Status{100: verify.Proved, 201: verify.NotProved} {
		r, o := standalone(t, output("a"))
		token := first.plain(t, r, on(1))
		r.Timestamps = []evidence.Timestamp{token, second.cover(t, r, on(late), token)}
		o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)), second.trusted(trust.Independent, time.Time{}))
		o.At, o.Before = on(300), on(2)
		if got := verify.Record(r, o).Of(verify.Before); got.Status != want {
			t.Errorf("renewed on day %d: %+v", late, got)
		}
	}
}

// TestRevokedAndRenewed: a token of a revoked authority counts if a renewal proves that it is older than the theft of
// the key.
func TestRevokedAndRenewed(t *testing.T) {
	first, second := newTSA(t, "first", on(1000)), newTSA(t, "second", on(1000))
	list := signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: on(290), NextUpdate: on(310),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(5, on(200), 1)}}, first.root, first.rootKey)
	for _, tt := range []struct {
		name    string
		renewed int // 0: not
		clock   trust.Clock
		rule    string
		time    time.Time
	}{
		{"renewed before", 100, trust.Independent, "", on(1)},
		{"renewed before by the operator's word", 100, trust.OperatorClock, "", on(1)},
		{"renewed at that time", 200, trust.Independent, "", on(200)},
		{"not renewed", 0, trust.Independent, "revoked", time.Time{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, output("a"))
			token := first.plain(t, r, on(1))
			r.Timestamps = []evidence.Timestamp{token}
			if tt.renewed > 0 {
				r.Timestamps = append(r.Timestamps, second.cover(t, r, on(tt.renewed), token))
			}
			revoked := first.trusted(trust.Independent, time.Time{})
			revoked.Revocation = trust.ByCRL
			o.Trust = trusting(t, o.Trust, revoked, second.trusted(tt.clock, time.Time{}))
			o.At, o.CRLs = on(300), []*x509.RevocationList{list}
			report := verify.Record(r, o)
			if got := report.Of(verify.Time); got.Rule != tt.rule || (got.Status == verify.Proved) != (tt.rule == "") {
				t.Errorf("%+v, want rule %q", got, tt.rule)
			}
			if at, ok := report.TimeOf(r.Payload.RecordID); ok && (!at.Time.Equal(tt.time) || at.Clock != tt.clock) {
				t.Errorf("%+v, want %v by a clock that is %s", at, tt.time, tt.clock)
			}
		})
	}
}

// TestEveryByteOfARenewal: no changed byte of an evidence record leaves its time proved.
func TestEveryByteOfARenewal(t *testing.T) {
	first, second := newTSA(t, "first", on(1000)), newTSA(t, "second", on(1000))
	r, o := standalone(t, output("a"))
	token := first.plain(t, r, on(1))
	ers := second.rehash(t, second.renew(t, second.cover(t, r, on(100), token), on(150)), on(190), objects(r, token)...)
	r.Timestamps = []evidence.Timestamp{token, ers}
	o.Trust = trusting(t, o.Trust, first.trusted(trust.Independent, on(200)), second.trusted(trust.Independent, time.Time{}))
	o.At = on(300)
	if got := verify.Record(r, o); got.Outcome != verify.Proved {
		t.Fatalf("%+v", got.Details)
	}
	for i := range ers.Token {
		ers.Token[i] ^= 1
		if got := verify.Record(r, o).Of(verify.Time); got.Status == verify.Proved {
			t.Errorf("byte %d of %d: %+v", i, len(ers.Token), got)
		}
		ers.Token[i] ^= 1
	}
}
