package verify_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"jurat/aep"
	"jurat/evidence"
	"jurat/internal/aeptest"
	"jurat/jurattest"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// packaged is an honest package with both signatures, and the options that prove it.
func packaged(t *testing.T) (aeptest.Members, verify.Options) {
	t.Helper()
	m := aeptest.New(t, timestamp.NewMock())
	digest := sha256.Sum256([]byte(aeptest.Canonical))
	m.SignSecond(t, digest[:])
	known := keyOf("a", evidence.RS256, aeptest.Public(t, aeptest.Key(t).Public()))
	known.NotBefore = jurattest.Start
	trusted := &trust.Trust{Format: trust.Format, Keys: []trust.Key{
		known,
		keyOf("a", evidence.MLDSA65, aeptest.Public(t, aeptest.SecondKey(t).Public())),
	}, Authorities: []trust.Authority{{Name: "mock", Certificate: timestamp.NewMock().Certificates()[1].Raw, Clock: trust.OperatorClock}}}
	o := verify.Options{Trust: reread(t, trusted), UnsafeAllowMock: true}
	return m, o
}

func keyOf(name string, algorithm evidence.Algorithm, public []byte) trust.Key {
	return trust.Key{Name: name, Role: evidence.RoleAgent, Algorithm: algorithm, KeyID: evidence.DigestOf(public), PublicKey: public, Custody: trust.ByOperator}
}

func reread(t *testing.T, trusted *trust.Trust) *trust.Trust {
	t.Helper()
	doc, err := trusted.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if trusted, err = trust.Parse(doc); err != nil {
		t.Fatal(err)
	}
	return trusted
}

