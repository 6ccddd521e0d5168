package verify_test

import (
	"crypto"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"math/big"
	"math/rand/v2"
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

const (
	statuses  = "http://uri.etsi.org/TrstSvc/TrustedList/Svcstatus/"
	withdrawn = statuses + "withdrawn"
	types     = "http://uri.etsi.org/TrstSvc/Svctype/"
)

// A provider has a CA, a second CA below it, and certificates for one time-stamping unit by the first CA and by the second. Its keys are
// worthless: they follow from its name.
type provider struct {
	t                    testing.TB
	ca, sub, unit, below *x509.Certificate
	key                  crypto.Signer
	serial               *rand.ChaCha8
}

func newProvider(t testing.TB, name string, subject pkix.Name) *provider {
	t.Helper()
	serial := int64(0)
	issue := func(of pkix.Name, key crypto.Signer, by *x509.Certificate, byKey crypto.Signer, ca bool) *x509.Certificate {
		serial++
		template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: of, NotBefore: time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC),
			NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), BasicConstraintsValid: true, IsCA: ca, KeyUsage: x509.KeyUsageDigitalSignature}
		if ca {
			template.KeyUsage = x509.KeyUsageCertSign
		} else {
			purpose := must.Get(asn1.Marshal([]asn1.ObjectIdentifier{{1, 3, 6, 1, 5, 5, 7, 3, 8}}))(t)
			template.ExtraExtensions = []pkix.Extension{{Id: asn1.ObjectIdentifier{2, 5, 29, 37}, Critical: true, Value: purpose}}
		}
		if by == nil {
			by = template
		}
		return must.Get(x509.ParseCertificate(must.Get(x509.CreateCertificate(nil, template, by, key.Public(), byKey))(t)))(t)
	}
	caName := func(which string) pkix.Name { return pkix.Name{CommonName: "WORTHLESS " + name + which} }
	caKey, subKey := jurattest.AuthorityKey(t, name+" ca"), jurattest.AuthorityKey(t, name+" sub")
	p := &provider{t: t, key: jurattest.AuthorityKey(t, name+" unit"), serial: rand.NewChaCha8(sha256.Sum256([]byte(name)))}
	p.ca = issue(caName(" CA"), caKey, nil, caKey, true)
	p.sub = issue(caName(" sub"), subKey, p.ca, caKey, true)
	p.unit = issue(subject, p.key, p.ca, caKey, false)
	p.below = issue(subject, p.key, p.sub, subKey, false)
	return p
}

func (p *provider) authority(certificate *x509.Certificate, at time.Time) *timestamp.Authority {
	p.t.Helper()
	return must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: p.key, Certificate: certificate, Now: func() time.Time { return at }, Rand: p.serial}))(p.t)
}

// over stamps an imprint.
func (p *provider) over(imprint [sha256.Size]byte, at time.Time) evidence.Timestamp {
	p.t.Helper()
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: must.Get(p.authority(p.unit, at).Issue(&timestamp.Request{Imprint: imprint, CertReq: true}))(p.t)}
}

// anchored has alpha stamp the checkpoint in the place of the record, and beta renew that at these seconds.
func (q *qualification) anchored(renewed ...int) {
	a := evidence.Anchor{Checkpoint: q.record.Log.Checkpoint}
	stamp := func(by *provider, at time.Time) {
		imprints := must.Get(a.Imprints())(by.t)
		a.Timestamps = append(a.Timestamps, [][]byte{by.over(imprints[len(a.Timestamps)], at).Token})
	}
	stamp(q.alpha, jurattest.Start)
	for _, seconds := range renewed {
		stamp(q.beta, jurattest.Start.Add(time.Duration(seconds)*time.Second))
	}
	q.record.Log.Anchors, q.stamps = []evidence.Anchor{a}, nil
}

// throughSub stamps with the certificate below the second CA, whose certificate is in the token.
func (p *provider) throughSub(imprint [sha256.Size]byte, at time.Time) evidence.Timestamp {
	p.t.Helper()
	token := parseDERToken(p.t, must.Get(p.authority(p.below, at).Issue(&timestamp.Request{Imprint: imprint, CertReq: true}))(p.t))
	token.Data.At(3).Members = append(token.Data.At(3).Members, must.Get(parseDER(p.sub.Raw))(p.t))
	return evidence.Timestamp{Kind: evidence.RFC3161, Token: token.Sign(p.t, p.key)}
}

