package verify_test

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/assurance"
	"jurat/verify/trust"
)

// A twoClocks is a record that the operator's authority stamped at stamped, and an independent one an hour later.
type twoClocks struct {
	record *evidence.Record
	o      verify.Options
	public crypto.PublicKey
}

func newTwoClocks(t *testing.T) *twoClocks {
	t.Helper()
	h := jurattest.NewForStrangers(t)
	r, o := standaloneIn(t, h, output("a"))
	outside := jurattest.Authority(t, "outside", stamped.Add(time.Hour))
	r.Timestamps = append(r.Timestamps, evidence.Timestamp{Kind: evidence.RFC3161, Token: must.Get(outside.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)})
	o.Trust = withAuthority(o.Trust, outside.Certificates()[1])
	owned(o.Trust)
	o.At, o.Checkpoint = stamped.Add(24*time.Hour), r.Log.Checkpoint
	return &twoClocks{r, o, must.Get(evidence.ParsePublicKey(o.Trust.Key(r.Payload.Signers[0].KeyID).PublicKey))(t)}
}

// certified lets a CA vouch for the key, and keeps both clocks.
func (c *twoClocks) certified(t *testing.T, change func(*world)) {
	clocks := c.o.Trust.Authorities
	w := newWorld()
	w.trusted.Revocation = trust.NotAsked
	change(w)
	c.o = w.build(t, c.record, c.o, c.public)
	c.o.CRLs = nil
	c.o.Trust = changedTrust(t, c.o.Trust, func(trusted *trust.Trust) { trusted.Authorities = clocks })
}

// A clockCase asks something whose answer depends on when the record existed.
type clockCase struct {
	name     string
	change   func(t *testing.T, c *twoClocks)
	of       verify.Guarantee
	plain    string // status and rule if the reader demands nothing
	demanded string // if the operator's clock is not enough
}

func clockCases() []clockCase {
	const ownWord, sure = "proved operator-clock", "proved "
	between, later := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour)
	before := func(moment time.Time) func(*testing.T, *twoClocks) {
		return func(_ *testing.T, c *twoClocks) { c.o.Before = moment }
	}
	key := func(change func(*trust.Key)) func(*testing.T, *twoClocks) {
		return func(_ *testing.T, c *twoClocks) {
			c.o.Trust.Keys = slices.Clone(c.o.Trust.Keys)
			for i := range c.o.Trust.Keys {
				if c.o.Trust.Keys[i].KeyID == c.record.Payload.Signers[0].KeyID {
					change(&c.o.Trust.Keys[i])
				}
			}
		}
	}
	second := func(from time.Time) func(*testing.T, *twoClocks) {
		return func(t *testing.T, c *twoClocks) {
			c.o.Trust = changedTrust(t, c.o.Trust, func(trusted *trust.Trust) {
				i := slices.IndexFunc(trusted.Keys, func(k trust.Key) bool { return k.KeyID == c.record.Payload.Signers[0].KeyID })
				other := trusted.Keys[i]
				other.PublicKey = must.Get(x509.MarshalPKIXPublicKey(newKey(t).Public()))(t)
				other.KeyID = evidence.DigestOf(other.PublicKey)
				trusted.Keys[i].With, trusted.Keys[i].WithFrom = []evidence.KeyID{other.KeyID}, from
				trusted.Keys = append(trusted.Keys, other)
			})
		}
	}
	ca := func(change func(*world)) func(*testing.T, *twoClocks) {
		return func(t *testing.T, c *twoClocks) { c.certified(t, change) }
	}
	return []clockCase{
		{"before a moment between both", before(between), verify.Before, ownWord, "not proved time"},
		{"before the very moment of the independent one", before(stamped.Add(time.Hour)), verify.Before, ownWord, "not proved time"},
		{"before a moment after both", before(later), verify.Before, sure, sure},
		{"before a moment before both", before(stamped), verify.Before, "not proved time", "not proved time"},
		{"no independent stamp", func(_ *testing.T, c *twoClocks) { c.o.Before, c.record.Timestamps = later, c.record.Timestamps[:1] }, verify.Before, ownWord, "not proved time"},
		{"the independent stamp is over the checkpoint", func(t *testing.T, c *twoClocks) {
			outside := jurattest.Authority(t, "outside", stamped.Add(time.Hour))
			token := must.Get(outside.Issue(&timestamp.Request{Imprint: sha256.Sum256([]byte(c.record.Log.Checkpoint)), CertReq: true}))(t)
			c.o.Before, c.record.Timestamps = between, c.record.Timestamps[:1]
			c.record.Log.Anchors = []evidence.Anchor{{Checkpoint: c.record.Log.Checkpoint, Timestamps: [][][]byte{{token}}}}
		}, verify.Before, ownWord, "not proved time"},
		{"the key ended between both", key(func(k *trust.Key) { k.NotAfter = between }), verify.Authentication, ownWord, "not proved validity"},
		{"the key ended with the independent stamp", key(func(k *trust.Key) { k.NotAfter = stamped.Add(time.Hour) }), verify.Authentication, sure, sure},
		{"the key ended before both", key(func(k *trust.Key) { k.NotAfter = stamped.Add(-1) }), verify.Authentication, "not proved validity", "not proved validity"},
		{"the key began between both", key(func(k *trust.Key) { k.NotBefore = between }), verify.Authentication, "refuted validity", "refuted validity"},
		{"a second key signs since between both", second(between), verify.Authentication, ownWord, "not proved second-signature"},
		{"a second key signs since after both", second(later), verify.Authentication, sure, sure},
		{"the certificate ended between both", ca(func(w *world) { w.signer.NotAfter = between }), verify.Authentication, ownWord, "not proved certificate"},
		{"the CA ended between both", ca(func(w *world) { w.issuing.NotAfter = between }), verify.Authentication, ownWord, "not proved certificate"},
		{"the certificate began between both", ca(func(w *world) { w.signer.NotBefore = between }), verify.Authentication, "not proved certificate", "not proved certificate"},
		{"the certificate ended after both", ca(func(w *world) { w.signer.NotAfter = later }), verify.Authentication, sure, sure},
	}
}

