package verify_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// smallList is a revocation list of a CA made for the test.
func smallList(t testing.TB) []byte {
	t.Helper()
	key, template := newKey(t), caTemplate("lister", 1)
	by := certify(t, template, key.Public(), template, key)
	return signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.Add(time.Hour),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(7, stamped, 1, dateExtension(t, 24, stamped))}}, by, key).Raw
}

func TestParseCRL(t *testing.T) {
	der := smallList(t)
	armoured := pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der})
	for name, doc := range map[string][]byte{"DER": der, "PEM": armoured, "PEM after words": append([]byte("Revoked:\n"), armoured...)} {
		list, err := trust.ParseCRL(doc)
		must.Hold(t, err == nil && len(list.RevokedCertificateEntries) == 1, "%s: %v", name, err)
	}
	for _, tt := range []struct {
		name, says string
		doc        []byte
	}{
		{"nothing", "neither DER nor PEM", nil},
		{"text", "neither DER nor PEM", []byte("hello")},
		{"a certificate", `a "CERTIFICATE"`, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})},
		{"two blocks", "after the PEM block", append(bytes.Clone(armoured), armoured...)},
		{"two lists", "after the list", append(bytes.Clone(der), der...)},
		{"cut short", "malformed", der[:len(der)-1]},
		{"too large", "want at most", append([]byte{0x30}, make([]byte, 16<<20)...)},
	} {
		must.Refuse(t, tt.says, tt.name)(trust.ParseCRL(tt.doc))
	}
}

// FuzzParseCRL: every list that parses can be used without a panic, and unsigned data proves nothing.
func FuzzParseCRL(f *testing.F) {
	der := smallList(f)
	f.Add(der)
	f.Add(pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: der}))
	f.Add([]byte("-----BEGIN X509 CRL-----\n-----END X509 CRL-----\n"))
	f.Fuzz(func(t *testing.T, doc []byte) {
		list, err := trust.ParseCRL(doc)
		if err != nil {
			return
		}
		verify.Record(new(evidence.Record), verify.Options{At: stamped, CRLs: []*x509.RevocationList{list}})
		again, err := trust.ParseCRL(list.Raw)
		must.Need(t, err == nil && bytes.Equal(again.Raw, list.Raw), "Parse accepted the list, but the verifier refuses it: %v", err)
	})
}

// TestListWithoutAnEnd: a list without a next update cannot be shown to be the newest. It counts as of its own time.
func TestListWithoutAnEnd(t *testing.T) {
	for _, old := range []bool{false, true} {
		r, o, public := certifiedRecord(t, output("a"))
		w := newWorld()
		if old {
			outdated(w, 25*time.Hour)
		}
		o = w.build(t, r, o, public)
		o.CRLs[1].NextUpdate = time.Time{}
		if got := verify.Record(r, o).Of(verify.Authentication); (got.Rule == "revocation") == old || !old && !strings.Contains(got.Reason, "how long it is valid") {
			t.Errorf("later than the grace: %v: %+v", old, got)
		}
	}
}

// stampedElsewhere is a record with the token of an authority that has its own root. Its time is one hour after the
// mock's.
func stampedElsewhere(t *testing.T) (r *evidence.Record, o verify.Options, root *x509.Certificate, rootKey *ecdsa.PrivateKey) {
	t.Helper()
	r, o = standalone(t, output("a"))
	rootKey = newKey(t)
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(5), NotBefore: stamped, NotAfter: stamped.AddDate(1, 0, 0)}
	root, err := timestamp.NewRoot(config)
	must.Do(t, err)
	key := newKey(t)
	config.Key, config.Serial = key, big.NewInt(6)
	certificate, err := timestamp.NewCertificate(config, root, rootKey)
	must.Do(t, err)
	authority, err := timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: certificate, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return stamped.Add(time.Hour) }})
	must.Do(t, err)
	token := must.Get(authority.Issue(&timestamp.Request{Imprint: r.Imprint(), CertReq: true}))(t)
	r.Timestamps = []evidence.Timestamp{{Kind: evidence.RFC3161, Token: token}}
	o.At = stamped.Add(24 * time.Hour)
	o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
		trusted.Authorities = []trust.Authority{{Name: "elsewhere", Certificate: root.Raw, Clock: trust.Independent, Revocation: trust.ByCRL}}
	})
	return r, o, root, rootKey
}