func verified(t *testing.T, file []byte, o verify.Options) *verify.Report {
	t.Helper()
	report, err := verify.File(file, o)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestHonestPackage: everything that such a package can prove is proved, and the report names what it cannot prove.
func TestHonestPackage(t *testing.T) {
	m, o := packaged(t)
	report := verified(t, m.Zip(t), o)
	if report.Kind != verify.Package || report.Outcome != verify.Proved || report.Records != 1 {
		t.Errorf("%+v", report)
	}
	var asked []verify.Guarantee
	for _, f := range report.Guarantees {
		asked = append(asked, f.Guarantee)
	}
	if want := []verify.Guarantee{verify.Content, verify.Authentication, verify.NonRepudiation, verify.Time, verify.Order, verify.Enclosures}; !slices.Equal(asked, want) {
		t.Errorf("asked %v", asked)
	}
	digest := evidence.DigestOf([]byte(aeptest.Canonical)).String()
	if at, ok := report.TimeOf(digest); !ok || !at.Time.Equal(jurattest.Start) {
		t.Errorf("times %+v", report.Times)
	}
	if last := report.NotShown[len(report.NotShown)-1]; !strings.Contains(last, "anything in the package but canonical.bin") {
		t.Error(last)
	}
}

// TestEveryRuleOfAPackage breaks one thing at a time, in the package or in the reader's trust.
func TestEveryRuleOfAPackage(t *testing.T) {
	stamped, mock := jurattest.Start, timestamp.NewMock()
	type members = aeptest.Members
	tests := []struct {
		name      string
		change    func(m members, o *verify.Options)
		guarantee verify.Guarantee
		status    verify.Status
		rule      string
		says      string
		outcome   verify.Status
	}{
		{"nothing", func(m members, o *verify.Options) {}, verify.Content, verify.Proved, "", "lacks the NULL", verify.Proved},
		{"with NULL", func(m members, o *verify.Options) { m.Sign(t, mock, true) }, verify.Content, verify.Proved, "", "which is the text of response.txt", verify.Proved},
		{"no trust", func(m members, o *verify.Options) { o.Trust = nil },
			verify.Authentication, verify.NotProved, "unknown-key", "no trust file", verify.NotProved},
		{"a key nobody knows", func(m members, o *verify.Options) { o.Trust.Keys = nil },
			verify.Authentication, verify.NotProved, "unknown-key", "inside the package proves nothing", verify.NotProved},
		{"a key nobody knows, and the content", func(m members, o *verify.Options) { o.Trust.Keys = nil },
			verify.Content, verify.NotProved, "unknown-key", "proves nothing", verify.NotProved},
		{"another name in the trust file", func(m members, o *verify.Options) { o.Trust.Keys[0].Name, o.Trust.Keys[1].Name = "b", "b" },
			verify.Authentication, verify.Proved, "", `agent "b"; no name in the package is signed`, verify.Proved},
		{"a juror's key", func(m members, o *verify.Options) {
			o.Trust.Keys[0].Role, o.Trust.Keys[1].Role = evidence.RoleJuror, evidence.RoleJuror
		}, verify.Authentication, verify.Refuted, "actor", "the key of juror", verify.Refuted},
		{"another hash", func(m members, o *verify.Options) { m["hash.sha256"] = []byte(strings.Repeat("00", 32)) },
			verify.Content, verify.Refuted, "hash", "not the SHA-256 of canonical.bin", verify.Refuted},
		{"another text", func(m members, o *verify.Options) { m["canonical.bin"] = []byte("another text\n") },
			verify.Content, verify.Refuted, "hash", "", verify.Refuted},
		{"another text, and its hash", func(m members, o *verify.Options) {
			kept := m["signature.sig"]
			m["canonical.bin"] = []byte("another text\n")
			m.Sign(t, mock, false)
			m["signature.sig"] = kept
		}, verify.Authentication, verify.Refuted, "signature", "not this key's over canonical.bin", verify.Refuted},
		{"no signature", func(m members, o *verify.Options) { m["signature.sig"] = nil },
			verify.Content, verify.NotProved, "unsigned", "it is not signed", verify.Refuted}, // because the token then stamps something else
		{"no signature and no token", func(m members, o *verify.Options) { m["signature.sig"], m["timestamp.tsr"] = nil, nil },
			verify.Authentication, verify.NotProved, "unsigned", "it is not signed", verify.NotProved},
		{"a text that was not signed", func(m members, o *verify.Options) { m["response.txt"] = []byte("Take the A3.") },
			verify.Content, verify.NotProved, "unbound", "do not rely on response.txt", verify.NotProved},
		{"other line ends in the text", func(m members, o *verify.Options) { m["response.txt"] = []byte(aeptest.Canonical) },
			verify.Content, verify.Proved, "", "", verify.Proved},
		{"other metadata", func(m members, o *verify.Options) { m["metadata.json"] = []byte("{}") },
			verify.Enclosures, verify.NotProved, "unbound", "metadata.json", verify.Proved},
		{"metadata that was signed", func(m members, o *verify.Options) {
			m["canonical.bin"] = []byte(aeptest.Response + "\n" + `{"created_at":"2026-02-01T09:00:00Z","model":"gpt-4.1","response_id":7}`)
			m.Sign(t, mock, false)
			m.SignSecond(t, m["canonical.bin"])
		}, verify.Enclosures, verify.Proved, "", "all that lies in the package is signed", verify.Proved},
		{"a claim that was signed", func(m members, o *verify.Options) {
			m["canonical.bin"] = []byte(aeptest.Canonical + "\n" + `{"claim":"c","confidence":0.850000,"model":"m","policy_version":"1"}`)
			m.Sign(t, mock, false)
			m.SignSecond(t, m["canonical.bin"])
		}, verify.Content, verify.Proved, "", "and a claim about it", verify.Proved},
		{"a further member", func(m members, o *verify.Options) { m["readme.txt"] = nil },
			verify.Enclosures, verify.NotProved, "unbound", "metadata.json", verify.Proved},
		{"no token", func(m members, o *verify.Options) { m["timestamp.tsr"] = nil },
			verify.Time, verify.NotProved, "pending", "timestamp.tsr is empty", verify.NotProved},
		{"a token that is none", func(m members, o *verify.Options) { m["timestamp.tsr"] = []byte("AAAA") },
			verify.Time, verify.NotProved, "authority", "malformed", verify.NotProved},
		{"a token over something else", func(m members, o *verify.Options) { m.Stamp(t, mock, sha256.Sum256([]byte("else"))) },
			verify.Time, verify.Refuted, "token", "imprint", verify.Refuted},
		{"a token over canonical.bin", func(m members, o *verify.Options) { m.Stamp(t, mock, sha256.Sum256([]byte(aeptest.Canonical))) },
			verify.Time, verify.Refuted, "token", "imprint", verify.Refuted},
		{"a token over the hash's digits", func(m members, o *verify.Options) { m.Stamp(t, mock, sha256.Sum256(m["hash.sha256"])) },
			verify.Time, verify.NotProved, "imprint", "not the signature", verify.NotProved},
		{"a forged token over the hash's digits", func(m members, o *verify.Options) {
			m.Stamp(t, mock, sha256.Sum256(m["hash.sha256"]))
			token := []byte(m["timestamp.tsr"])
			m["timestamp.tsr"] = append(token[:len(token)-8:len(token)-8], "AAAAAAA="...)
		}, verify.Time, verify.Refuted, "token", "", verify.Refuted},
		{"an authority nobody trusts", func(m members, o *verify.Options) { o.Trust.Authorities = nil },
			verify.Time, verify.NotProved, "authority", "trusts no time-stamping authority", verify.NotProved},
		{"the mock authority", func(m members, o *verify.Options) { o.UnsafeAllowMock = false },
			verify.Time, verify.NotProved, "authority", "mock", verify.NotProved},
		{"before a later moment", func(m members, o *verify.Options) { o.Before = stamped.Add(time.Second) },
			verify.Before, verify.Proved, "", "existed before", verify.Proved},
		{"before the very moment", func(m members, o *verify.Options) { o.Before = stamped },
			verify.Before, verify.NotProved, "time", "not before", verify.NotProved},
		{"before, and no time", func(m members, o *verify.Options) { o.Before, m["timestamp.tsr"] = stamped.Add(time.Second), nil },
			verify.Before, verify.NotProved, "time", "not proved", verify.NotProved},
		{"a key that was not known yet", func(m members, o *verify.Options) { o.Trust.Keys[0].NotBefore = stamped.Add(time.Second) },
			verify.Time, verify.NotProved, "unknown-key", "is known from", verify.NotProved},
		{"a key of which nobody says since when", func(m members, o *verify.Options) { o.Trust.Keys[0].NotBefore = time.Time{} },
			verify.Time, verify.NotProved, "unknown-key", "not_before", verify.NotProved},
		{"a key nobody knows, and the time", func(m members, o *verify.Options) { o.Trust.Keys = nil },
			verify.Time, verify.NotProved, "unknown-key", "can have been made for a number", verify.NotProved},
		{"a key no longer valid", func(m members, o *verify.Options) { o.Trust.Keys[0].NotAfter = stamped.Add(-time.Second) },
			verify.Authentication, verify.NotProved, "validity", "valid only until", verify.NotProved},
		{"a key with an end, and no time", func(m members, o *verify.Options) {
			o.Trust.Keys[0].NotAfter, m["timestamp.tsr"] = stamped.Add(time.Hour), nil
		}, verify.Authentication, verify.NotProved, "validity", "time of signing", verify.NotProved},
		{"a key that is revoked", func(m members, o *verify.Options) { o.Trust.Keys[0].Revoked = stamped.Add(time.Hour) },
			verify.Authentication, verify.NotProved, "revoked", "no independent authority", verify.NotProved},
		{"a key that was revoked later, by an independent clock", func(m members, o *verify.Options) {
			o.Trust.Keys[0].Revoked, o.Trust.Authorities[0].Clock = stamped.Add(time.Hour), trust.Independent
		}, verify.Authentication, verify.Proved, "", "", verify.Proved},
		{"a second key that was revoked later: its signature is not what was stamped", func(m members, o *verify.Options) {
			o.Trust.Keys[1].Revoked, o.Trust.Authorities[0].Clock = stamped.Add(time.Hour), trust.Independent
		}, verify.Authentication, verify.NotProved, "revoked", "no independent authority", verify.NotProved},
		{"a second key with an end", func(m members, o *verify.Options) { o.Trust.Keys[1].NotAfter = stamped.Add(time.Hour) },
			verify.Authentication, verify.NotProved, "validity", "time of signing", verify.NotProved},
		{"a second key that is revoked", func(m members, o *verify.Options) { o.Trust.Keys[1].Revoked = stamped.Add(time.Hour) },
			verify.Authentication, verify.NotProved, "revoked", "no independent authority", verify.NotProved},
		{"the operator's key", func(m members, o *verify.Options) {}, verify.NonRepudiation, verify.NotProved, "custody", "could have signed", verify.Proved},
		{"the owner's key", func(m members, o *verify.Options) { o.Trust.Keys[0].Custody = trust.ByOwner },
			verify.NonRepudiation, verify.Proved, "", "keeps its key itself", verify.Proved},
		{"no log", func(m members, o *verify.Options) {}, verify.Order, verify.NotProved, "no-log", "in no log", verify.Proved},
		{"a second key nobody knows", func(m members, o *verify.Options) { o.Trust.Keys = o.Trust.Keys[:1] },
			verify.Enclosures, verify.NotProved, "unknown-key", "second signature", verify.Proved},
		{"a second signature of a draft", func(m members, o *verify.Options) { m["pqc_public_key.pem"] = m["public_key.pem"] },
			verify.Enclosures, verify.NotProved, "algorithm", "want ML-DSA-65", verify.Proved},
		{"a second signature over something else", func(m members, o *verify.Options) { m.SignSecond(t, []byte("else")) },
			verify.Authentication, verify.Refuted, "signature", "second signature", verify.Refuted},
		{"a second signature of somebody else", func(m members, o *verify.Options) { o.Trust.Keys[1].Name = "b" },
			verify.Authentication, verify.Refuted, "actor", `agent "b"`, verify.Refuted},
		{"a second signature that must be there, and is", func(m members, o *verify.Options) {
			o.Trust.Keys[0].With = []evidence.KeyID{o.Trust.Keys[1].KeyID}
		}, verify.Authentication, verify.Proved, "", "", verify.Proved},
		{"a second signature that must be there, and was taken away", func(m members, o *verify.Options) {
			o.Trust.Keys[0].With = []evidence.KeyID{o.Trust.Keys[1].KeyID}
			delete(m, "signature_pqc.sig")
		}, verify.Authentication, verify.Refuted, "second-signature", "did not sign", verify.Refuted},
		{"a member that is missing", func(m members, o *verify.Options) { delete(m, "metadata.json") },
			verify.Content, verify.Refuted, "form", "metadata.json is missing", verify.Refuted},
		{"a member that leaves the folder", func(m members, o *verify.Options) { m["../x"] = nil },
			verify.Content, verify.Refuted, "form", "no folder", verify.Refuted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, o := packaged(t)
			tt.change(m, &o)
			report := verified(t, m.Zip(t), o)
			got := ruled(report, tt.guarantee, tt.rule)
			if got.Status != tt.status || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("%+v, want %s by %q with %q\n%+v", got, tt.status, tt.rule, tt.says, report.Details)
			}
			if report.Outcome != tt.outcome {
				t.Errorf("outcome %s, want %s: %+v", report.Outcome, tt.outcome, report.Details)
			}
		})
	}
}

