package verify_test

import (
	"bytes"
	"crypto"
	"crypto/x509"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// An anchoring is a chain of three records without time stamps of their own, in a log of which checkpoints were stamped: early, over the first
// record, and late, over the first two. The file's checkpoint is over all. One authority stamped early on day 1 and late on day 11; another
// renewed both on day 100. The first one's key is lost on day 200, and the reader looks on day 300.
type anchoring struct {
	t           *testing.T
	k           *keeper
	b           *evidence.Bundle
	o           verify.Options
	early, late string

	first, second, third, brief *tsa
}

func newAnchoring(t *testing.T) *anchoring {
	t.Helper()
	a := &anchoring{t: t, k: &keeper{House: jurattest.NewForStrangers(t), t: t}, first: newTSA(t, "first", on(1000)), second: newTSA(t, "second", on(1000)),
		third: newTSA(t, "third", on(1000)), brief: newTSA(t, "brief", on(50))}
	a.k.speakTimes(1)
	a.early = a.k.checkpoint()
	a.k.speakTimes(1)
	a.late = a.k.checkpoint()
	a.k.speakTimes(1)
	a.b = a.k.bundle()
	for _, r := range a.b.Records {
		r.Timestamps = nil
	}
	a.b.Anchors = []evidence.Anchor{a.anchor(a.early, 2, a.first, on(1)), a.anchor(a.late, 4, a.first, on(11))}
	a.renew(0, a.second, on(100))
	a.renew(1, a.second, on(100))
	a.o = a.k.Options(t)
	a.o.At = on(300)
	a.trust(a.first.trusted(trust.Independent, on(200)), a.second.trusted(trust.Independent, time.Time{}))
	return a
}

func (a *anchoring) trust(authorities ...trust.Authority) {
	a.t.Helper()
	a.o.Trust = trusting(a.t, a.o.Trust, authorities...)
}

// anchor has a checkpoint of this size stamped.
func (a *anchoring) anchor(note string, size int64, by *tsa, at time.Time) evidence.Anchor {
	a.t.Helper()
	made := evidence.Anchor{Checkpoint: note, Consistency: [][]byte{}}
	for _, node := range a.k.consistency(min(size, 6), max(size, 6)).Proof {
		made.Consistency = append(made.Consistency, bytes.Clone(node[:]))
	}
	made.Timestamps = [][][]byte{{over(a.t, by, &made, 0, at)}}
	return made
}

// over returns a token of a generation.
func over(t testing.TB, by *tsa, a *evidence.Anchor, generation int, at time.Time) []byte {
	t.Helper()
	by.now = at
	imprints := must.Get(a.Imprints())(t)
	return must.Get(by.Issue(&timestamp.Request{Imprint: imprints[generation], CertReq: true}))(t)
}

// renew adds a generation of one token.
func (a *anchoring) renew(i int, by *tsa, at time.Time) {
	a.t.Helper()
	one := &a.b.Anchors[i]
	one.Timestamps = append(one.Timestamps, [][]byte{over(a.t, by, one, len(one.Timestamps), at)})
}

// beside adds a token to the last generation.
func (a *anchoring) beside(i int, by *tsa, at time.Time) {
	a.t.Helper()
	one := &a.b.Anchors[i]
	last := len(one.Timestamps) - 1
	one.Timestamps[last] = append(one.Timestamps[last], over(a.t, by, one, last, at))
}

// unrenewed takes all generations but the first away.
func (a *anchoring) unrenewed() {
	for i := range a.b.Anchors {
		a.b.Anchors[i].Timestamps = a.b.Anchors[i].Timestamps[:1]
	}
}

// anchorCases change one thing each. want has the days of the records' times; 0: it has none.
var anchorCases = []struct {
	name   string
	change func(a *anchoring)
	want   [3]int
	rule   string // of the first record without a time
}{
	{"each under the earliest, renewed in time", func(*anchoring) {}, [3]int{1, 11, 0}, "pending"},
	{"over the last record, too", func(a *anchoring) {
		a.b.Anchors = append(a.b.Anchors, a.anchor(a.b.Checkpoint, 6, a.second, on(21)))
	}, [3]int{1, 11, 21}, ""},
	{"over more than the file's checkpoint", func(a *anchoring) {
		a.k.speakTimes(1)
		a.b.Anchors = append(a.b.Anchors, a.anchor(a.k.checkpoint(), 8, a.second, on(31)))
	}, [3]int{1, 11, 31}, ""},
	{"in another order", func(a *anchoring) { slices.Reverse(a.b.Anchors) }, [3]int{1, 11, 0}, "pending"},
	{"without the earliest", func(a *anchoring) { a.b.Anchors = a.b.Anchors[1:] }, [3]int{11, 11, 0}, "pending"},
	{"without any", func(a *anchoring) { a.b.Anchors = nil }, [3]int{}, "pending"},

	{"not renewed", func(a *anchoring) { a.unrenewed() }, [3]int{}, "renewal"},
	{"not renewed, by an authority that is believed", func(a *anchoring) {
		a.unrenewed()
		a.trust(a.first.trusted(trust.Independent, time.Time{}))
	}, [3]int{1, 11, 0}, "pending"},
	{"renewed too late", func(a *anchoring) {
		a.unrenewed()
		a.renew(0, a.second, on(200))
		a.renew(1, a.second, on(201))
	}, [3]int{1, 201, 0}, "pending"},
	{"renewed after the certificate ended", func(a *anchoring) {
		a.b.Anchors = []evidence.Anchor{a.anchor(a.early, 2, a.brief, on(1)), a.anchor(a.late, 4, a.brief, on(11))}
		a.renew(0, a.second, on(50))
		a.renew(1, a.second, on(51))
		a.trust(a.brief.trusted(trust.Independent, on(200)), a.second.trusted(trust.Independent, time.Time{}))
	}, [3]int{1, 51, 0}, "pending"},
	{"renewed twice", func(a *anchoring) {
		a.renew(0, a.third, on(150))
		a.renew(1, a.third, on(250))
		a.trust(a.first.trusted(trust.Independent, on(200)), a.second.trusted(trust.Independent, on(150)), a.third.trusted(trust.Independent, time.Time{}))
	}, [3]int{1, 250, 0}, "pending"},
	{"renewed by two", func(a *anchoring) {
		a.beside(0, a.third, on(150))
		a.trust(a.first.trusted(trust.Independent, on(200)), a.third.trusted(trust.Independent, time.Time{}))
	}, [3]int{1, 0, 0}, "renewal"},
	{"renewed by an authority that nobody trusts", func(a *anchoring) { a.trust(a.first.trusted(trust.Independent, on(200))) }, [3]int{}, "renewal"},
	{"renewed by an authority that was lost, too", func(a *anchoring) {
		a.trust(a.first.trusted(trust.Independent, on(200)), a.second.trusted(trust.Independent, on(200)))
	}, [3]int{}, "renewal"},
	{"a renewal over another checkpoint", func(a *anchoring) { a.b.Anchors[1].Timestamps[1] = a.b.Anchors[0].Timestamps[1] }, [3]int{}, "token"},
	{"a renewal over the checkpoint alone", func(a *anchoring) {
		a.b.Anchors[0].Timestamps[1] = [][]byte{over(a.t, a.second, &a.b.Anchors[0], 0, on(100))}
	}, [3]int{}, "token"},
	{"a renewal without a token that it covers", func(a *anchoring) {
		a.unrenewed()
		a.beside(0, a.third, on(2))
		a.renew(0, a.second, on(100))
		a.b.Anchors[0].Timestamps[0] = a.b.Anchors[0].Timestamps[0][:1]
	}, [3]int{}, "token"},
	{"a renewal without the renewal before it", func(a *anchoring) {
		a.renew(0, a.third, on(150))
		a.b.Anchors[0].Timestamps = slices.Delete(a.b.Anchors[0].Timestamps, 1, 2)
	}, [3]int{}, "token"},

	{"over another text", func(a *anchoring) {
		other := evidence.Anchor{Checkpoint: a.early + "\n"}
		a.unrenewed()
		a.b.Anchors[0].Timestamps[0][0] = over(a.t, a.first, &other, 0, on(1))
	}, [3]int{}, "token"},
	{"over another text, of a log that nobody knows", func(a *anchoring) {
		other := evidence.Anchor{Checkpoint: a.early + "\n"}
		a.unrenewed()
		a.b.Anchors[0].Timestamps[0][0] = over(a.t, a.first, &other, 0, on(1))
		a.o.Trust.Logs = nil
	}, [3]int{}, "token"},
	{"no token of a form that can be read", func(a *anchoring) { a.b.Anchors[0].Timestamps = [][][]byte{{{1, 2, 3}}} }, [3]int{11, 11, 0}, "pending"},
	{"of a log that nobody knows", func(a *anchoring) { a.o.Trust.Logs = nil }, [3]int{}, "authority"},
	{"a checkpoint that no log signed", func(a *anchoring) {
		text, _, _ := strings.Cut(a.early, "\n\n")
		a.b.Anchors[0] = a.anchor(text+"\n\n\u2014 stranger.example/log AAAAAAAA\n", 2, a.second, on(1))
	}, [3]int{11, 11, 0}, "authority"},
	{"no proof of consistency", func(a *anchoring) { a.b.Anchors[0].Consistency = [][]byte{} }, [3]int{11, 11, 0}, "authority"},
	{"a proof of consistency that does not hold", func(a *anchoring) { a.b.Anchors[0].Consistency[1][7] ^= 1 }, [3]int{11, 11, 0}, "authority"},
	{"the proof of another anchor", func(a *anchoring) { a.b.Anchors[1].Consistency = a.b.Anchors[0].Consistency }, [3]int{1, 0, 0}, "authority"},
	{"a record that is not in the log", func(a *anchoring) { a.b.Records[0].Log.Proof[0][7] ^= 1 }, [3]int{0, 11, 0}, "pending"},
	{"of a checkpoint of another history", func(a *anchoring) {
		a.b.Anchors[0], a.b.Anchors[0].Consistency = a.anchor(a.other(2), 2, a.second, on(1)), a.fork(2)
	}, [3]int{11, 11, 0}, "authority"},
	{"of another history of the same size", func(a *anchoring) {
		a.b.Anchors = append(a.b.Anchors, a.anchor(a.other(6), 6, a.second, on(1)))
	}, [3]int{1, 11, 0}, "authority"},
	{"of an empty log", func(a *anchoring) {
		empty := must.Get(a.k.SignCheckpoint(operator.Checkpoint{Origin: jurattest.Origin, Root: operator.EmptyRoot()}))(a.t)
		a.b.Anchors = []evidence.Anchor{{Checkpoint: empty, Consistency: [][]byte{}}}
		a.b.Anchors[0].Timestamps = [][][]byte{{over(a.t, a.second, &a.b.Anchors[0], 0, on(1))}}
	}, [3]int{}, "pending"},
	{"a time that is yet to come", func(a *anchoring) { a.o.At = on(99) }, [3]int{1, 11, 0}, "pending"},
	{"a time that is yet to come, and nothing else", func(a *anchoring) {
		a.o.At = on(99)
		a.b.Anchors = []evidence.Anchor{a.anchor(a.early, 2, a.second, on(100))}
	}, [3]int{}, "future"},
	{"a time that is yet to come, and too many time stamps", func(a *anchoring) {
		a.o.At = on(99)
		a.b.Anchors = []evidence.Anchor{a.anchor(a.early, 2, a.second, on(100))}
		for i := range looked + 1 {
			a.b.Records[0].Timestamps = append(a.b.Records[0].Timestamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte{byte(i), 1}})
		}
	}, [3]int{}, "future"},
	{"too many time stamps", func(a *anchoring) {
		for i := range looked + 1 {
			a.b.Records[0].Timestamps = append(a.b.Records[0].Timestamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: []byte{byte(i), 1}})
		}
		a.b.Anchors = a.b.Anchors[:0]
	}, [3]int{}, "authority"},
}