// listing is a provider as a list of XA has it: granted since 2020.
func (p *provider) listing(certificate *x509.Certificate) trust.Authority {
	return trust.Authority{Name: "XA Alpha: stamps", Certificate: certificate.Raw, Clock: trust.Independent, Services: []trust.Service{{
		Territory: "XA", TSP: []string{"Alfa", "Alpha"}, Name: "stamps", Type: trust.QualifiedTimeStamps,
		Status: []trust.ServiceStatus{{From: instant("2020-01-01T00:00:00Z"), Status: trust.Granted}},
		List: trust.ServiceList{ListVersion: trust.ListVersion{Sequence: 7, Digest: evidence.DigestOf([]byte("the list of XA"))},
			Issued: instant("2026-05-01T00:00:00Z"), NextUpdate: instant("2026-10-01T00:00:00Z")}}}}
}

func instant(text string) time.Time {
	moment, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		panic(err)
	}
	return moment
}

// A qualification is a record that a listed provider has stamped, and a reader who has the list. A case changes one thing.
type qualification struct {
	alpha  *provider
	beta   *provider // is in no list
	record *evidence.Record
	o      *verify.Options

	stamps []evidence.Timestamp
	first  trust.Authority   // has the provider's service
	others []trust.Authority // after it
}

func (q *qualification) service() *trust.Service { return &q.first.Services[0] }

// since gives the service other statuses, newest first: pairs of a status and its time.
func (q *qualification) since(pairs ...string) {
	q.service().Status = nil
	for i := 0; i < len(pairs); i += 2 {
		q.service().Status = append(q.service().Status, trust.ServiceStatus{Status: pairs[i], From: instant(pairs[i+1])})
	}
}

// again adds the service a second time, as another list has it.
func (q *qualification) again(change func(s *trust.Service)) {
	second := *q.service()
	second.Status = slices.Clone(second.Status)
	change(&second)
	q.first.Services = append(q.first.Services, second)
}

// disagrees adds the CA, whose service was withdrawn.
func (q *qualification) disagrees() *trust.Authority {
	q.others = append(q.others, q.alpha.listing(q.alpha.ca))
	other := &q.others[len(q.others)-1]
	other.Services[0].Status[0].Status = withdrawn
	return other
}

// named replaces the provider by one whose certificates have another subject.
func (q *qualification) named(name string, subject pkix.Name) {
	services := q.first.Services
	q.alpha = newProvider(q.alpha.t, name, subject)
	q.first = q.alpha.listing(q.alpha.unit)
	q.first.Services = services
	q.stamps = []evidence.Timestamp{q.alpha.over(q.record.Imprint(), jurattest.Start)}
}

type qualifiedCase struct {
	name   string
	change func(q *qualification)
	rule   string // by which it is not proved; "" if it is
	says   string // of the reason
}

const granted = trust.Granted

var alphaSubject = pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha"}, CommonName: "WORTHLESS unit"}