// TestRevokedAuthority: a token stays valid if it is older than the revocation and the revocation reason does not mean
// that the key was stolen.
func TestRevokedAuthority(t *testing.T) {
	before, after := stamped.Add(30*time.Minute), stamped.Add(2*time.Hour) // the token's time is between both
	entry := func(when time.Time, reason int) []x509.RevocationListEntry {
		return []x509.RevocationListEntry{revocationOf(6, when, reason)}
	}
	none := []x509.RevocationListEntry{}
	tests := []struct {
		name    string
		entries []x509.RevocationListEntry // nil: there is no list
		change  func(list *x509.RevocationList, o *verify.Options)
		rule    string // "": the time is proved
		says    string
	}{
		{"not revoked", none, nil, "", "authorities that the reader trusts"},
		{"another one revoked", []x509.RevocationListEntry{revocationOf(7, before, 1)}, nil, "", ""},
		{"no list", nil, nil, "revocation", "no revocation list of"},
		{"a stale list", none, func(_ *x509.RevocationList, o *verify.Options) { o.At = stamped.AddDate(0, 6, 0) }, "revocation", "stale"},
		{"replaced afterwards", entry(after, 4), nil, "", ""},
		{"no longer the operator's, afterwards", entry(after, 3), nil, "", ""},
		{"closed afterwards", entry(after, 5), nil, "", ""},
		{"closed before", entry(before, 5), nil, "revoked", "from 2026-01-01T00:30:00Z on"},
		{"closed when it stamped", entry(stamped.Add(time.Hour), 5), nil, "revoked", "from 2026-01-01T01:00:00Z on"},
		{"key stolen afterwards", entry(after, 1), nil, "revoked", "makes all its tokens worthless"},
		{"the CA's key stolen afterwards", entry(after, 2), nil, "revoked", "worthless"},
		{"on hold", entry(after, 6), nil, "revoked", "worthless"},
		{"for no stated reason, afterwards", entry(after, -1), nil, "revoked", "worthless"},
		{"unspecified, and said so, afterwards", entry(after, 9), func(list *x509.RevocationList, _ *verify.Options) { list.RevokedCertificateEntries[0].ReasonCode = 0 }, "", ""},
		{"not asked", entry(before, 1), func(_ *x509.RevocationList, o *verify.Options) { o.Trust.Authorities[0].Revocation = trust.NotAsked }, "", "was not checked"},
		{"not asked, without a word", nil, func(_ *x509.RevocationList, o *verify.Options) { o.Trust.Authorities[0].Revocation = "" }, "", "was not checked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, o, root, rootKey := stampedElsewhere(t)
			var list *x509.RevocationList
			if tt.entries != nil {
				list = signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(3 * time.Hour),
					NextUpdate: stamped.AddDate(0, 1, 0), RevokedCertificateEntries: tt.entries}, root, rootKey)
				o.CRLs = []*x509.RevocationList{list}
			}
			if tt.change != nil {
				tt.change(list, &o)
			}
			got := verify.Record(r, o).Of(verify.Time)
			must.Hold(t, got.Rule == tt.rule && (got.Status == verify.Proved) == (tt.rule == "") && strings.Contains(got.Reason, tt.says),
				"%+v; want rule %q, saying %q", got, tt.rule, tt.says)
		})
	}
}