// other is a checkpoint of another history that the log signed.
func (a *anchoring) other(size int64) string {
	a.t.Helper()
	return must.Get(a.k.SignCheckpoint(operator.Checkpoint{Origin: jurattest.Origin, Size: size, Root: tlog.Hash(evidence.DigestOf([]byte("other")))}))(a.t)
}

// fork is a proof that another checkpoint of a size is of another history.
func (a *anchoring) fork(size int64) (nodes [][]byte) {
	a.t.Helper()
	for _, node := range a.k.fork(a.early, 6).Proof {
		nodes = append(nodes, bytes.Clone(node[:]))
	}
	return nodes
}

// TestEveryRuleOfAnchors breaks one thing at a time about stamped checkpoints.
func TestEveryRuleOfAnchors(t *testing.T) {
	for _, tt := range anchorCases {
		t.Run(tt.name, func(t *testing.T) {
			a := newAnchoring(t)
			tt.change(a)
			report := verify.Bundle(a.b, a.o)
			rule := ""
			for i, r := range a.b.Records {
				day, at := 0, time.Time{}
				if proved, ok := report.TimeOf(r.Payload.RecordID); ok {
					at = proved.Time
					day = int(at.Sub(jurattest.Start) / (24 * time.Hour))
				}
				must.Hold(t, day == tt.want[i] && (day <= 0 || at.Equal(on(day))), "record %d existed on day %d (%v), want %d", i, day, at, tt.want[i])
				if f := report.For(verify.Time, r.Payload.RecordID); rule == "" {
					rule = f.Rule
				}
			}
			if whole := report.Of(verify.Time); whole.Rule == "token" {
				rule = "token"
				must.Hold(t, whole.Status == verify.Refuted, "%+v", whole)
			}
			must.Hold(t, rule == tt.rule, "rule %q, want %q: %+v", rule, tt.rule, report.Details)
			forked := report.Of(verify.Order)
			must.Hold(t, (forked.Rule == "fork") == strings.Contains(tt.name, "another history"), "%+v", forked)
			file := must.Get(a.b.Marshal())(t)
			again := check(t, file, a.o)
			must.Hold(t, fmt.Sprint(again.Times) == fmt.Sprint(report.Times), "as a file: %+v", again.Times)
		})
	}
}