func qualifiedCases() []qualifiedCase {
	start := jurattest.Start
	second := func(n int) string { return start.Add(time.Duration(n) * time.Second).Format(time.RFC3339) }
	stampedAt := func(at time.Time) func(q *qualification) {
		return func(q *qualification) {
			q.since(granted, "2010-01-01T00:00:00Z")
			q.stamps = []evidence.Timestamp{q.alpha.over(q.record.Imprint(), at)}
		}
	}
	return []qualifiedCase{
		{"proved", func(q *qualification) {}, "", `of "Alpha", a service that was qualified then, by the trusted list of XA number 7, issued 2026-05-01T00:00:00Z`},
		{"by the CA that issued its certificate", func(q *qualification) { q.first.Certificate = q.alpha.ca.Raw }, "", "number 7"},
		{"by a CA that did not issue its certificate", func(q *qualification) {
			q.first.Certificate, q.stamps[0] = q.alpha.ca.Raw, q.alpha.throughSub(q.record.Imprint(), start)
		}, "service", "no authority has stamped it"},
		{"by the CA in the token that issued its certificate", func(q *qualification) {
			q.first.Certificate, q.stamps[0] = q.alpha.sub.Raw, q.alpha.throughSub(q.record.Imprint(), start)
		}, "", "number 7"},

		{"a second before eIDAS", stampedAt(trust.QualifiedFrom.Add(-time.Second)), "before-eidas", "2016-06-30T21:59:59Z"},
		{"a thousandth before eIDAS", stampedAt(trust.QualifiedFrom.Add(-time.Millisecond)), "before-eidas", "no service was qualified before"},
		{"the first second of eIDAS", stampedAt(trust.QualifiedFrom), "", "number 7"},

		{"a service that is not listed", func(q *qualification) {
			q.others = append(q.others, trust.Authority{Name: "beta", Certificate: q.beta.ca.Raw, Clock: trust.Independent})
			q.stamps[0] = q.beta.over(q.record.Imprint(), start)
		}, "service", "no authority has stamped it"},
		{"a plain service", func(q *qualification) { q.service().Type = types + "TSA" }, "service", "no service of qualified time stamps"},
		{"a service for qualified certificates", func(q *qualification) { q.service().Type = types + "TSA/TSS-QC" }, "service", "no service of qualified time stamps"},
		{"a service for signatures", func(q *qualification) { q.service().Type = types + "TSA/TSS-AdESQCandQES" }, "service", "no service of qualified time stamps"},
		{"a service that became a qualified one later", func(q *qualification) {
			q.since(granted, second(1), granted, "2018-01-01T00:00:00Z")
			q.service().Status[1].Type = types + "TSA"
		}, "service", "no service of qualified time stamps"},
		{"a service that was a qualified one before", func(q *qualification) {
			q.service().Type = types + "TSA"
			q.since(granted, second(1), granted, "2018-01-01T00:00:00Z")
			q.service().Status[1].Type = trust.QualifiedTimeStamps
		}, "", "number 7"},
		{"a decoy beside it", func(q *qualification) {
			q.again(func(s *trust.Service) {
				s.Type, s.TSP, s.Status[0].Status = types+"TSA/TSS-QC", []string{"Other"}, withdrawn
			})
		}, "", "number 7"},
		{"a list that says nothing of that time", func(q *qualification) { q.since(granted, second(1)) }, "service", "no service of qualified time stamps"},
		{"under a policy that the reader refuses", func(q *qualification) {
			q.others = append(q.others, trust.Authority{Name: "its CA", Certificate: q.alpha.ca.Raw, Clock: trust.Independent})
			q.first.Policies = []string{"1.2.3"}
		}, "service", "no authority has stamped it"},

		{"under a policy that the reader refuses, and by the CA", func(q *qualification) {
			q.first.Policies, q.others = []string{"1.2.3"}, append(q.others, q.alpha.listing(q.alpha.ca))
		}, "", "number 7"},

		{"withdrawn since", func(q *qualification) { q.since(withdrawn, second(1), granted, "2020-01-01T00:00:00Z") }, "", "number 7"},
		{"withdrawn in that second", func(q *qualification) { q.since(withdrawn, second(0), granted, "2020-01-01T00:00:00Z") }, "status", `"stamps" was "withdrawn" as "QTST"`},
		{"granted in that second", func(q *qualification) { q.since(granted, second(0), withdrawn, "2020-01-01T00:00:00Z") }, "", "number 7"},
		{"granted for one second", func(q *qualification) {
			q.since(withdrawn, second(1), granted, second(0), withdrawn, "2020-01-01T00:00:00Z")
		}, "", "number 7"},
		{"granted a second later", func(q *qualification) { q.since(granted, second(1), withdrawn, "2020-01-01T00:00:00Z") }, "status", "withdrawn"},
		{"a status of the old law", func(q *qualification) { q.since(statuses+"undersupervision", "2020-01-01T00:00:00Z") }, "status", "undersupervision"},
		{"another status of the old law", func(q *qualification) { q.since(statuses+"accredited", "2020-01-01T00:00:00Z") }, "status", "accredited"},
		{"a national status", func(q *qualification) { q.since(statuses+"recognisedatnationallevel", "2020-01-01T00:00:00Z") }, "status", "recognisedatnationallevel"},

		{"renewed while it was granted", func(q *qualification) {
			q.since(withdrawn, second(10), granted, "2020-01-01T00:00:00Z")
			q.anchored(9)
		}, "", "number 7"},
		{"renewed after it was withdrawn", func(q *qualification) {
			q.since(withdrawn, second(10), granted, "2020-01-01T00:00:00Z")
			q.anchored(10)
		}, "status", "when the token is first proved to exist otherwise"},
		{"renewed after it became another service", func(q *qualification) {
			q.since(granted, second(10), granted, "2020-01-01T00:00:00Z")
			q.service().Status[0].Type = types + "TSA"
			q.anchored(10)
		}, "status", `was "granted" as "TSA"`},
		{"renewed before it was withdrawn, and after", func(q *qualification) {
			q.since(withdrawn, second(10), granted, "2020-01-01T00:00:00Z")
			q.anchored(9, 10)
		}, "", "number 7"},
		{"of the checkpoint", func(q *qualification) { q.anchored() }, "", "number 7"},
		{"by a key that was lost, by the operator's word", func(q *qualification) {
			q.others[0].Clock, q.first.NotAfter = trust.OperatorClock, start.Add(time.Minute)
			q.anchored(1)
		}, "service", "no authority has stamped it"},
		{"by a key that was lost, renewed before", func(q *qualification) {
			q.first.NotAfter = start.Add(time.Minute)
			q.anchored(1)
		}, "", "number 7"},

		{"another name", func(q *qualification) { q.service().TSP = []string{"alpha", "Alpha N.V."} }, "operator-name", `"Alpha" in "XA"`},
		{"another country", func(q *qualification) { q.service().Territory = "XB" }, "operator-name", `"XA"`},
		{"a country by its other code", func(q *qualification) {
			q.service().Territory = "EL"
			q.named("hellas", pkix.Name{Country: []string{"GR"}, Organization: []string{"Alpha"}})
		}, "", "list of EL number 7"},
		{"another country by its other code", func(q *qualification) {
			q.service().Territory = "UK"
			q.named("britain", pkix.Name{Country: []string{"GB"}, Organization: []string{"Alpha"}})
		}, "", "list of UK number 7"},
		{"a country by the list's code", func(q *qualification) {
			q.service().Territory = "GR"
			q.named("greece", pkix.Name{Country: []string{"GR"}, Organization: []string{"Alpha"}})
		}, "operator-name", `"GR"`},
		{"no country", func(q *qualification) { q.named("nowhere", pkix.Name{Organization: []string{"Alpha"}}) }, "operator-name", "0 countries"},
		{"two organisations", func(q *qualification) {
			q.named("both", pkix.Name{Country: []string{"XA"}, Organization: []string{"Alpha", "Other"}})
		}, "operator-name", "2 organisations"},
		{"a name in another writing", func(q *qualification) {
			q.service().TSP = []string{"Άλφα"}
			q.named("alfa", pkix.Name{Country: []string{"XA"}, Organization: []string{"Άλφα"}})
		}, "", `of "Άλφα"`},

		{"two services that agree", func(q *qualification) { q.again(func(s *trust.Service) { s.Name = "the same" }) }, "", "number 7"},
		{"two services that disagree", func(q *qualification) {
			q.again(func(s *trust.Service) { s.Status[0].Status = withdrawn })
		}, "status", "withdrawn"},
		{"two services of two providers", func(q *qualification) { q.again(func(s *trust.Service) { s.TSP = []string{"Beta"} }) }, "operator-name", `"Beta"`},
		{"two services, one of them listed too long ago", func(q *qualification) {
			q.again(func(s *trust.Service) { s.List.NextUpdate = instant("2026-05-31T00:00:00Z") })
		}, "list", "2026-05-31"},
		{"two authorities that disagree", func(q *qualification) {
			q.disagrees()
		}, "status", "withdrawn"},
		{"two authorities that disagree, and a token without certificates", func(q *qualification) {
			q.disagrees()
			q.stamps[0].Token = must.Get(q.alpha.authority(q.alpha.unit, start).Issue(&timestamp.Request{Imprint: q.record.Imprint()}))(q.alpha.t)
		}, "status", "withdrawn"},
		{"two authorities that agree, and a token without certificates", func(q *qualification) {
			q.disagrees().Services[0].Status[0].Status = granted
			q.stamps[0].Token = must.Get(q.alpha.authority(q.alpha.unit, start).Issue(&timestamp.Request{Imprint: q.record.Imprint()}))(q.alpha.t)
		}, "", "number 7"},
		{"an authority that disagrees, whose policies are others", func(q *qualification) { q.disagrees().Policies = []string{"1.2.3"} }, "status", "withdrawn"},
		{"an authority that disagrees, whose key was lost", func(q *qualification) { q.disagrees().NotAfter = start.Add(time.Minute) }, "status", "withdrawn"},
		{"an authority that disagrees, whose certificates must stand", func(q *qualification) { q.disagrees().Revocation = trust.ByCRL }, "status", "withdrawn"},
		{"a lost authority alone of which a service is a qualified one", func(q *qualification) {
			q.disagrees().NotAfter = start.Add(time.Minute)
			q.others[1].Services[0].Status[0].Status = granted
			q.service().Type = types + "TSA"
		}, "service", "no service of qualified time stamps"},
		{"one service that says nothing of that time", func(q *qualification) {
			q.again(func(s *trust.Service) { s.Status[0].Status, s.Status[0].From = withdrawn, start.Add(time.Second) })
		}, "", "number 7"},
		{"an authority before it that is in no list", func(q *qualification) {
			q.others, q.first = []trust.Authority{q.others[0], q.first}, trust.Authority{Name: "its CA", Certificate: q.alpha.ca.Raw, Clock: trust.Independent}
		}, "", "by XA Alpha: stamps of"},

		{"in the last second of the list", func(q *qualification) { q.o.At = instant("2026-10-01T00:00:00Z") }, "", "number 7"},
		{"a list that is out of date", func(q *qualification) { q.o.At = instant("2026-10-01T00:00:01Z") }, "list", "number 7, issued 2026-05-01T00:00:00Z, said until 2026-10-01T00:00:00Z"},
		{"no moment of checking", func(q *qualification) { q.o.At = time.Time{} }, "list", "no moment of checking is given"},
		{"the last list", func(q *qualification) {
			q.service().List.NextUpdate, q.o.At = time.Time{}, time.Time{}
			q.service().List.Issued = start
		}, "", "issued 2026-01-01T00:00:00Z"},
		{"after the last list", func(q *qualification) {
			q.service().List.NextUpdate, q.service().List.Issued = time.Time{}, start.Add(-time.Second)
		}, "list", "is the last one"},

		{"two tokens, one of them qualified", func(q *qualification) {
			q.since(withdrawn, second(1), granted, "2020-01-01T00:00:00Z")
			q.stamps = append([]evidence.Timestamp{q.alpha.over(q.record.Imprint(), start.Add(time.Second))}, q.stamps...)
		}, "", "2026-01-01T00:00:00Z by XA"},
		{"two tokens, the one that came furthest is named", func(q *qualification) {
			q.since(granted, second(0), withdrawn, "2020-01-01T00:00:00Z")
			q.service().List.NextUpdate = instant("2026-05-31T00:00:00Z")
			q.stamps = append(q.stamps, q.alpha.over(q.record.Imprint(), start.Add(-time.Second)))
		}, "list", "2026-05-31"},
		{"a qualified token that is later than the earliest", func(q *qualification) {
			q.others = append(q.others, trust.Authority{Name: "beta", Certificate: q.beta.ca.Raw, Clock: trust.Independent})
			q.stamps = []evidence.Timestamp{q.beta.over(q.record.Imprint(), start), q.alpha.over(q.record.Imprint(), start.Add(time.Hour))}
		}, "", "stamped at 2026-01-01T01:00:00Z"},
		{"a forged token beside it", func(q *qualification) {
			other := *q.record
			other.Signatures = [][]byte{[]byte("another")}
			q.stamps = append(q.stamps, q.alpha.over(other.Imprint(), start))
		}, "service", "no authority has stamped it"},
		{"no token", func(q *qualification) { q.stamps = nil }, "service", "no authority has stamped it"},
	}
}