// ruled returns a rule's finding on a guarantee; without a rule, the answer.
func ruled(report *verify.Report, g verify.Guarantee, rule string) verify.Finding {
	answer := report.Of(g)
	if answer.Rule == rule {
		return answer
	}
	i := slices.IndexFunc(report.Details, func(f verify.Finding) bool { return f.Guarantee == g && f.Rule == rule })
	if i < 0 || report.Details[i].Status != answer.Status {
		return answer
	}
	return report.Details[i]
}

// TestEveryByteOfAPackageCounts: an archive with a changed byte either fails or holds the same. Times and versions in
// the headers of an archive claim nothing, so they may change.
func TestEveryByteOfAPackageCounts(t *testing.T) {
	m, o := packaged(t)
	for name := range m {
		if strings.Contains(name, "pqc") {
			delete(m, name) // where most bytes of the archive are base64
		}
	}
	file := m.Zip(t)
	want, err := aep.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	refuted := 0
	for i := range file {
		changed := slices.Clone(file)
		changed[i] ^= 0x21
		report, err := verify.File(changed, o)
		if err != nil || report.Outcome != verify.Proved {
			refuted++
			continue
		}
		got, err := aep.Open(changed)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(aep.Package{})); err != nil || diff != "" {
			t.Errorf("byte %d: %v\n%s", i, err, diff)
		}
	}
	if refuted < len(file)*9/10 {
		t.Errorf("only %d of %d bytes count", refuted, len(file))
	}
}