// anchorVectors are the cases above, and a record by itself.
func anchorVectors(t *testing.T) (list []given) {
	t.Helper()
	for _, tt := range anchorCases {
		a := newAnchoring(t)
		tt.change(a)
		list = append(list, givenBundle(t, slug("anchor", tt.name), a.b, a.o))
	}
	a := newAnchoring(t)
	r := a.b.Records[0]
	r.Log.Checkpoint, r.Log.Anchors = a.b.Checkpoint, a.b.Anchors
	return append(list, givenRecord(t, "anchor-of-a-record", r, a.o))
}

// TestAnchorByTheOperatorsWord: a lost key's token that only the operator's clock shows to be old enough counts as the operator's word.
func TestAnchorByTheOperatorsWord(t *testing.T) {
	a := newAnchoring(t)
	a.trust(a.first.trusted(trust.Independent, on(200)), a.second.trusted(trust.OperatorClock, time.Time{}))
	report := verify.Bundle(a.b, a.o)
	at, ok := report.TimeOf(a.b.Records[0].Payload.RecordID)
	must.Hold(t, ok && at.Time.Equal(on(1)) && at.Clock == trust.OperatorClock && at.Independent == nil, "%+v", at)
	a.beside(0, a.third, on(190))
	a.trust(a.first.trusted(trust.Independent, on(200)), a.second.trusted(trust.OperatorClock, time.Time{}), a.third.trusted(trust.Independent, time.Time{}))
	report = verify.Bundle(a.b, a.o)
	at, ok = report.TimeOf(a.b.Records[0].Payload.RecordID)
	must.Hold(t, ok && at.Time.Equal(on(1)) && at.Clock == trust.Independent, "with an independent one: %+v", at)
}