// TestRevokedAuthorityBesideAnother: a revoked authority does not weaken another authority's token.
func TestRevokedAuthorityBesideAnother(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	other, otherRoot := laterToken(t, r)
	r.Timestamps = append(r.Timestamps, other)
	o.Trust = withAuthority(o.Trust, otherRoot)
	o.CRLs = []*x509.RevocationList{signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.AddDate(0, 1, 0),
		RevokedCertificateEntries: []x509.RevocationListEntry{revocationOf(6, stamped, 1)}}, root, rootKey)}
	report := verify.Record(r, o)
	at, ok := report.TimeOf(r.Payload.RecordID)
	must.Hold(t, ok && at.Authority == "second" && report.Of(verify.Time).Status == verify.Proved, "%+v, %+v", at, report.Of(verify.Time))
}

// TestAuthorityKnownTwice: the checker tries each authority in turn, until one accepts the token.
func TestAuthorityKnownTwice(t *testing.T) {
	r, o, _, _ := stampedElsewhere(t)
	token := must.Get(timestamp.Parse(r.Timestamps[0].Token))(t)
	itself := trust.Authority{Name: "itself", Certificate: token.UnverifiedInfo().Certificates[0].Raw, Clock: trust.Independent}
	for _, reverse := range []bool{false, true} {
		o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
			trusted.Authorities = append(trusted.Authorities[:1:1], itself) // the first has no list that shows that it is not revoked
			if reverse {
				slices.Reverse(trusted.Authorities)
			}
		})
		report := verify.Record(r, o)
		at, ok := report.TimeOf(r.Payload.RecordID)
		must.Hold(t, ok && at.Authority == "itself" && report.Of(verify.Time).Status == verify.Proved, "%+v, %+v", at, report.Of(verify.Time))
	}
}

// TestWeakListSignature: a list with a weak digest proves nothing.
func TestWeakListSignature(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	template := &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped, NextUpdate: stamped.AddDate(0, 1, 0)}
	for _, tt := range []struct {
		algorithm x509.SignatureAlgorithm
		rule      string
	}{{x509.ECDSAWithSHA256, ""}, {x509.ECDSAWithSHA1, "revocation"}} {
		template.SignatureAlgorithm = tt.algorithm
		o.CRLs = []*x509.RevocationList{signList(t, template, root, rootKey)}
		got := verify.Record(r, o).Of(verify.Time)
		must.Hold(t, got.Rule == tt.rule, "%s: %+v", tt.algorithm, got)
	}
}

// TestKeyRevoked: after the revocation date a thief may have the key. Then only an independent clock shows that the
// record is older.
func TestKeyRevoked(t *testing.T) {
	for _, tt := range []struct {
		name    string
		clock   trust.Clock
		revoked time.Time
		stamps  bool
		proved  bool
	}{
		{"afterwards", trust.Independent, stamped.Add(time.Second), true, true},
		{"just then", trust.Independent, stamped, true, false},
		{"before", trust.Independent, stamped.Add(-time.Second), true, false},
		{"afterwards, by the operator's clock", trust.OperatorClock, stamped.Add(time.Hour), true, false},
		{"afterwards, without a time", trust.Independent, stamped.Add(time.Hour), false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, o := standalone(t, output("a"))
			o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) {
				trusted.Keys[0].Revoked, trusted.Keys[0].Custody = tt.revoked, trust.ByOwner
				trusted.Authorities[0].Clock = tt.clock
			})
			if !tt.stamps {
				r.Timestamps = nil
			}
			report := verify.Record(r, o)
			for _, g := range []verify.Guarantee{verify.Authentication, verify.NonRepudiation} {
				got := report.Of(g)
				must.Hold(t, (!tt.proved || got.Status == verify.Proved) && (tt.proved || got.Status == verify.NotProved && got.Rule == "revoked"), "%+v", got)
			}
			got := report.Of(verify.Content)
			must.Hold(t, got.Status == verify.Proved, "a revoked key must not change the answer on the content: %+v", got)
		})
	}
}

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
	must.Need(t, len(report.Identities) == 1, "%+v", report.Identities)
	said, err := json.Marshal(report.Identities[0].Revoked)
	if want == "" {
		want = "null"
	} else {
		existed := must.Get(json.Marshal(report.Times[0].ProvedTime))(t)
		want += `"existed":` + string(existed) + "}"
	}
	must.Hold(t, err == nil && string(said) == want, "%s, want %s: %v", said, want, err)
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
		must.Hold(t, len(got) == 2 && got[0].Revoked.Existed.Time.Equal(stamped.Add(1)), "%+v", got)
	}
}

