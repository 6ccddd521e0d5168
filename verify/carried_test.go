package verify_test

import (
	"crypto"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"slices"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/verify"
	"jurat/verify/trust"
)

// carrying lets the record carry what says how it is with revocation, and the reader bring nothing. Its lists begin so long after the record.
func carrying(w *world, after time.Duration) {
	for _, list := range w.lists {
		list.ThisUpdate, list.NextUpdate = stamped.Add(after), stamped.Add(after+time.Hour)
	}
	w.at = stamped.AddDate(0, 1, 0)
	w.finish = func(w *world, r *evidence.Record, o *verify.Options) { carry(r, o) }
}

// carry moves the reader's lists into the record.
func carry(r *evidence.Record, o *verify.Options) {
	for _, list := range o.CRLs {
		r.Revocations = append(r.Revocations, evidence.Revocation{Kind: evidence.CRL, Value: list.Raw})
	}
	o.CRLs = nil
}

func named(when time.Time, reason int) []x509.RevocationListEntry {
	return []x509.RevocationListEntry{revocationOf(3, when, reason)}
}

// carriedCases are about what a record carries about the revocation of its certificates.
func carriedCases(t *testing.T) []certificateCase {
	proved, not := verify.Proved, verify.NotProved
	hour, day := time.Hour, 24*time.Hour
	// with changes a world in which lists are carried from a day and an hour after the record.
	with := func(change func(w *world, r *evidence.Record, o *verify.Options)) func(*world) {
		return func(w *world) {
			carrying(w, day+hour)
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				carry(r, o)
				change(w, r, o)
			}
		}
	}
	// another is a second list of the issuing CA.
	another := func(w *world, after time.Duration, entries []x509.RevocationListEntry, extensions ...pkix.Extension) []byte {
		template := *w.lists[1]
		template.ThisUpdate, template.NextUpdate, template.RevokedCertificateEntries, template.ExtraExtensions = stamped.Add(after), stamped.Add(after+hour), entries, extensions
		return signList(t, &template, w.made.issuing, w.made.issuingKey).Raw
	}
	add := func(kind evidence.RevocationKind, r *evidence.Record, value []byte) {
		r.Revocations = append(r.Revocations, evidence.Revocation{Kind: kind, Value: value})
	}
	// instead carries a response in the place of the issuing CA's list.
	instead := func(change func(w *world, d *ocspDraft)) func(*world) {
		return with(func(w *world, r *evidence.Record, o *verify.Options) {
			d := w.good(stamped.Add(day + hour))
			change(w, d)
			r.Revocations = r.Revocations[:1]
			add(evidence.OCSP, r, d.build(t))
		})
	}
	cases := []certificateCase{
		{"carried lists", func(w *world) { carrying(w, day+hour) }, proved, "", "(not revoked as of 2026-01-02T01:00:00Z)", false},
		{"carried lists at the end of the grace", func(w *world) { carrying(w, day) }, not, "revocation", "too old", false},
		{"carried lists just after the grace", func(w *world) { carrying(w, day+time.Second) }, proved, "", "", false},
		{"carried lists of before the record", func(w *world) { carrying(w, -hour) }, not, "revocation", "too old", false},
		{"carried lists and a shorter grace", func(w *world) {
			carrying(w, 2*hour)
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { carry(r, o); o.Grace = hour }
		}, proved, "", "", false},
		{"carried lists and a longer grace", func(w *world) {
			carrying(w, 25*hour)
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) { carry(r, o); o.Grace = 26 * hour }
		}, not, "revocation", "too old", false},
		{"carried lists from after the moment of checking", func(w *world) { carrying(w, 32*day) }, not, "revocation", "begins after the moment", false},
		{"carried lists from just after the moment of checking", func(w *world) { carrying(w, 31*day+trust.MaxSkew) }, proved, "", "", false},
		{"carried lists and no moment of checking", func(w *world) { carrying(w, day+hour); w.at = time.Time{} }, not, "revocation", "no moment of checking", false},
		{"carried lists and the operators clock alone", func(w *world) { carrying(w, day+hour); w.clock = trust.OperatorClock }, not, "revocation", "no revocation list of", false},
		{"carried lists of others in the issuers names", func(w *world) { carrying(w, day+hour); w.forgeLists = true }, not, "revocation", "not signed by the issuer", false},
		{"a carried list of the root alone", func(w *world) { carrying(w, day+hour); w.lists = w.lists[:1] }, not, "revocation", `"CN=issuing"`, false},
		{"a carried list that names it from before", func(w *world) {
			carrying(w, day+hour)
			w.lists[1].RevokedCertificateEntries = named(stamped.Add(-hour), 1)
		}, not, "revoked", "2025-12-31T23:00:00Z", false},
		{"a carried list that names it from afterwards", func(w *world) {
			carrying(w, day+hour)
			w.lists[1].RevokedCertificateEntries = named(stamped.Add(hour), 1)
		}, proved, "", "", false},
		{"a carried list that names it from afterwards as stolen before", func(w *world) {
			carrying(w, day+hour)
			w.lists[1].RevokedCertificateEntries = []x509.RevocationListEntry{revocationOf(3, stamped.Add(hour), 1, dateExtension(t, 24, stamped.Add(-hour)))}
		}, not, "revoked", "2025-12-31T23:00:00Z", false},
		{"a carried delta list", func(w *world) {
			carrying(w, day+hour)
			w.lists[1].ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 27}, Critical: true, Value: []byte{2, 1, 1}}}
		}, not, "revocation", "delta", false},
		{"a carried list signed with SHA-1", func(w *world) { carrying(w, day+hour); w.lists[1].SignatureAlgorithm = x509.ECDSAWithSHA1 }, not, "revocation", "not signed by", false},
		{"a carried list that is newer and names it", with(func(w *world, r *evidence.Record, o *verify.Options) {
			add(evidence.CRL, r, another(w, 2*day, named(stamped.Add(-hour), 1)))
		}), not, "revoked", "", false},
		{"a carried list that is older and names it on hold", with(func(w *world, r *evidence.Record, o *verify.Options) {
			add(evidence.CRL, r, another(w, day+time.Minute, named(stamped.Add(-hour), 6)))
		}), proved, "", "", false},
		{"carried lists of one moment that contradict each other", with(func(w *world, r *evidence.Record, o *verify.Options) {
			add(evidence.CRL, r, another(w, day+hour, named(stamped.Add(hour), 1)))
		}), not, "revocation", "contradicts", false},
		{"carried lists of one moment that agree", with(func(w *world, r *evidence.Record, o *verify.Options) {
			add(evidence.CRL, r, another(w, day+hour, nil, extension(false)))
		}), proved, "", "", false},
		{"an older list of the readers beside carried ones", with(func(w *world, r *evidence.Record, o *verify.Options) {
			template := *w.lists[1]
			template.ThisUpdate, template.NextUpdate, template.RevokedCertificateEntries = stamped.Add(hour), w.at.Add(hour), named(stamped.Add(-hour), 6)
			o.CRLs = []*x509.RevocationList{signList(t, &template, w.made.issuing, w.made.issuingKey)}
		}), proved, "", "", false},
		{"a newer list of the readers beside carried ones", with(func(w *world, r *evidence.Record, o *verify.Options) {
			template := *w.lists[1]
			template.ThisUpdate, template.NextUpdate, template.RevokedCertificateEntries = w.at.Add(-hour), w.at.Add(hour), named(stamped.Add(-hour), 1)
			o.CRLs = []*x509.RevocationList{signList(t, &template, w.made.issuing, w.made.issuingKey)}
		}), not, "revoked", "", false},
		{"a newer list that need not name it beside a carried one", func(w *world) {
			carrying(w, day+hour)
			w.signer.NotAfter = stamped.Add(2 * day)
			finish := w.finish
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				finish(w, r, o)
				add(evidence.CRL, r, another(w, 3*day, nil))
			}
		}, proved, "", "(not revoked as of 2026-01-02T01:00:00Z)", false},
		{"carried junk beside carried lists", with(func(w *world, r *evidence.Record, o *verify.Options) {
			r.Revocations = append([]evidence.Revocation{{Kind: evidence.CRL, Value: []byte("junk")}, {Kind: evidence.OCSP, Value: r.Revocations[1].Value[:20]},
				{Kind: evidence.OCSP, Value: append([]byte{0x30}, r.Revocations[0].Value...)}}, r.Revocations...)
		}), proved, "", "", false},
		{"a carried list by the name of a response", with(func(w *world, r *evidence.Record, o *verify.Options) { r.Revocations[1].Kind = evidence.OCSP }), not, "revocation", "no revocation list", false},

		// Responses.
		{"a carried response", instead(func(w *world, d *ocspDraft) {}), proved, "", "(not revoked as of 2026-01-02T01:00:00Z)", false},
		{"a carried response of before the record", instead(func(w *world, d *ocspDraft) { d.from = stamped.Add(-hour); d.produced = stamped.Add(2 * day) }), not, "revocation", "too old", false},
		{"a carried response that does not say until when it is good", instead(func(w *world, d *ocspDraft) { d.until = time.Time{} }), proved, "", "", false},
		{"a carried response that names responder and issuer otherwise", instead(func(w *world, d *ocspDraft) { d.byName, d.hash = true, crypto.SHA256 }), proved, "", "", false},
		{"a carried response about another certificate", instead(func(w *world, d *ocspDraft) { d.certificate = w.made.issuing }), not, "revocation", "no revocation list", false},
		{"a carried response about another issuers certificate", instead(func(w *world, d *ocspDraft) { d.issuer = w.made.root }), not, "revocation", "no revocation list", false},
		{"a carried response that somebody else signed", instead(func(w *world, d *ocspDraft) { d.signer = newKey(t) }), not, "revocation", "not signed by the issuer", false},
		{"a carried response signed with SHA-1", instead(func(w *world, d *ocspDraft) { d.weak = true }), not, "revocation", "algorithm is not accepted", false},
		{"a carried response that says revoked from before", instead(func(w *world, d *ocspDraft) { d.status, d.revoked, d.reason = 1, stamped.Add(-hour), 1 }), not, "revoked", "", false},
		{"a carried response that says revoked from afterwards", instead(func(w *world, d *ocspDraft) { d.status, d.revoked = 1, stamped.Add(hour) }), proved, "", "", false},
		{"a carried response that says revoked from afterwards as stolen before", instead(func(w *world, d *ocspDraft) {
			d.status, d.revoked, d.single = 1, stamped.Add(hour), []pkix.Extension{dateExtension(t, 24, stamped.Add(-hour))}
		}), not, "revoked", "2025-12-31T23:00:00Z", false},
		{"a carried response for delta lists", instead(func(w *world, d *ocspDraft) { d.status, d.revoked, d.reason = 1, stamped.Add(hour), 8 }), not, "revocation", "removeFromCRL", false},
		{"a carried response that does not know", instead(func(w *world, d *ocspDraft) { d.status = 2 }), not, "revocation", "does not know", false},
		{"a carried response with its answer twice", instead(func(w *world, d *ocspDraft) { d.twice = true }), not, "revocation", "twice", false},
		{"a carried response that was signed before it counts", instead(func(w *world, d *ocspDraft) { d.produced = d.from.Add(-trust.MaxSkew - time.Second) }), not, "revocation", "signed before", false},
		{"a carried response that was signed in the same minutes", instead(func(w *world, d *ocspDraft) { d.produced = d.from.Add(-trust.MaxSkew) }), proved, "", "", false},
		{"a carried response with a critical extension", instead(func(w *world, d *ocspDraft) { d.extensions = []pkix.Extension{extension(true)} }), not, "revocation", "critical", false},
		{"a carried answer with a critical extension", instead(func(w *world, d *ocspDraft) { d.single = []pkix.Extension{extension(true)} }), not, "revocation", "critical", false},
		{"a carried response with an unknown extension", instead(func(w *world, d *ocspDraft) { d.extensions = []pkix.Extension{extension(false)} }), proved, "", "", false},
		{"a carried response with an extension twice", instead(func(w *world, d *ocspDraft) { d.single = []pkix.Extension{extension(false), extension(false)} }), not, "revocation", "twice", false},
		{"a carried response about a certificate that has ended", func(w *world) {
			instead(func(w *world, d *ocspDraft) {})(w)
			w.signer.NotAfter = stamped.Add(hour)
		}, not, "revocation", "need not know any longer", false},
		{"a carried response that still knows what has ended", func(w *world) {
			cutoff, err := asn1.MarshalWithParams(stamped.UTC(), "generalized")
			if err != nil {
				t.Fatal(err)
			}
			instead(func(w *world, d *ocspDraft) {
				d.single = []pkix.Extension{{Id: asn1.ObjectIdentifier{1, 3, 6, 1, 5, 5, 7, 48, 1, 6}, Value: cutoff}}
			})(w)
			w.signer.NotAfter = stamped.Add(hour)
		}, proved, "", "", false},
		{"a carried response and a list of one moment that contradict each other", with(func(w *world, r *evidence.Record, o *verify.Options) {
			d := w.good(stamped.Add(day + hour))
			d.status, d.revoked = 1, stamped.Add(hour)
			add(evidence.OCSP, r, d.build(t))
		}), not, "revocation", "contradicts", false},

		// Responders.
		{"a carried response by a responder", instead(func(w *world, d *ocspDraft) { w.delegated(t, d, nil) }), proved, "", "", false},
		{"a carried response by a responder for any purpose", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageAny} })
		}), not, "revocation", "OCSPSigning", false},
		{"a carried response by a responder that may be revoked", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.ExtraExtensions = nil })
		}), not, "revocation", "nocheck", false},
		{"a carried response by a responder whose certificate had ended", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.NotAfter = d.from.Add(-time.Second) })
		}), not, "revocation", "was not valid when it signed", false},
		{"a carried response by a responder for encryption", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageKeyEncipherment })
		}), not, "revocation", "key usage", false},
		{"a carried response by a responder with a critical extension", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.ExtraExtensions = append(c.ExtraExtensions, extension(true)) })
		}), not, "revocation", "critical extension", false},
		{"a carried response by a responder of the root", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, func(c *x509.Certificate) { c.Subject.CommonName = "of the root" })
		}), not, "revocation", "not certified by the issuer", false},
		{"a carried response by a responder that is not in it", instead(func(w *world, d *ocspDraft) {
			w.delegated(t, d, nil)
			d.with = nil
		}), not, "revocation", "is not in it", false},
		{"a carried response by a responder that the issuer did not certify", instead(func(w *world, d *ocspDraft) {
			issuing := *w
			issuing.made.issuingKey = newKey(t)
			issuing.delegated(t, d, nil)
		}), not, "revocation", "not signed by the issuer", false},
	}
	return slices.Concat(cases, ownResponseCases(t), shortLivedCases())
}