// TestRevokedAndRenewed: a token of a revoked authority counts if a renewal proves that it is older than the theft of
// the key.
func TestRevokedAndRenewed(t *testing.T) {
	for name, tt := range map[string]struct {
		renewed int // 0: not
		clock   trust.Clock
		rule    string
		day     int
	}{
		"renewed before":                        {100, trust.Independent, "", 1},
		"renewed before by the operator's word": {100, trust.OperatorClock, "", 1},
		"renewed at that time":                  {200, trust.Independent, "", 200},
		"not renewed":                           {0, trust.Independent, "revoked", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnchoring(t)
			a.unrenewed()
			a.b.Records, a.b.Anchors = a.b.Records[:1], a.b.Anchors[:1]
			if tt.renewed > 0 {
				a.renew(0, a.second, on(tt.renewed))
			}
			revoked := a.first.trusted(trust.Independent, time.Time{})
			revoked.Revocation = trust.ByCRL
			a.trust(revoked, a.second.trusted(tt.clock, time.Time{}))
			a.o.CRLs = []*x509.RevocationList{signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: on(290), NextUpdate: on(310),
				RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(5, on(200), 1)}}, a.first.root, a.first.rootKey)}
			report := verify.Bundle(a.b, a.o)
			got := report.Of(verify.Time)
			must.Hold(t, got.Rule == tt.rule && (got.Status == verify.Proved) == (tt.rule == ""), "%+v, want rule %q", got, tt.rule)
			at, ok := report.TimeOf(a.b.Records[0].Payload.RecordID)
			must.Hold(t, !ok || at.Time.Equal(on(tt.day)) && at.Clock == tt.clock, "%+v, want day %d by a clock that is %s", at, tt.day, tt.clock)
		})
	}
}

