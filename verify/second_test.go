package verify_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// signedTwice returns a house whose actors also sign with ML-DSA-65.
func signedTwice(t *testing.T) *jurattest.House {
	t.Helper()
	h := jurattest.New(t)
	h.Keys.PostQuantum = true
	return h
}

// sealBy seals output("a") with the given signers, and returns the record with its log proof.
func sealBy(t *testing.T, h *jurattest.House, signers ...evidence.Signer) *evidence.Record {
	t.Helper()
	draft := must.Get(evidence.NewDraft(output("a")))(t)
	r := must.Get(h.Ledger.Seal(t.Context(), draft, signers))(t)
	r = must.Get(h.Ledger.ProveOne(t.Context(), r))(t)
	return r
}

func signersOf(t *testing.T, h *jurattest.House, name string) []evidence.Signer {
	t.Helper()
	return must.Get(h.Keys.Signers(t.Context(), evidence.RoleAgent, name))(t)
}

func TestTrialSignedTwice(t *testing.T) {
	h := signedTwice(t)
	b := h.Bundle(t, h.Try(t, jury.FinalJudge).Records...)
	file := must.Get(b.Marshal())(t)
	if r := check(t, file, h.Options(t)); r.Outcome != verify.Proved {
		t.Errorf("%s: %+v", r.Outcome, r.Details)
	}
	again := must.Get(evidence.ParseBundle(file))(t)
	if doc, err := again.Marshal(); err != nil || !bytes.Equal(doc, file) {
		t.Errorf("marshals to other bytes: %v", err)
	}
	for _, r := range b.Records {
		if s := r.Payload.Signers; len(s) != 2 || s[0].Algorithm != evidence.ES256 || s[1].Algorithm != evidence.MLDSA65 {
			t.Errorf("%s is signed by %v", r.Payload.ActionType, s)
		}
	}
}

// TestSecondSignature breaks one thing at a time about the second signature. The attacker holds the first key.
func TestSecondSignature(t *testing.T) {
	type answer struct {
		guarantee verify.Guarantee
		status    verify.Status
		rule      string
		says      string
	}
	both := func(a, b answer) []answer { return []answer{a, b} }
	tests := []struct {
		name   string
		sealed func(h *jurattest.House) *evidence.Record
		want   []answer
	}{
		{"as it should be", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")...)
		}, both(answer{verify.Content, verify.Proved, "", "every signature"}, answer{verify.Authentication, verify.Proved, "", "every signature"})},
		{"in the other order", func(h *jurattest.House) *evidence.Record {
			s := signersOf(t, h, "a")
			return sealBy(t, h, s[1], s[0])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"}, answer{verify.Authentication, verify.Proved, "", "every signature"})},
		{"damaged", func(h *jurattest.House) *evidence.Record {
			r := sealBy(t, h, signersOf(t, h, "a")...)
			r.Signatures[1][1000] ^= 1
			return r
		}, both(answer{verify.Content, verify.Refuted, "signature", "signature 1"}, answer{verify.Authentication, verify.Refuted, "signature", "signature 1"})},
		{"over another payload", func(h *jurattest.House) *evidence.Record {
			r, other := sealBy(t, h, signersOf(t, h, "a")...), sealBy(t, h, signersOf(t, h, "a")...)
			r.Signatures[1] = other.Signatures[1]
			return r
		}, both(answer{verify.Content, verify.Refuted, "signature", "signature 1"}, answer{verify.Time, verify.Refuted, "token", "time stamp 0"})},
		{"sealed again without it", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[0])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "second-signature", `agent "a" signs only together with the key sha256:`})},
		{"sealed again without the first", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[1])
		}, both(answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"},
			answer{verify.NonRepudiation, verify.Refuted, "second-signature", "which did not sign"})},
		{"by a key that nobody knows", func(h *jurattest.House) *evidence.Record {
			stranger := must.Get(evidence.NewSigner(evidence.NewMLDSA65(new([32]byte)), nil))(t)
			return sealBy(t, h, signersOf(t, h, "a")[0], stranger)
		}, both(answer{verify.Content, verify.NotProved, "unknown-key", "other keys for agent"},
			answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"})},
		{"by another actor's key", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, signersOf(t, h, "a")[0], signersOf(t, h, "b")[1])
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "second-signature", "which did not sign"})},
		{"by another actor's key beside it", func(h *jurattest.House) *evidence.Record {
			return sealBy(t, h, append(signersOf(t, h, "a"), signersOf(t, h, "b")...)...)
		}, both(answer{verify.Content, verify.Proved, "", "every signature"},
			answer{verify.Authentication, verify.Refuted, "actor", `the key of agent "b"`})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := signedTwice(t)
			signersOf(t, h, "a") // so that the trust file has both actors' keys
			signersOf(t, h, "b")
			report := verify.Record(tt.sealed(h), h.Options(t))
			for _, want := range tt.want {
				got := report.Of(want.guarantee)
				if got.Status != want.status || got.Rule != want.rule || !strings.Contains(got.Reason, want.says) {
					t.Errorf("%+v; want %s by rule %q, saying %q", got, want.status, want.rule, want.says)
				}
			}
			if refuted := tt.want[1].status == verify.Refuted; (report.Outcome == verify.Refuted) != refuted {
				t.Errorf("outcome %s", report.Outcome)
			}
		})
	}
}

