package verify_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
	vstated "jurat/verify/stated"
	"jurat/verify/trust"
)

// grown is a record, and its receipts of inclusion and of consistency with the log as it is later.
func grown(t *testing.T, h *jurattest.House) (r *evidence.Record, included, consistent []byte) {
	t.Helper()
	for range 2 {
		h.Seal(t, output("b"))
	}
	prove := func() *evidence.Record {
		r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r = prove()
	for range 3 {
		h.Seal(t, output("b"))
	}
	included, err := h.SignReceipt(r)
	if err != nil {
		t.Fatal(err)
	}
	return r, included, h.SignConsistency(t, r, prove())
}

// TestConsistencyInAStatement: a receipt of consistency holds only together with one of inclusion, and neither another tree nor another path passes.
func TestConsistencyInAStatement(t *testing.T) {
	change := func(t *testing.T, doc []byte, proof func(list []any) []any) []byte {
		list, again := part(t, doc)
		header := list[1].(cbor.Map)
		i := slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(396) })
		value, err := cbor.Decode(header[i].Value.(cbor.Map)[0].Value.([]any)[0].([]byte))
		if err != nil {
			t.Fatal(err)
		}
		header[i].Value = cbor.Map{{Key: int64(-2), Value: []any{inCBOR(t, proof(value.([]any)))}}}
		return again()
	}
	for _, tt := range []struct {
		name     string
		receipts func(t *testing.T, included, consistent []byte) [][]byte
		envelope string
		second   verify.Status // of the receipt of consistency
		says     string
	}{
		{"both", func(_ *testing.T, included, consistent []byte) [][]byte { return [][]byte{included, consistent} }, "proved", verify.Proved, "is the beginning of"},
		{"in the other order", func(_ *testing.T, included, consistent []byte) [][]byte { return [][]byte{consistent, included} }, "proved", verify.Proved, "is the beginning of"},
		{"without inclusion", func(_ *testing.T, _, consistent []byte) [][]byte { return [][]byte{consistent} }, "proved", verify.NotProved, "no other receipt"},
		{"another path", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { list[2].([]any)[0].([]byte)[3] ^= 1; return list })}
		}, "proved", verify.NotProved, "does not lead"},
		{"a shorter path", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { list[2] = list[2].([]any)[1:]; return list })}
		}, "proved", verify.NotProved, "does not lead"},
		{"a much larger size", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { list[1] = list[1].(int64) + 2; return list })}
		}, "proved", verify.NotProved, "does not lead"},
		{"from another size", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { list[0] = list[0].(int64) - 1; return list })}
		}, "proved", verify.NotProved, "no other receipt"},
		{"backwards", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { list[0], list[1] = list[1], list[0]; return list })}
		}, "proved", verify.NotProved, "the smaller first"},
		{"two numbers", func(t *testing.T, included, consistent []byte) [][]byte {
			return [][]byte{included, change(t, consistent, func(list []any) []any { return list[:2] })}
		}, "proved", verify.NotProved, "two numbers and a path"},
		{"a changed signature", func(t *testing.T, included, consistent []byte) [][]byte {
			list, again := part(t, consistent)
			list[3].([]byte)[5] ^= 1
			return [][]byte{included, again()}
		}, "proved", verify.NotProved, "did not sign"},
		{"by a key that is not known", func(t *testing.T, included, consistent []byte) [][]byte {
			list, again := part(t, consistent)
			header, err := cbor.DecodeMap(list[0].([]byte))
			if err != nil {
				t.Fatal(err)
			}
			header[slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(4) })].Value = []byte("a newer key of the log")
			list[0] = inCBOR(t, header)
			return [][]byte{included, again()}
		}, "proved", verify.NotProved, "did not sign what follows"},
		{"another root", func(t *testing.T, included, consistent []byte) [][]byte {
			list, again := part(t, consistent)
			list[2].([]byte)[5] ^= 1
			return [][]byte{included, again()}
		}, "proved", verify.NotProved, "does not lead"},
		{"a root that is elsewhere", func(t *testing.T, included, consistent []byte) [][]byte {
			list, again := part(t, consistent)
			list[2] = nil
			return [][]byte{included, again()}
		}, "proved", verify.NotProved, "the newer root is not in it"},
		{"of another log's tree", func(t *testing.T, included, _ []byte) [][]byte {
			other := jurattest.New(t)
			other.Seal(t, output("c"))
			_, _, consistent := grown(t, other)
			return [][]byte{included, consistent}
		}, "proved", verify.NotProved, "no other receipt"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := jurattest.New(t)
			r, included, consistent := grown(t, h)
			doc := statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator"), tt.receipts(t, included, consistent)...)
			report := verified(t, doc, h.Options(t))
			if got := answerOf(report.Of(verify.Envelope)); got != tt.envelope {
				t.Errorf("%s, want %s: %+v", got, tt.envelope, report.Of(verify.Envelope))
			}
			list := report.Statement.Receipts
			i := slices.IndexFunc(list, func(got vstated.Receipted) bool {
				return got.Status == tt.second && strings.Contains(got.Reason, tt.says)
			})
			if i < 0 {
				t.Fatalf("%+v", list)
			}
		})
	}
}