// TestStrictThroughARenewal: a token whose age only tokens show that were not checked for revocation was not checked either: whoever has both
// keys could have made it at any time.
func TestStrictThroughARenewal(t *testing.T) {
	for name, tt := range map[string]struct {
		lost, revoked, asked bool // the first one's trust has ended; its key is revoked; the second one is asked
		want                 bool
	}{
		"believed, renewed without a check":  {false, false, false, true},
		"lost, renewed without a check":      {true, false, false, false},
		"lost, renewed with a check":         {true, false, true, true},
		"revoked, renewed without a check":   {false, true, false, false},
		"revoked, renewed with a check":      {false, true, true, true},
		"lost and revoked, without a check":  {true, true, false, false},
		"lost and revoked, with a check too": {true, true, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAnchoring(t)
			a.b.Records, a.b.Anchors = a.b.Records[:1], a.b.Anchors[:1]
			first, second := a.first.trusted(trust.Independent, time.Time{}), a.second.trusted(trust.Independent, time.Time{})
			first.Revocation = trust.ByCRL
			if tt.lost {
				first.NotAfter = on(200)
			}
			if tt.asked {
				second.Revocation = trust.ByCRL
			}
			a.trust(first, second)
			var entries []x509.RevocationListEntry
			if tt.revoked {
				entries = append(entries, revocationOf(5, on(200), 1))
			}
			list := x509.RevocationList{Number: big.NewInt(1), ThisUpdate: on(290), NextUpdate: on(310)}
			a.o.CRLs = append(a.o.CRLs, signList(t, &list, a.second.root, a.second.rootKey))
			list.RevokedCertificateEntries = entries
			a.o.CRLs = append(a.o.CRLs, signList(t, &list, a.first.root, a.first.rootKey))
			at, ok := verify.Bundle(a.b, a.o).TimeOf(a.b.Records[0].Payload.RecordID)
			must.Hold(t, ok && at.Time.Equal(on(1)), "by default: %+v", at)
			a.o.Policy = verify.Strict
			a.o.Before = on(2)
			for _, g := range []verify.Guarantee{verify.Before, verify.Time} {
				f := verify.Bundle(a.b, a.o).For(g, a.b.Records[0].Payload.RecordID)
				must.Hold(t, (f.Status == verify.Proved) == tt.want, "%s: %+v", g, f)
			}
		})
	}
}