func (tt *qualifiedCase) build(t testing.TB) *qualification {
	t.Helper()
	r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
	q := &qualification{alpha: newProvider(t, "alpha", alphaSubject), beta: newProvider(t, "beta", pkix.Name{CommonName: "WORTHLESS beta"}), record: r, o: &o}
	q.first = q.alpha.listing(q.alpha.unit)
	q.others = []trust.Authority{{Name: "beta's unit", Certificate: q.beta.unit.Raw, Clock: trust.Independent}}
	q.stamps = []evidence.Timestamp{q.alpha.over(r.Imprint(), jurattest.Start)}
	o.At = instant("2026-06-01T00:00:00Z")
	tt.change(q)
	r.Timestamps = q.stamps
	o.Trust.Authorities = append([]trust.Authority{q.first}, q.others...)
	o.Trust.Lists = &trust.Lists{Journal: []evidence.Digest{evidence.DigestOf([]byte("journal"))}, LOTL: trust.ListVersion{Sequence: 5, Digest: evidence.DigestOf([]byte("the list of the lists"))},
		Issued: instant("2026-05-01T00:00:00Z")}
	o.Trust = must.Get(trust.Parse(must.Get(o.Trust.Marshal())(t)))(t)
	return q
}

func qualifiedVectors(t *testing.T) []given {
	t.Helper()
	var list []given
	for _, tt := range qualifiedCases() {
		q := tt.build(t)
		list = append(list, givenRecord(t, slug("qualified", tt.name), q.record, *q.o))
	}
	return list
}