// TestConsistencyOfOthers: a service whose log has grown; who changes the proof beside the signature refutes nothing.
func TestConsistencyOfOthers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(proof []any)
		want   verify.Status
	}{{"nothing", func([]any) {}, verify.Proved}, {"another path", func(proof []any) { proof[2].([]any)[0].([]byte)[1] ^= 1 }, verify.NotProved}, {"a size beyond", func(proof []any) { proof[1] = int64(2) }, verify.NotProved}} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStranger(t)
			third := tlog.RecordHash([]byte("a third"))
			doc := s.statement(t, s.receipt(t, nil), func(entry []byte) []byte {
				old := tlog.NodeHash(tlog.RecordHash(entry), tlog.RecordHash([]byte("another")))
				root := tlog.NodeHash(old, third)
				header := inCBOR(t, cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "https://log.example"}}}, {Key: int64(395), Value: int64(1)}})
				signature := ed25519.Sign(s.service, inCBOR(t, []any{"Signature1", header, []byte{}, root[:]}))
				proof := []any{int64(2), int64(3), []any{slices.Clone(third[:])}}
				tt.change(proof)
				return inCBOR(t, cbor.Tag{Number: 18, Content: []any{header, cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-2), Value: []any{inCBOR(t, proof)}}}}}, root[:], signature}})
			})
			report := verified(t, doc, verify.Options{Trust: s.known(t)})
			got := report.Statement.Receipts
			if len(got) != 2 || got[0].Status != verify.Proved || got[1].Status != tt.want {
				t.Errorf("%+v", got)
			}
			if report.Of(verify.Order).Status != verify.Proved {
				t.Errorf("%+v", report.Of(verify.Order))
			}
		})
	}
	s := newStranger(t)
	alone := s.statement(t, func(entry []byte) []byte {
		return inCBOR(t, cbor.Tag{Number: 18, Content: []any{inCBOR(t, cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(395), Value: int64(1)}}), cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-2), Value: []any{inCBOR(t, []any{int64(1), int64(2), []any{}})}}}}}, make([]byte, 32), make([]byte, 64)}})
	})
	if got := verified(t, alone, verify.Options{Trust: s.known(t)}).Of(verify.Order); answerOf(got) != "not proved no-receipt" {
		t.Errorf("%+v", got)
	}
}

