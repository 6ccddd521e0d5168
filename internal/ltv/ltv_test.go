package ltv_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"golang.org/x/crypto/ocsp"

	"jurat/evidence"
	"jurat/internal/ltv"
)

var begin = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// An issuer is a CA for the tests.
type issuer struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func newIssuer(t *testing.T, name string) *issuer {
	t.Helper()
	key := must[*ecdsa.PrivateKey](t)(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, SerialNumber: big.NewInt(1), NotBefore: begin, NotAfter: begin.AddDate(10, 0, 0),
		BasicConstraintsValid: true, IsCA: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign}
	der := must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))
	return &issuer{must[*x509.Certificate](t)(x509.ParseCertificate(der)), key}
}

// issue makes a certificate that ends so many days after the beginning.
func (i *issuer) issue(t *testing.T, serial int64, days int) []byte {
	t.Helper()
	template := &x509.Certificate{Subject: pkix.Name{CommonName: "agent"}, SerialNumber: big.NewInt(serial), NotBefore: begin, NotAfter: begin.AddDate(0, 0, days)}
	return must[[]byte](t)(x509.CreateCertificate(rand.Reader, template, i.certificate, i.key.Public(), i.key))
}

// list makes a list of so many days after the beginning, with so many entries.
func (i *issuer) list(t *testing.T, day, entries int) []byte {
	t.Helper()
	template := &x509.RevocationList{Number: big.NewInt(int64(day + 1)), ThisUpdate: begin.AddDate(0, 0, day), NextUpdate: begin.AddDate(0, 0, day+7)}
	for n := range entries {
		template.RevokedCertificateEntries = append(template.RevokedCertificateEntries, x509.RevocationListEntry{SerialNumber: big.NewInt(int64(1e6 + n)), RevocationTime: begin})
	}
	return must[[]byte](t)(x509.CreateRevocationList(rand.Reader, template, i.certificate, i.key))
}

// response makes an OCSP response of so many days after the beginning.
func (i *issuer) response(t *testing.T, serial int64, day int) []byte {
	t.Helper()
	return must[[]byte](t)(ocsp.CreateResponse(i.certificate, i.certificate, ocsp.Response{Status: ocsp.Good, SerialNumber: big.NewInt(serial),
		ThisUpdate: begin.AddDate(0, 0, day), NextUpdate: begin.AddDate(0, 0, day+7)}, i.key))
}

func record(id string, certificates ...[]byte) *evidence.Record {
	return &evidence.Record{Payload: evidence.Payload{RecordID: id}, Certificates: certificates}
}

