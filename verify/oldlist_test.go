package verify_test

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify"
	"jurat/verify/trust"
)

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
		if got := verify.Record(r, o).Of(verify.Time); got.Rule != rule {
			t.Errorf("at %s: %+v, want rule %q", at, got, rule)
		}
	}
}

// TestSealedByOldList: the short form of verification finds the same.
func TestSealedByOldList(t *testing.T) {
	b, o, _ := certifiedBundle(t, 1)
	r := b.Records[0]
	if got := verify.Sealed(r, o); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
	o.CRLs = o.CRLs[:1]
	if got := verify.Sealed(r, o); got.Rule != "revocation" {
		t.Errorf("without the issuing CA's list: %+v", got)
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