// certificate makes a certificate of a key, signed by itself.
func certificate(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "the bank"}, NotBefore: from, NotAfter: from.AddDate(1, 0, 0)}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// TestCertificateOfAStatement: a certificate that the protected header names proves nothing, and contradicts a statement that another key signed.
func TestCertificateOfAStatement(t *testing.T) {
	seed := sha256.Sum256([]byte("a worthless key of somebody else"))
	other, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	hash := func(der []byte) []any { digest := sha256.Sum256(der); return []any{int64(-16), digest[:]} }
	for _, tt := range []struct {
		name           string
		header         func(own, another []byte) cbor.Map
		known, unknown string // with the issuer's key in the trust file, and without
	}{
		{"its own", func(own, _ []byte) cbor.Map {
			return cbor.Map{{Key: int64(33), Value: own}, {Key: int64(34), Value: hash(own)}}
		}, "proved", "not proved unknown-key"},
		{"its own, and an issuer's", func(own, another []byte) cbor.Map { return cbor.Map{{Key: int64(33), Value: []any{own, another}}} }, "proved", "not proved unknown-key"},
		{"of another key", func(_, another []byte) cbor.Map { return cbor.Map{{Key: int64(33), Value: another}} }, "refuted signature", "refuted signature"},
		{"of another key first", func(own, another []byte) cbor.Map { return cbor.Map{{Key: int64(33), Value: []any{another, own}}} }, "refuted signature", "refuted signature"},
		{"another thumbprint", func(own, another []byte) cbor.Map {
			return cbor.Map{{Key: int64(33), Value: own}, {Key: int64(34), Value: hash(another)}}
		}, "refuted signature", "refuted signature"},
		{"a thumbprint alone", func(_, another []byte) cbor.Map { return cbor.Map{{Key: int64(34), Value: hash(another)}} }, "proved", "not proved unknown-key"},
		{"a thumbprint by another hash", func(own, _ []byte) cbor.Map {
			return cbor.Map{{Key: int64(33), Value: own}, {Key: int64(34), Value: []any{int64(-44), own}}}
		}, "proved", "not proved unknown-key"},
		{"none that is one", func(_, _ []byte) cbor.Map { return cbor.Map{{Key: int64(33), Value: []byte("DER")}} }, "not proved unsupported", "not proved unknown-key"},
		{"an array of one", func(own, _ []byte) cbor.Map { return cbor.Map{{Key: int64(33), Value: []any{own}}} }, "not proved unsupported", "not proved unknown-key"},
		{"a critical one", func(own, _ []byte) cbor.Map {
			return cbor.Map{{Key: int64(33), Value: own}, {Key: int64(2), Value: []any{int64(33)}}}
		}, "not proved unsupported", "not proved unknown-key"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStranger(t)
			s.header = append(s.header, tt.header(certificate(t, s.issuer), certificate(t, other))...)
			doc := s.statement(t)
			if got := answerOf(verified(t, doc, verify.Options{Trust: s.known(t)}).Of(verify.Content)); got != tt.known {
				t.Errorf("known: %s, want %s", got, tt.known)
			}
			if got := answerOf(verified(t, doc, verify.Options{Trust: &trust.Trust{}}).Of(verify.Content)); got != tt.unknown {
				t.Errorf("unknown: %s, want %s", got, tt.unknown)
			}
		})
	}
}

// TestCertificateOfARecordsStatement: a record's certificate of the exporter's key is named in the statement, with those that issued it.
func TestCertificateOfARecordsStatement(t *testing.T) {
	h := jurattest.New(t)
	seed := sha256.Sum256([]byte("a worthless key of a CA"))
	ca, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	r, _, o := stated(t, h, evidence.RoleOperator, "operator")
	i := slices.IndexFunc(o.Trust.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleOperator })
	public := o.Trust.Keys[i].Public()
	name := func(common string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: common}, NotBefore: jurattest.Start, NotAfter: jurattest.Start.AddDate(1, 0, 0), BasicConstraintsValid: true}
	}
	root, issuing, leaf := name("root"), name("issuing"), name("operator")
	root.IsCA, issuing.IsCA = true, true
	certify := func(of, by *x509.Certificate, public any) []byte {
		der, err := x509.CreateCertificate(nil, of, by, public, ca)
		if err != nil {
			t.Fatal(err)
		}
		return der
	}
	rootDER, issuingDER, leafDER := certify(root, root, ca.Public()), certify(issuing, root, ca.Public()), certify(leaf, issuing, public)
	r.Certificates = [][]byte{rootDER, issuingDER, leafDER}
	doc := statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator"))
	list, _ := part(t, doc)
	header, err := cbor.DecodeMap(list[0].([]byte))
	if err != nil {
		t.Fatal(err)
	}
	value, _ := header.Get(int64(33))
	chain, ok := value.([]any)
	if !ok || len(chain) != 2 || string(chain[0].([]byte)) != string(leafDER) || string(chain[1].([]byte)) != string(issuingDER) {
		t.Errorf("%x", value)
	}
	if got := verified(t, doc, o).Of(verify.Envelope); got.Status != verify.Proved {
		t.Errorf("%+v", got)
	}
	without := o
	without.Trust = &trust.Trust{}
	if got := answerOf(verified(t, doc, without).Of(verify.Envelope)); got != "not proved unknown-key" {
		t.Error(got)
	}
}