// ownResponseCases are about responses that the reader brings.
func ownResponseCases(t *testing.T) []certificateCase {
	proved, not := verify.Proved, verify.NotProved
	own := func(change func(w *world, d *ocspDraft)) func(*world) {
		return func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				d := w.good(w.at.Add(-time.Minute))
				change(w, d)
				o.CRLs, o.OCSPs = o.CRLs[:1], []*trust.Response{parsedOCSP(t, d.build(t))}
			}
		}
	}
	return []certificateCase{
		{"a response", own(func(w *world, d *ocspDraft) {}), proved, "", "not revoked as of", false},
		{"a response of before the record that is still good", own(func(w *world, d *ocspDraft) { d.from = stamped.Add(-time.Hour); d.until = w.at }), proved, "", "", false},
		{"a stale response", own(func(w *world, d *ocspDraft) { d.until = w.at.Add(-time.Second) }), not, "revocation", "stale", false},
		{"a response that does not say until when it is good", own(func(w *world, d *ocspDraft) { d.until = time.Time{} }), not, "revocation", "how long it is valid", false},
		{"a response from after the moment of checking", own(func(w *world, d *ocspDraft) { d.from = w.at.Add(time.Second) }), not, "revocation", "begins after", false},
		{"a response that says revoked", own(func(w *world, d *ocspDraft) { d.status, d.revoked = 1, stamped.Add(-time.Hour) }), not, "revoked", "", false},
		{"a response that says revoked before a newer list", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				d := w.good(stamped.Add(-2 * time.Hour))
				d.status, d.revoked, d.until = 1, stamped.Add(-3*time.Hour), w.at.Add(time.Hour)
				o.OCSPs = []*trust.Response{parsedOCSP(t, d.build(t))}
			}
		}, proved, "", "", false},
		{"a response that does not know beside a list", func(w *world) {
			w.finish = func(w *world, r *evidence.Record, o *verify.Options) {
				d := w.good(w.at.Add(-time.Minute))
				d.status = 2
				o.OCSPs = []*trust.Response{parsedOCSP(t, d.build(t))}
			}
		}, proved, "", "", false},
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