// TestAdd: each record gets the newest statement about its certificates, and none that a record before it has.
func TestAdd(t *testing.T) {
	ours, others := newIssuer(t, "ours"), newIssuer(t, "others")
	early, later, newest, foreign := ours.list(t, 3, 0), ours.list(t, 6, 1), ours.list(t, 40, 1), others.list(t, 50, 0)
	about5, older5 := ours.response(t, 5, 7), ours.response(t, 5, 2)
	large := ours.list(t, 45, 60_000)
	if len(large) <= evidence.MaxRevocation {
		t.Fatalf("the large list has only %d bytes", len(large))
	}
	long, short, fifth := ours.issue(t, 4, 365), ours.issue(t, 6, 5), ours.issue(t, 5, 8)
	lists := fstest.MapFS{"1.crl": {Data: early}, "2.crl": {Data: pem.EncodeToMemory(&pem.Block{Type: "X509 CRL", Bytes: later})}, "3.crl": {Data: foreign}}
	with := func(more map[string][]byte) fstest.MapFS {
		all := fstest.MapFS{}
		for name, file := range lists {
			all[name] = file
		}
		for name, doc := range more {
			all[name] = &fstest.MapFile{Data: doc}
		}
		return all
	}
	type carried = [][]byte
	for _, tt := range []struct {
		name    string
		folder  fstest.MapFS
		records []*evidence.Record
		want    []carried
		missing string // in all of what is said to be missing; "": nothing is
	}{
		{"the newest of two lists", lists, []*evidence.Record{record("1", long)}, []carried{{later}}, ""},
		{"once in a file", lists, []*evidence.Record{record("1", long), record("2", long)}, []carried{{later}, nil}, ""},
		{"of before the certificate's end", with(map[string][]byte{"4.crl": newest}), []*evidence.Record{record("1", short)}, []carried{{early}}, ""},
		{"two certificates of one record", with(map[string][]byte{"4.crl": newest}), []*evidence.Record{record("1", long, short)}, []carried{{newest, early}}, ""},
		{"a response that is newer than the lists", with(map[string][]byte{"5.der": about5, "6.der": older5}), []*evidence.Record{record("1", fifth), record("2", long)}, []carried{{about5}, {later}}, ""},
		{"a response that is older than the lists", with(map[string][]byte{"6.der": older5}), []*evidence.Record{record("1", fifth)}, []carried{{later}}, ""},
		{"the root's own certificate", lists, []*evidence.Record{record("1", ours.certificate.Raw)}, []carried{nil}, ""},
		{"what is no certificate", lists, []*evidence.Record{record("1", []byte("junk"), long)}, []carried{{later}}, ""},
		{"nothing of its CA", fstest.MapFS{"3.crl": {Data: foreign}}, []*evidence.Record{record("1", long)}, []carried{nil}, "no list and no response"},
		{"a list that is too large, alone", fstest.MapFS{"7.crl": {Data: large}}, []*evidence.Record{record("1", long)}, []carried{nil}, "ask the CA for OCSP responses"},
		{"a list that is too large, beside others", with(map[string][]byte{"7.crl": large}), []*evidence.Record{record("1", long)}, []carried{{later}}, ""},
		{"lists of after its end alone", fstest.MapFS{"4.crl": {Data: newest}}, []*evidence.Record{record("1", short)}, []carried{nil}, "need not name it any longer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sources, err := ltv.FromFolder(tt.folder)
			if err != nil {
				t.Fatal(err)
			}
			missing, err := ltv.Add(t.Context(), tt.records, sources)
			if err != nil {
				t.Fatal(err)
			}
			for i, r := range tt.records {
				var got carried
				for _, s := range r.Revocations {
					got = append(got, s.Value)
				}
				if !slices.EqualFunc(got, tt.want[i], slices.Equal) {
					t.Errorf("record %s carries %d statements, not the %d that are wanted", r.Payload.RecordID, len(got), len(tt.want[i]))
				}
				if err := evidence.CheckRevocations(r.Revocations); err != nil {
					t.Error(err)
				}
			}
			if (len(missing) > 0) != (tt.missing != "") || len(missing) > 0 && !strings.Contains(missing[0].Why, tt.missing) {
				t.Errorf("missing: %+v", missing)
			}
		})
	}
}

// TestMoreThanARecordCarries: what does not fit is left out, and said.
func TestMoreThanARecordCarries(t *testing.T) {
	r := record("1")
	folder := fstest.MapFS{}
	for i := range evidence.MaxRevocations + 1 {
		ca := newIssuer(t, string(rune('a'+i%26))+string(rune('a'+i/26)))
		folder[ca.certificate.Subject.CommonName] = &fstest.MapFile{Data: ca.list(t, 1, 0)}
		r.Certificates = append(r.Certificates, ca.issue(t, 5, 100))
	}
	sources, err := ltv.FromFolder(folder)
	if err != nil {
		t.Fatal(err)
	}
	missing, err := ltv.Add(t.Context(), []*evidence.Record{r}, sources)
	if err != nil || len(missing) != 1 || len(r.Revocations) != evidence.MaxRevocations || !strings.Contains(missing[0].Why, "at most 64") {
		t.Errorf("%d carried, missing %+v, %v", len(r.Revocations), missing, err)
	}
}

// TestFromFolder: a file that is neither a list nor a response is named.
func TestFromFolder(t *testing.T) {
	if _, err := ltv.FromFolder(fstest.MapFS{"notes.txt": {Data: []byte("x")}}); err == nil || !strings.Contains(err.Error(), "notes.txt: neither") {
		t.Error(err)
	}
	if sources, err := ltv.FromFolder(fstest.MapFS{"below/notes.txt": {Data: []byte("x")}}); err != nil || len(sources) != 0 {
		t.Errorf("%d sources, %v", len(sources), err)
	}
}
