package verify_test

import (
	"crypto/x509/pkix"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// TestRevokedLaterIsTold: of what was revoked after a record existed, the report says when, why, and what shows that the record is older.
func TestRevokedLaterIsTold(t *testing.T) {
	entry := func(list int, serial int64, after time.Duration, reason int, date ...time.Duration) func(w *world) {
		return func(w *world) {
			e := revocationOf(serial, stamped.Add(after), reason)
			for _, d := range date {
				e.ExtraExtensions = append(e.ExtraExtensions, dateExtension(t, 24, stamped.Add(d)))
			}
			w.lists[list].RevokedCertificateEntries = append(w.lists[list].RevokedCertificateEntries, e)
		}
	}
	const hour = time.Hour
	for _, tt := range []struct {
		name   string
		change func(w *world)
		says   string // before the time of the stamp
		want   string // identities[].revoked, without what is the same in all
	}{
		{"its key was compromised", entry(1, 3, hour, 1), `the certificate of "CN=signer" was revoked on 2026-01-01T01:00:00Z for keyCompromise; what it signed existed before, by the stamp of `,
			`{"certificate":"CN=signer","on":"2026-01-01T01:00:00Z","reason":"keyCompromise",`},
		{"it was replaced", entry(1, 3, 2*hour, 4), `revoked on 2026-01-01T02:00:00Z for superseded; what it signed existed before`, `{"certificate":"CN=signer","on":"2026-01-01T02:00:00Z","reason":"superseded",`},
		{"no reason", entry(1, 3, hour, 0), `revoked on 2026-01-01T01:00:00Z for a reason that is not stated; what it signed existed before`, `{"certificate":"CN=signer","on":"2026-01-01T01:00:00Z",`},
		{"stolen earlier, and after the record", entry(1, 3, 2*hour, 1, hour), `revoked on 2026-01-01T02:00:00Z for keyCompromise`,
			`{"certificate":"CN=signer","on":"2026-01-01T02:00:00Z","since":"2026-01-01T01:00:00Z","reason":"keyCompromise",`},
		{"the issuing CA", entry(0, 2, hour, 5), `the certificate of "CN=issuing" was revoked on 2026-01-01T01:00:00Z for cessationOfOperation; what it signed existed before`,
			`{"certificate":"CN=issuing","on":"2026-01-01T01:00:00Z","reason":"cessationOfOperation",`},
		{"a certificate without a subject", func(w *world) {
			w.signer.Subject = pkix.Name{}
			entry(1, 3, hour, 1)(w)
		}, `the certificate of "serial number 3" was revoked on`, `{"certificate":"serial number 3","on":"2026-01-01T01:00:00Z","reason":"keyCompromise",`},
		{"not at all", func(*world) {}, "(not revoked as of ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, o, public := certifiedRecord(t, output("a"))
			w := newWorld()
			w.at = stamped.Add(3 * hour)
			tt.change(w)
			report := verify.Record(r, w.build(t, r, o, public))
			got := report.Of(verify.Authentication)
			if got.Status != verify.Proved || !strings.Contains(got.Reason, tt.says) || strings.Contains(got.Reason, "not revoked as of") != (tt.want == "") {
				t.Errorf("%+v", got)
			}
			checkRevoked(t, report, tt.want)
		})
	}
}

// checkRevoked compares what a report of one signer says of its revocation; "": nothing.
func checkRevoked(t *testing.T, report *verify.Report, want string) {
	t.Helper()
	if len(report.Identities) != 1 {
		t.Fatalf("%+v", report.Identities)
	}
	said, err := json.Marshal(report.Identities[0].Revoked)
	if want == "" {
		want = "null"
	} else {
		existed := must.Get(json.Marshal(report.Times[0].ProvedTime))(t)
		want += `"existed":` + string(existed) + "}"
	}
	if err != nil || string(said) != want {
		t.Errorf("%s, want %s: %v", said, want, err)
	}
}

// TestKeyRevokedLaterIsTold: likewise of a key that the trust file lists.
func TestKeyRevokedLaterIsTold(t *testing.T) {
	for revoked, want := range map[time.Duration]string{time.Hour: `{"on":"2026-01-01T01:00:00Z",`, 0: ""} {
		r, o := standalone(t, output("a"))
		o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
			trusted.Authorities[0].Clock = trust.Independent
			if revoked > 0 {
				trusted.Keys[0].Revoked = stamped.Add(revoked)
			}
		})
		checkRevoked(t, verify.Record(r, o), want)
	}
}

// TestLatestOfSeveralIsTold: of two records of one signer, the stamp that shows both to be older than the revocation.
func TestLatestOfSeveralIsTold(t *testing.T) {
	with := func(id evidence.KeyID, after time.Duration) trust.Identified {
		return trust.Identified{KeyID: id, Revoked: &trust.Revoked{Existed: trust.ProvedTime{Time: stamped.Add(after)}}}
	}
	a, b := evidence.DigestOf([]byte("a")), evidence.DigestOf([]byte("b"))
	for _, order := range [][]time.Duration{{0, 1}, {1, 0}} {
		got := trust.AddIdentified(nil, with(a, order[0]), with(b, 0), with(a, order[1]), trust.Identified{KeyID: a})
		if len(got) != 2 || !got[0].Revoked.Existed.Time.Equal(stamped.Add(1)) {
			t.Errorf("%+v", got)
		}
	}
}