// TestEveryByteOfAnAnchor: no changed byte of what is stamped leaves the times as they are.
func TestEveryByteOfAnAnchor(t *testing.T) {
	a := newAnchoring(t)
	a.b.Anchors = a.b.Anchors[:1]
	changed := func(what string, bytes []byte, step int) {
		for i := 0; i < len(bytes); i += step {
			bytes[i] ^= 1
			at, ok := verify.Bundle(a.b, a.o).TimeOf(a.b.Records[0].Payload.RecordID)
			must.Hold(t, !ok || !at.Time.Equal(on(1)), "%s, byte %d of %d: %+v", what, i, len(bytes), at)
			bytes[i] ^= 1
		}
	}
	for i, generation := range a.b.Anchors[0].Timestamps {
		changed(fmt.Sprint("generation ", i), generation[0], 1)
	}
	for _, node := range a.b.Anchors[0].Consistency {
		changed("a node", node, 7)
	}
	note := []byte(a.b.Anchors[0].Checkpoint)
	for i := range note {
		note[i] ^= 1
		a.b.Anchors[0].Checkpoint = string(note)
		at, ok := verify.Bundle(a.b, a.o).TimeOf(a.b.Records[0].Payload.RecordID)
		must.Hold(t, !ok, "byte %d of the checkpoint: %+v", i, at)
		note[i] ^= 1
	}
}

// TestFloodOfAnchors: the report repeats errors in stamped checkpoints for every record, so the text must be short, and a file can
// have no more tokens than a verifier looks at.
func TestFloodOfAnchors(t *testing.T) {
	a := newAnchoring(t)
	stranger := newTSA(t, "stranger", on(1000))
	a.b.Anchors = []evidence.Anchor{a.anchor(a.early, 2, stranger, on(1))}
	for n := 1; n < evidence.MaxAnchorTokens; n++ {
		a.beside(0, stranger, on(1).Add(time.Duration(n)*time.Second))
	}
	got := verify.Bundle(a.b, a.o).For(verify.Time, a.b.Records[0].Payload.RecordID)
	must.Hold(t, got.Rule == "authority" && len(got.Reason) <= 1000 && strings.Contains(got.Reason, fmt.Sprintf("%d more", evidence.MaxAnchorTokens-1)),
		"%+v", got)
	must.Fail(t, nil)(a.b.Marshal())
	a.beside(0, stranger, on(2))
	must.Refuse(t, "", "a file with one more is written")(a.b.Marshal())
}

// TestFloodOfGenerations: each generation stamps all that came before it, and a file may have very many over a very long checkpoint. What they
// stamp must not be hashed anew for each: that takes minutes.
func TestFloodOfGenerations(t *testing.T) {
	a := newAnchoring(t)
	one := evidence.Anchor{Checkpoint: strings.Repeat("x", evidence.MaxAnchorBytes-2*evidence.MaxAnchorTokens), Consistency: [][]byte{}}
	for n := range evidence.MaxAnchorTokens {
		one.Timestamps = append(one.Timestamps, [][]byte{{byte(n), byte(n >> 8)}})
	}
	a.b.Anchors = []evidence.Anchor{one}
	file := must.Get(a.b.Marshal())(t)
	got := check(t, file, a.o).For(verify.Time, a.b.Records[0].Payload.RecordID)
	must.Hold(t, got.Rule == "authority", "%+v", got)
}