// outdated lets the reader's lists begin so long after the record and be good for an hour, and checks a month after the record.
func outdated(w *world, after time.Duration) {
	for _, list := range w.lists {
		list.ThisUpdate, list.NextUpdate = stamped.Add(after), stamped.Add(after+time.Hour)
	}
	w.at = stamped.AddDate(0, 1, 0)
}

// oldListCases are about lists that are out of date when the reader checks: they count as of their time.
func oldListCases(t *testing.T) []certificateCase {
	proved, not := verify.Proved, verify.NotProved
	hour, day := time.Hour, 24*time.Hour
	old := func(after time.Duration, changes ...func(w *world)) func(*world) {
		return func(w *world) {
			outdated(w, after)
			for _, change := range changes {
				change(w)
			}
		}
	}
	names := func(entries ...x509.RevocationListEntry) func(*world) {
		return func(w *world) { w.lists[1].RevokedCertificateEntries = entries }
	}
	grace := func(d time.Duration) func(*world) {
		return func(w *world) { w.finish = func(_ *world, _ *evidence.Record, o *verify.Options) { o.Grace = d } }
	}
	// beside gives the reader a second list of the issuing CA, from so long after the record on and good for so long.
	beside := func(after, good time.Duration, entries []x509.RevocationListEntry, extensions ...pkix.Extension) func(*world) {
		return func(w *world) {
			w.finish = func(w *world, _ *evidence.Record, o *verify.Options) {
				template := *w.lists[1]
				template.ThisUpdate, template.NextUpdate, template.RevokedCertificateEntries, template.ExtraExtensions = stamped.Add(after), stamped.Add(after+good), entries, extensions
				o.CRLs = append(o.CRLs, signList(t, &template, w.made.issuing, w.made.issuingKey))
			}
		}
	}
	return slices.Concat([]certificateCase{
		{"old lists", old(day + hour), proved, "", "(not revoked as of 2026-01-02T01:00:00Z)", false},
		{"old lists at the end of the grace", old(day), not, "revocation", "is stale", false},
		{"old lists just after the grace", old(day + time.Second), proved, "", "", false},
		{"old lists of before the record", old(-hour), not, "revocation", "only one of after 2026-01-02T00:00:00Z", false},
		{"old lists and a shorter grace", old(2*hour, grace(hour)), proved, "", "", false},
		{"old lists and a longer grace", old(25*hour, grace(26*hour)), not, "revocation", "is stale", false},
		{"old lists from after the moment of checking", old(32 * day), not, "revocation", "begins after the moment", false},
		{"old lists from the moment of checking on", old(31 * day), proved, "", "", false},
		{"old lists and no moment of checking", old(day+hour, func(w *world) { w.at = time.Time{} }), not, "revocation", "no moment of checking", false},
		{"old lists and the operators clock alone", old(day+hour, func(w *world) { w.clock = trust.OperatorClock }), not, "revocation", "is stale", false},
		{"old lists of others in the issuers names", old(day+hour, func(w *world) { w.forgeLists = true }), not, "revocation", "not signed by the issuer", false},
		{"an old list of the root alone", old(day+hour, func(w *world) { w.lists = w.lists[:1] }), not, "revocation", `"CN=issuing"`, false},
		{"an old list that names it from before", old(day+hour, names(named(stamped.Add(-hour), 1)...)), not, "revoked", "2025-12-31T23:00:00Z", false},
		{"an old list that names it from afterwards", old(day+hour, names(named(stamped.Add(hour), 1)...)), proved, "", "", false},
		{"an old list that names it from afterwards as stolen before", old(day+hour, names(revocationOf(3, stamped.Add(hour), 1, dateExtension(t, 24, stamped.Add(-hour))))),
			not, "revoked", "2025-12-31T23:00:00Z", false},
		{"an old delta list", old(day+hour, func(w *world) {
			w.lists[1].ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
		}), not, "revocation", "delta", false},
		{"an old list signed with SHA-1", old(day+hour, func(w *world) { w.lists[1].SignatureAlgorithm = x509.ECDSAWithSHA1 }), not, "revocation", "not signed by", false},
		{"an old list that is newer and names it", old(day+hour, beside(2*day, hour, named(stamped.Add(-hour), 1))), not, "revoked", "", false},
		{"an old list that is older and names it on hold", old(day+hour, beside(day+time.Minute, hour, named(stamped.Add(-hour), 6))), proved, "", "", false},
		{"old lists of one moment that contradict each other", old(day+hour, beside(day+hour, hour, named(stamped.Add(hour), 1))), not, "revocation", "contradicts", false},
		{"old lists of one moment that agree", old(day+hour, beside(day+hour, hour, nil, extension(false))), proved, "", "", false},
		{"an older list that is still good beside old ones", old(day+hour, beside(hour, 40*day, named(stamped.Add(-hour), 6))), proved, "", "", false},
		{"a newer list that is good beside old ones", old(day+hour, beside(30*day, 5*day, named(stamped.Add(-hour), 1))), not, "revoked", "", false},
		{"a newer list that need not name it beside an old one", old(day+hour, func(w *world) { w.signer.NotAfter = stamped.Add(2 * day) }, beside(3*day, hour, nil)),
			proved, "", "(not revoked as of 2026-01-02T01:00:00Z)", false},
		{"a list for which no step is left beside an older one", func(w *world) { w.finish = spendSteps(t) }, not, "revoked", "2025-12-31T23:00:00Z", false},
	}, shortLivedCases())
}