// TestEveryRuleOfQualified: each case breaks one rule, or shows that it goes no further.
func TestEveryRuleOfQualified(t *testing.T) {
	for _, tt := range qualifiedCases() {
		t.Run(tt.name, func(t *testing.T) {
			q := tt.build(t)
			report := verify.Record(q.record, *q.o)
			got := report.Of(verify.Qualified)
			status := verify.NotProved
			if tt.rule == "" {
				status = verify.Proved
			}
			must.Hold(t, got.Status == status && got.Rule == tt.rule && strings.Contains(got.Reason, tt.says),
				"%+v; want %s by rule %q, saying %q", got, status, tt.rule, tt.says)
			at, proved := report.TimeOf(q.record.Payload.RecordID)
			must.Hold(t, (at.Qualified != nil) == (tt.rule == "") && (at.Qualified == nil || proved), "times: %+v", at)
			without := *q.o.Trust
			without.Authorities, without.Lists = slices.Clone(without.Authorities), nil
			for i := range without.Authorities {
				without.Authorities[i].Services = nil
			}
			o := *q.o
			o.Trust = must.Get(trust.Parse(must.Get(without.Marshal())(t)))(t)
			plain := verify.Record(q.record, o)
			if plain.Of(verify.Time).Status != report.Of(verify.Time).Status || plain.Of(verify.Time).Rule != report.Of(verify.Time).Rule || plain.Outcome != report.Outcome {
				t.Errorf("the lists changed time from %+v to %+v, or the outcome from %s to %s", plain.Of(verify.Time), report.Of(verify.Time), plain.Outcome, report.Outcome)
			}
			other, _ := plain.TimeOf(q.record.Payload.RecordID)
			must.Hold(t, other.ProvedTime == at.ProvedTime, "the lists changed the time from %+v to %+v", other, at)
		})
	}
}