// TestIndependentTime: the report gives the earliest time, and the earliest one by an independent clock.
func TestIndependentTime(t *testing.T) {
	r, o := standalone(t, output("a"))
	later, root := laterToken(t, r)
	r.Timestamps = append(r.Timestamps, later)
	o.Trust = withAuthority(o.Trust, root)
	report := verify.Record(r, o)
	at, ok := report.TimeOf(r.Payload.RecordID)
	must.Hold(t, ok && at.Clock == trust.OperatorClock && at.Time.Equal(jurattest.Start), "earliest %+v", at)
	if i := at.Independent; i == nil || i.Authority != "second" || i.Clock != trust.Independent || !i.Time.Equal(jurattest.Start.Add(time.Hour)) {
		t.Errorf("independent %+v", i)
	}
	note := report.Of(verify.Time).Reason
	if !strings.Contains(note, "only as far as the operator's clock") || !strings.Contains(note, "it existed by 2026-01-01T01:00:00Z, as stamped by second, whose clock is independent") {
		t.Error(note)
	}
	doc, err := report.Marshal()
	must.Hold(t, err == nil && strings.Contains(string(doc), `"independent": {`), "%v\n%s", err, doc)

	o.Trust.Authorities[0].Clock = trust.Independent
	at, _ = verify.Record(r, o).TimeOf(r.Payload.RecordID)
	must.Hold(t, at.Clock == trust.Independent && at.Independent == nil, "independent from the first: %+v", at)
}

// TestFuture: a token from after the moment of checking shows only that a clock is wrong.
func TestFuture(t *testing.T) {
	stamped := jurattest.Start
	for _, tt := range []struct {
		at     time.Time
		status verify.Status
		rule   string
	}{
		{time.Time{}, verify.Proved, ""},
		{stamped, verify.Proved, ""},
		{stamped.Add(-5 * time.Minute), verify.Proved, ""},
		{stamped.Add(-5*time.Minute - 1), verify.NotProved, "future"},
	} {
		r, o := standalone(t, output("a"))
		o.At = tt.at
		got := verify.Record(r, o).Of(verify.Time)
		must.Hold(t, got.Status == tt.status && got.Rule == tt.rule, "at %v: %+v", tt.at, got)
	}
	// The other token still counts.
	r, o := standalone(t, output("a"))
	later, root := laterToken(t, r)
	r.Timestamps = []evidence.Timestamp{later, r.Timestamps[0]}
	o.Trust, o.At = withAuthority(o.Trust, root), stamped
	report := verify.Record(r, o)
	at, _ := report.TimeOf(r.Payload.RecordID)
	must.Hold(t, report.Of(verify.Time).Status == verify.Proved && at.Independent == nil, "%+v, %+v", report.Of(verify.Time), at)
}

const day = 24 * time.Hour

// on is n days after the start of the tests' time.
func on(n int) time.Time { return jurattest.Start.Add(time.Duration(n) * day) }

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
	a.root = must.Get(timestamp.NewRoot(top))(t)
	leaf := must.Get(timestamp.NewCertificate(under, a.root, top.Key))(t)
	a.Authority = must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: under.Key, Certificate: leaf,
		Chain: []*x509.Certificate{a.root}, Now: func() time.Time { return a.now }, Rand: rand.NewChaCha8([32]byte{5})}))(t)
	return a
}

func (a *tsa) trusted(clock trust.Clock, notAfter time.Time) trust.Authority {
	return trust.Authority{Name: a.name, Certificate: a.root.Raw, Clock: clock, NotAfter: notAfter}
}

// plain stamps a record with a plain token.
func (a *tsa) plain(t testing.TB, r *evidence.Record, at time.Time) evidence.Timestamp {
	t.Helper()
	a.now = at
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: must.Get(a.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)}
}

// trusting replaces the authorities of a trust.
func trusting(t testing.TB, trusted *trust.Trust, authorities ...trust.Authority) *trust.Trust {
	t.Helper()
	changed := *trusted
	changed.Authorities = authorities
	return must.Get(trust.Parse(must.Get(changed.Marshal())(t)))(t)
}