// spendSteps leaves a record no step for the reader's newer list. The older one was checked before, for another certificate of the same key, which it
// revokes. Of that one the newer list need not say anything, because it expired between both. A search that was broken off clears nobody: the older list
// must not count for the record's own certificate. Had the newer one been checked, the record would be proved.
func spendSteps(t *testing.T) func(*world, *evidence.Record, *verify.Options) {
	return func(w *world, r *evidence.Record, o *verify.Options) {
		const day = 24 * time.Hour
		list := func(after time.Duration, entries ...x509.RevocationListEntry) *x509.RevocationList {
			return signList(t, &x509.RevocationList{Number: big.NewInt(1), ThisUpdate: stamped.Add(after), NextUpdate: stamped.Add(after + day), RevokedCertificateEntries: entries},
				w.made.issuing, w.made.issuingKey)
		}
		other := *w.signer
		other.SerialNumber, other.NotAfter = big.NewInt(4), stamped.Add(3*day)
		r.Certificates = slices.Insert(r.Certificates, 0, certify(t, &other, w.made.signer.PublicKey, w.made.issuing, w.made.issuingKey).Raw)
		o.At, o.CRLs = stamped.Add(4*day), []*x509.RevocationList{list(2*day, revocationOf(4, stamped.Add(-time.Hour), 1)), list(4 * day)}
		o.Trust = changedTrust(t, o.Trust, func(trusted *trust.Trust) { trusted.CAs[0].Certificate = w.made.issuing.Raw })

		// Each of the two paths takes 63 steps, the token and the older list one each, and a record may take 128.
		mazeOfCAs(t, 3)(w, r, o)
		elsewhere, key := caTemplate("elsewhere", 1), newKey(t)
		for serial := range int64(2) {
			r.Certificates = append(r.Certificates, certify(t, caTemplate("issuing", 200+serial), key.Public(), elsewhere, key).Raw)
		}
	}
}