// TestQualifiedIsAskedOnRequest: it is asked where the trust file has services, or the reader requires it, and only the second makes it count.
func TestQualifiedIsAskedOnRequest(t *testing.T) {
	r, o := standaloneIn(t, jurattest.NewForStrangers(t), output("a"))
	asked := func(report *verify.Report) bool {
		return slices.ContainsFunc(report.Guarantees, func(f verify.Finding) bool { return f.Guarantee == verify.Qualified })
	}
	if report := verify.Record(r, o); asked(report) || report.Outcome != verify.Proved {
		t.Errorf("without services: %+v", report)
	}
	o.Require = []verify.Guarantee{verify.Qualified}
	if report := verify.Record(r, o); report.Of(verify.Qualified).Rule != "service" || report.Outcome != verify.NotProved {
		t.Errorf("required without services: %+v", report)
	}
	stale := (&qualifiedCase{"", func(q *qualification) { q.o.At = on(1000) }, "", ""}).build(t)
	report := verify.Record(stale.record, *stale.o)
	if !asked(report) || report.Outcome != verify.Proved || !slices.Contains(report.Uncounted, verify.Qualified) || report.Of(verify.Time).Status != verify.Proved {
		t.Errorf("with services: %+v", report)
	}
	stale.o.Require = o.Require
	report = verify.Record(stale.record, *stale.o)
	must.Hold(t, report.Outcome == verify.NotProved && len(report.Uncounted) == 1, "with services, and required: %+v", report)
	empty := verify.Bundle(&evidence.Bundle{}, *stale.o)
	f := empty.Of(verify.Qualified)
	must.Hold(t, f.Status == verify.NotProved && f.Rule == "empty", "of no record: %+v", f)
}