// TestSecondSignatureStripped removes the second signature from the file, and its name from the payload.
func TestSecondSignatureStripped(t *testing.T) {
	h := signedTwice(t)
	r := sealBy(t, h, signersOf(t, h, "a")...)
	file := must.Get(r.Marshal())(t)
	o := h.Options(t)
	if report := check(t, file, o); report.Outcome != verify.Proved {
		t.Fatalf("the honest file: %+v", report.Details)
	}
	second := `,"` + base64.StdEncoding.EncodeToString(r.Signatures[1]) + `"`
	stripped := strings.Replace(string(file), second, "", 1)
	got := check(t, []byte(stripped), o).Of(verify.Content)
	if got.Status != verify.Refuted || got.Rule != "form" || !strings.Contains(got.Reason, "names 2 signers, the record has 1 signatures") {
		t.Errorf("without the signature: %+v", got)
	}
	name := `,{"alg":"ML-DSA-65","key_id":"` + r.Payload.Signers[1].KeyID.String() + `"}`
	unnamed := strings.Replace(stripped, name, "", 1)
	if unnamed == stripped {
		t.Fatal("the payload does not contain the second signer in this form")
	}
	if got := check(t, []byte(unnamed), o).Of(verify.Content); got.Status != verify.Refuted || got.Rule != "form" || !strings.Contains(got.Reason, "digest") {
		t.Errorf("without the signer's name in the payload: %+v", got)
	}
	// With a recomputed digest the file opens, but the first signature is over another payload.
	payload := strings.Replace(string(r.Canonical()), name, "", 1)
	fitting := strings.Replace(unnamed, r.Digest.String(), evidence.DigestOf([]byte(payload)).String(), 1)
	if got := check(t, []byte(fitting), o).Of(verify.Content); got.Status != verify.Refuted || got.Rule != "signature" {
		t.Errorf("with another digest: %+v", got)
	}
}

// TestSecondSignatureFrom: before the second key existed, the first one signed alone.
func TestSecondSignatureFrom(t *testing.T) {
	stamped := jurattest.Start
	tests := []struct {
		name   string
		from   time.Time
		timed  bool
		status verify.Status
		rule   string
	}{
		{"always", time.Time{}, true, verify.Refuted, "second-signature"},
		{"always, and no proved time", time.Time{}, false, verify.Refuted, "second-signature"},
		{"from before", stamped.Add(-time.Second), true, verify.Refuted, "second-signature"},
		{"from the very moment", stamped, true, verify.Refuted, "second-signature"},
		{"from later", stamped.Add(time.Second), true, verify.Proved, "operator-clock"},
		{"from later, and no proved time", stamped.Add(time.Second), false, verify.NotProved, "second-signature"},
	}
	for _, tt := range tests {
		h := signedTwice(t)
		r := sealBy(t, h, signersOf(t, h, "a")[0])
		if !tt.timed {
			r.Timestamps = nil
		}
		o := h.Options(t)
		o.Trust.Key(r.Payload.Signers[0].KeyID).WithFrom = tt.from
		report := verify.Record(r, o)
		for _, g := range []verify.Guarantee{verify.Authentication, verify.NonRepudiation} {
			got := report.Of(g)
			if g == verify.NonRepudiation && tt.status == verify.Proved && got.Rule == "custody" { // the operator keeps the key
				continue
			}
			if got.Status != tt.status || got.Rule != tt.rule {
				t.Errorf("%s: %+v; want %s", tt.name, got, tt.status)
			}
		}
	}
}

// TestTrustFileDemandsOnlyWhatCanBe reads trust files with demands that no record can fulfil.
func TestTrustFileDemandsOnlyWhatCanBe(t *testing.T) {
	h := signedTwice(t)
	a, b := signersOf(t, h, "a"), signersOf(t, h, "b")
	doc := func(change func(k *trust.Key)) []byte {
		trusted := h.Trust(t)
		change(trusted.Key(a[0].Info().KeyID))
		return must.Get(trusted.Marshal())(t)
	}
	own, second, foreign := a[0].Info().KeyID, a[1].Info().KeyID, b[1].Info().KeyID
	changed := func(old, new string) []byte {
		return bytes.Replace(doc(func(*trust.Key) {}), []byte(old), []byte(new), 1)
	}
	text := doc(func(*trust.Key) {})
	start := bytes.Index(text, []byte(`"with": [`)) + len(`"with": [`)
	emptied := slices.Delete(text, start, start+bytes.IndexByte(text[start:], ']'))
	for name, tt := range map[string]struct {
		doc  []byte
		says string
	}{
		"empty":                  {emptied, "with is empty"},
		"itself":                 {doc(func(k *trust.Key) { k.With = []evidence.KeyID{own} }), "this key itself"},
		"twice":                  {doc(func(k *trust.Key) { k.With = []evidence.KeyID{second, second} }), "twice"},
		"unknown":                {doc(func(k *trust.Key) { k.With = []evidence.KeyID{evidence.DigestOf(nil)} }), "has no key"},
		"another actor's":        {doc(func(k *trust.Key) { k.With = []evidence.KeyID{foreign} }), `that of agent "b"`},
		"a time without a key":   {doc(func(k *trust.Key) { k.With, k.WithFrom = nil, jurattest.Start }), "with_from"},
		"a time that is no time": {changed(`"with": [`, `"with_from": "soon", "with": [`), "with_from"},
	} {
		if _, err := trust.Parse(tt.doc); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: error %v; want one about %q", name, err, tt.says)
		}
	}
	whole := doc(func(k *trust.Key) { k.WithFrom = jurattest.Start })
	trusted := must.Get(trust.Parse(whole))(t)
	if again, err := trusted.Marshal(); err != nil || !bytes.Equal(again, whole) {
		t.Errorf("marshals to other bytes: %v", err)
	}
}