// certifiedBundle is a bundle of n records of one agent, for whom only a CA of the reader's vouches, by lists of two days later.
func certifiedBundle(t testing.TB, n int) (*evidence.Bundle, verify.Options, *world) {
	t.Helper()
	h := jurattest.New(t)
	var records []*evidence.Record
	for range n {
		records = append(records, h.Seal(t, output("a")))
	}
	b := must.Get(h.Ledger.Prove(t.Context(), records...))(t)
	o := h.Options(t)
	public := must.Get(evidence.ParsePublicKey(o.Trust.Key(b.Records[0].Payload.Signers[0].KeyID).PublicKey))(t)
	w := newWorld()
	outdated(w, 48*time.Hour)
	o = w.build(t, b.Records[0], o, public)
	for _, r := range b.Records {
		r.Certificates = b.Records[0].Certificates
	}
	return b, o, w
}

// TestOldListForAuthority: a list that is out of date says nothing of the certificates of time-stamping authorities.
func TestOldListForAuthority(t *testing.T) {
	r, o, root, rootKey := stampedElsewhere(t)
	list := signList(t, &x509.RevocationList{Number: caTemplate("", 1).SerialNumber, ThisUpdate: stamped.AddDate(0, 0, 3), NextUpdate: stamped.AddDate(0, 1, 0)}, root, rootKey)
	o.CRLs = []*x509.RevocationList{list}
	for at, rule := range map[time.Time]string{stamped.AddDate(0, 0, 4): "", stamped.AddDate(0, 2, 0): "revocation"} {
		o.At = at
		got := verify.Record(r, o).Of(verify.Time)
		must.Hold(t, got.Rule == rule, "at %s: %+v, want rule %q", at, got, rule)
	}
}

// shortLivedCases are about certificates that end too soon to be revoked.
func shortLivedCases() []certificateCase {
	proved, not := verify.Proved, verify.NotProved
	const week = 7 * 24 * time.Hour
	// short leaves the issuing CA's list out, which would say how it is with the signer's certificate.
	short := func(revocation trust.Revocation, change func(c *x509.Certificate)) func(*world) {
		return func(w *world) {
			w.trusted.Revocation = revocation
			w.lists = w.lists[:1]
			w.signer.NotBefore, w.signer.NotAfter = stamped.Add(-time.Hour), stamped.Add(week-time.Hour)
			w.signer.ExtraExtensions = append(w.signer.ExtraExtensions, noRevAvail([]byte{5, 0}))
			change(w.signer)
		}
	}
	same := func(*x509.Certificate) {}
	return []certificateCase{
		{"short-lived", short(trust.ShortLived, same), proved, "", "", false},
		{"short-lived and asked", short(trust.ByCRL, same), not, "revocation", `"CN=issuing"`, false},
		{"a second too long to be short-lived", short(trust.ShortLived, func(c *x509.Certificate) { c.NotAfter = c.NotAfter.Add(time.Second) }), not, "revocation", "", false},
		{"short-lived without saying so", short(trust.ShortLived, func(c *x509.Certificate) { c.ExtraExtensions = nil }), not, "revocation", "", false},
		{"short-lived in other words", short(trust.ShortLived, func(c *x509.Certificate) { c.ExtraExtensions[0] = noRevAvail([]byte{0x30, 0}) }), not, "revocation", "", false},
		{"short-lived and names a list", short(trust.ShortLived, func(c *x509.Certificate) { c.CRLDistributionPoints = []string{"http://ca.example/list"} }), not, "revocation", "", false},
		{"short-lived and names a responder", short(trust.ShortLived, func(c *x509.Certificate) { c.OCSPServer = []string{"http://ca.example/ocsp"} }), not, "revocation", "", false},
		{"short-lived by an issuing CA of which nothing is known", func(w *world) {
			short(trust.ShortLived, same)(w)
			w.lists = nil
			w.issuing.ExtraExtensions = []pkix.Extension{noRevAvail([]byte{5, 0})}
			w.issuing.NotBefore, w.issuing.NotAfter = stamped.Add(-time.Hour), stamped.Add(time.Hour)
		}, not, "revocation", `"CN=root"`, false},
	}
}

func noRevAvail(value []byte) pkix.Extension {
	return pkix.Extension{Id: asn1.ObjectIdentifier{2, 5, 29, 56}, Value: value}
}