// TestTheOperatorsClockAnswersNothingUnderADemand: what asks for a time takes the earliest of any clock, and says if it is the operator's alone;
// under a demand on the basis it takes the earliest independent one. The level "independent" is reached if and only if it would be met.
func TestTheOperatorsClockAnswersNothingUnderADemand(t *testing.T) {
	for _, tt := range clockCases() {
		t.Run(tt.name, func(t *testing.T) {
			c := newTwoClocks(t)
			tt.change(t, c)
			plain := verify.Record(c.record, c.o)
			if f := plain.Of(tt.of); string(f.Status)+" "+f.Rule != tt.plain {
				t.Errorf("%+v, want %s", f, tt.plain)
			}
			for _, need := range []assurance.Need{{Level: assurance.Independent}, {Level: assurance.IndependentQualified}, {Time: assurance.IndependentClock}, {Time: assurance.QualifiedClock}} {
				o := c.o
				o.Need = need
				report := verify.Record(c.record, o)
				if f := report.Of(tt.of); string(f.Status)+" "+f.Rule != tt.demanded {
					t.Errorf("%+v: %+v, want %s", need, f, tt.demanded)
				}
				if met := report.Outcome == verify.Proved; need.Level == assurance.Independent && met != (plain.Basis.Level == assurance.Independent) {
					t.Errorf("the level is %q, and the demand %s: %+v", plain.Basis.Level, report.Outcome, report.Basis)
				}
			}
			strict := c.o
			strict.Policy = verify.Strict
			if f := verify.Record(c.record, strict).Of(tt.of); f.Status == verify.Proved && tt.plain != tt.demanded {
				t.Errorf("strict: %+v", f)
			}
		})
	}
}

// TestSecondVerifierOnClocks: the second verifier gives the same answers, by the same rules.
func TestSecondVerifierOnClocks(t *testing.T) {
	t.Parallel()
	var demanded []demandedFile
	for _, tt := range clockCases() {
		for _, demand := range []string{"time=operator", "time=independent"} {
			c := newTwoClocks(t)
			tt.change(t, c)
			demanded = append(demanded, demandOf(t, tt.name, c.record, c.o, demand))
		}
	}
	for i, out := range several(t, demanded) {
		d := demanded[i]
		var found verify.Report
		if err := json.Unmarshal([]byte(out), &found); err != nil {
			t.Fatalf("%s: %v: %s", d.name, err, out)
		}
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Before} {
			if a, b := d.report.Of(g), found.Of(g); a.Status != b.Status || a.Rule != b.Rule {
				t.Errorf("%s: %+v, want %+v", d.name, b, a)
			}
		}
		if found.Outcome != d.report.Outcome || found.Basis.Level != d.report.Basis.Level {
			t.Errorf("%s: %s on %q, want %s on %q", d.name, found.Outcome, found.Basis.Level, d.report.Outcome, d.report.Basis.Level)
		}
	}
}
