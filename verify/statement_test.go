package verify_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/scitt"
	"jurat/internal/kit/cbor"
	"jurat/internal/kit/sigkey"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
	"jurat/verify"
	"jurat/verify/trust"
)

// stated is a record, its statement by an actor, and the options that prove it.
func stated(t *testing.T, h *jurattest.House, role evidence.Role, name string) (*evidence.Record, []byte, verify.Options) {
	t.Helper()
	r := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a"))))(t)
	receipt := must.Get(h.SignReceipt(r))(t)
	doc := statementBy(t, h, r, role, name, scitt.Issuer(role, name), receipt)
	return r, doc, h.Options(t)
}

func statementBy(t *testing.T, h *jurattest.House, r *evidence.Record, role evidence.Role, name, issuer string, receipts ...[]byte) []byte {
	t.Helper()
	signers := must.Get(h.Keys.Signers(t.Context(), role, name))(t)
	return must.Get(scitt.Sign(r, issuer, signers[0], receipts...))(t)
}

// part returns the parts of a COSE_Sign1 to be changed, and what writes them again.
func part(t *testing.T, doc []byte) (list []any, again func() []byte) {
	t.Helper()
	value := must.Get(cbor.Decode(bytes.Clone(doc)))(t)
	return value.(cbor.Tag).Content.([]any), func() []byte { return inCBOR(t, value) }
}

func inCBOR(t *testing.T, value any) []byte {
	t.Helper()
	return must.Get(cbor.Encode(value))(t)
}

func TestEveryRuleOfAStatement(t *testing.T) {
	operatorKey := func(o *verify.Options) *trust.Key {
		i := slices.IndexFunc(o.Trust.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleOperator })
		return &o.Trust.Keys[i]
	}
	receiptOf := func(list []any) (*[]any, func([]byte)) {
		header := list[1].(cbor.Map)
		i := slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(394) })
		receipts := header[i].Value.([]any)
		return &receipts, func(doc []byte) { receipts[0] = doc }
	}
	inReceipt := func(t *testing.T, doc []byte, change func(list []any)) []byte {
		list, again := part(t, doc)
		receipts, put := receiptOf(list)
		inner, write := part(t, (*receipts)[0].([]byte))
		change(inner)
		put(write())
		return again()
	}
	for _, tt := range []struct {
		name   string
		change func(t *testing.T, h *jurattest.House, r *evidence.Record, doc []byte, o *verify.Options) []byte
		status verify.Status
		rule   string
	}{
		{"nothing", nil, verify.Proved, ""},
		{"no trust", func(_ *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, o *verify.Options) []byte {
			o.Trust = nil
			return doc
		}, verify.NotProved, "unknown-key"},
		{"a changed signature", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			list, again := part(t, doc)
			list[3].([]byte)[9] ^= 1
			return again()
		}, verify.Refuted, "signature"},
		{"a critical parameter", func(t *testing.T, h *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			list, again := part(t, doc)
			header := must.Get(cbor.DecodeMap(list[0].([]byte)))(t)
			list[0] = inCBOR(t, append(header, cbor.Pair{Key: "x", Value: int64(1)}, cbor.Pair{Key: int64(2), Value: []any{"x"}}))
			return again()
		}, verify.NotProved, "unsupported"},
		{"another issuer", func(t *testing.T, h *jurattest.House, r *evidence.Record, _ []byte, _ *verify.Options) []byte {
			return statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:agent:a")
		}, verify.Refuted, "actor"},
		{"another agent's key", func(t *testing.T, h *jurattest.House, r *evidence.Record, _ []byte, o *verify.Options) []byte {
			doc := statementBy(t, h, r, evidence.RoleAgent, "b", "urn:jurat:agent:b")
			*o = h.Options(t)
			return doc
		}, verify.Refuted, "actor"},
		{"a revoked key", func(_ *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, o *verify.Options) []byte {
			operatorKey(o).Revoked = jurattest.Start.Add(time.Hour)
			return doc
		}, verify.NotProved, "revoked"},
		{"a key with an end", func(_ *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, o *verify.Options) []byte {
			operatorKey(o).NotAfter = jurattest.Start.Add(time.Hour)
			return doc
		}, verify.NotProved, "validity"},
		{"no receipt", func(t *testing.T, h *jurattest.House, r *evidence.Record, _ []byte, _ *verify.Options) []byte {
			return statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:operator:operator")
		}, verify.Proved, ""},
		{"a receipt with a changed signature", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) { list[3].([]byte)[9] ^= 1 })
		}, verify.Proved, ""},
		{"a receipt of another record", func(t *testing.T, h *jurattest.House, r *evidence.Record, _ []byte, o *verify.Options) []byte {
			_, other, _ := stated(t, h, evidence.RoleOperator, "operator")
			list, _ := part(t, other)
			receipts, _ := receiptOf(list)
			return statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:operator:operator", (*receipts)[0].([]byte))
		}, verify.Proved, ""},
		{"a receipt with another index", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) {
				proofs := list[1].(cbor.Map)
				i := slices.IndexFunc(proofs, func(p cbor.Pair) bool { return p.Key == int64(396) })
				proofs[i].Value = cbor.Map{{Key: int64(-1), Value: []any{inCBOR(t, []any{int64(1), int64(1), []any{}})}}}
			})
		}, verify.Proved, ""},
		{"a receipt by a key that the trust file does not name", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) {
				header := must.Get(cbor.DecodeMap(list[0].([]byte)))(t)
				header[slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(4) })].Value = []byte("another key")
				list[0] = inCBOR(t, header)
			})
		}, verify.Proved, ""},
		{"a receipt of consistency", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) {
				proofs := list[1].(cbor.Map)
				i := slices.IndexFunc(proofs, func(p cbor.Pair) bool { return p.Key == int64(396) })
				proofs[i].Value = cbor.Map{{Key: int64(-2), Value: []any{inCBOR(t, []any{int64(1), int64(2), []any{}})}}}
			})
		}, verify.Proved, ""},
		{"a receipt of another structure", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) {
				header := must.Get(cbor.DecodeMap(list[0].([]byte)))(t)
				i := slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(395) })
				header[i].Value = int64(2)
				list[0] = inCBOR(t, header)
			})
		}, verify.Proved, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := jurattest.New(t)
			r, doc, o := stated(t, h, evidence.RoleOperator, "operator")
			if tt.change != nil {
				doc = tt.change(t, h, r, doc, &o)
			}
			report := check(t, doc, o)
			if got := report.Of(verify.Envelope); got.Status != tt.status || got.Rule != tt.rule || report.Outcome != tt.status || report.Kind != verify.OneRecord {
				t.Errorf("%+v, outcome %s", got, report.Outcome)
			}
			must.Need(t, report.Statement != nil && report.Statement.Subject == r.Payload.RecordID, "%+v", report.Statement)
			for _, got := range report.Statement.Receipts {
				must.Hold(t, (got.Status == verify.Proved) == !strings.HasPrefix(tt.name, "a receipt") || tt.name == "no trust", "%+v", got)
			}
		})
	}
}

// TestStatementByTheActor: the record's own actor may sign its statement.
func TestStatementByTheActor(t *testing.T) {
	_, doc, o := stated(t, jurattest.New(t), evidence.RoleAgent, "a")
	report := check(t, doc, o)
	got := report.Of(verify.Envelope)
	must.Hold(t, got.Status == verify.Proved && strings.Contains(got.Reason, `agent "a" signed the statement`), "%+v", got)
	if got := report.Statement.Receipts; len(got) != 1 || got[0].Status != verify.Proved {
		t.Errorf("%+v", got)
	}
}

// TestStatementWithOneOfTwoSignatures: a COSE_Sign1 has one signature, so keys that sign only together prove no export.
func TestStatementWithOneOfTwoSignatures(t *testing.T) {
	h := jurattest.New(t)
	h.Keys.PostQuantum = true
	_, doc, o := stated(t, h, evidence.RoleOperator, "operator")
	got := check(t, doc, o).Of(verify.Envelope)
	must.Hold(t, got.Status == verify.NotProved && got.Rule == "second-signature", "%+v", got)
}

// TestInsideAStatement: an honest statement does not help a record that lies.
func TestInsideAStatement(t *testing.T) {
	h := jurattest.New(t)
	r := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a"))))(t)
	other := must.Get(h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a"))))(t)
	changed := *r
	changed.Signatures = other.Signatures
	doc := statementBy(t, h, &changed, evidence.RoleOperator, "operator", "urn:jurat:operator:operator")
	report := check(t, doc, h.Options(t))
	if report.Outcome != verify.Refuted || report.Of(verify.Content).Status != verify.Refuted || report.Of(verify.Envelope).Status != verify.Proved {
		t.Errorf("%+v", report.Guarantees)
	}
}

// TestSizeOfAReceiptIsNotSigned: a changed size in an honest log's receipt, whose paths are as long, makes the log look as if it had neither two histories nor that size.
func TestSizeOfAReceiptIsNotSigned(t *testing.T) {
	h := jurattest.New(t)
	first := h.Seal(t, output("a"))
	for range 4 {
		h.Seal(t, output("b"))
	}
	early := must.Get(h.Ledger.ProveOne(t.Context(), first))(t)
	receipt := must.Get(h.SignReceipt(early))(t)
	h.Seal(t, output("c"))
	must.Get(h.Ledger.Checkpoint(t.Context()))(t)
	late := must.Get(h.Ledger.ProveOne(t.Context(), first))(t)
	list, again := part(t, receipt)
	header := list[1].(cbor.Map)
	i := slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(396) })
	value := must.Get(cbor.Decode(header[i].Value.(cbor.Map)[0].Value.([]any)[0].([]byte)))(t)
	proof := value.([]any)
	proof[0] = proof[0].(int64) + 1
	header[i].Value = cbor.Map{{Key: int64(-1), Value: []any{inCBOR(t, proof)}}}
	report := check(t, statementBy(t, h, late, evidence.RoleOperator, "operator", "urn:jurat:operator:operator", again()), h.Options(t))
	got := report.Of(verify.Order)
	must.Hold(t, answerOf(got) == "proved" && report.Outcome == verify.Proved, "%+v, outcome %s", got, report.Outcome)
	if got := report.Statement.Receipts[0]; got.Status != verify.Proved || !strings.HasSuffix(got.Reason, "has the record") {
		t.Errorf("%+v", got)
	}
}

// TestDamagedStatement: a statement that is recognisably jurat's is reported. Damaged files of others, and statements that hold no record, are not ours.
func TestDamagedStatement(t *testing.T) {
	_, doc, o := stated(t, jurattest.New(t), evidence.RoleOperator, "operator")
	for _, end := range []int{200, len(doc) - 1} {
		report := check(t, doc[:end], o)
		got := report.Of(verify.Content)
		must.Hold(t, report.Outcome == verify.NotProved && answerOf(got) == "not proved form", "cut after %d bytes: %+v", end, report.Guarantees)
	}
	list, again := part(t, doc)
	list[2] = []byte("{}")
	if report := check(t, again(), o); report.Of(verify.Content).Rule != "form" || report.Of(verify.Envelope).Status != verify.NotProved {
		t.Errorf("another payload: %+v", report.Guarantees)
	}
	foreign := inCBOR(t, cbor.Tag{Number: 18, Content: []any{inCBOR(t, cbor.Map{{Key: int64(1), Value: int64(-7)}, {Key: int64(3), Value: "text/plain"}}), cbor.Map{}, []byte("Paid."), make([]byte, 64)}})
	for want, other := range map[string][]byte{"holds no record": foreign, "CBOR": {0xd2, 0x84, 0x40}} {
		_, err := verify.File(other, o)
		must.Hold(t, errors.Is(err, verify.ErrNotOurs) && strings.Contains(err.Error(), want), "%v, want %q", err, want)
	}
}

// TestUnprotectedRefutesNothing puts parts beside statements that anybody can put there, and takes others out.
func TestUnprotectedRefutesNothing(t *testing.T) {
	_, doc, o := stated(t, jurattest.New(t), evidence.RoleOperator, "operator")
	before := check(t, doc, o)
	with := func(change func(header cbor.Map) cbor.Map) *verify.Report {
		list, again := part(t, doc)
		list[1] = change(list[1].(cbor.Map))
		return check(t, again(), o)
	}
	without := func(header cbor.Map, label int64) cbor.Map {
		return slices.DeleteFunc(header, func(p cbor.Pair) bool { return p.Key == label })
	}
	for what, add := range map[string]cbor.Pair{
		"an algorithm": {Key: int64(1), Value: int64(-7)}, "crit": {Key: int64(2), Value: []any{int64(1)}}, "a content type": {Key: int64(3), Value: "text/html"},
		"a kid": {Key: int64(4), Value: []byte("key-1")}, "claims": {Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "x"}}}, "a certificate": {Key: int64(33), Value: []byte("x")},
		"a structure": {Key: int64(395), Value: int64(7)}, "proofs": {Key: int64(396), Value: "x"}, "a number": {Key: int64(99), Value: int64(1)}, "a text": {Key: "x", Value: nil},
		"sentences": {Key: int64(-70001), Value: "x"}, "an entry": {Key: int64(-70003), Value: "x"},
	} {
		got := with(func(header cbor.Map) cbor.Map { return append(header, add) })
		must.Hold(t, got.Outcome == before.Outcome, "with %s: %s, %+v", what, got.Outcome, got.Details)
	}
	impossible := inCBOR(t, cbor.Tag{Number: 18, Content: []any{inCBOR(t, cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(395), Value: int64(1)}}), cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-1), Value: []any{inCBOR(t, []any{int64(2), int64(2), []any{}})}}}}}, nil, make([]byte, 64)}})
	for what, receipts := range map[string]any{"no array": "x", "none": []any{}, "a text": []any{"x"}, "no COSE": []any{[]byte{0}}, "an impossible proof": []any{impossible}, "seventeen": slices.Repeat([]any{impossible}, 17)} {
		got := with(func(header cbor.Map) cbor.Map {
			return append(without(header, 394), cbor.Pair{Key: int64(394), Value: receipts})
		})
		if got.Outcome != before.Outcome || slices.ContainsFunc(got.Statement.Receipts, func(r verify.Receipt) bool { return r.Status != verify.NotProved }) {
			t.Errorf("with receipts that are %s: %s, %+v", what, got.Outcome, got.Statement)
		}
	}
	for what, record := range map[string]any{"missing": nil, "a text": "x", "damaged": []byte("x")} {
		got := with(func(header cbor.Map) cbor.Map {
			if header = without(header, -70002); record != nil {
				header = append(header, cbor.Pair{Key: int64(-70002), Value: record})
			}
			return header
		})
		must.Hold(t, got.Outcome != verify.Refuted && answerOf(got.Of(verify.Content)) == "not proved no-record",
			"with a record that is %s: %s, %+v", what, got.Outcome, got.Guarantees)
	}
	for what, pair := range unreadPairs {
		got := check(t, withPair(t, doc, pair), o)
		must.Hold(t, got.Outcome == verify.NotProved && answerOf(got.Of(verify.Content)) == "not proved form", "with %s: %+v", what, got)
	}
	got := with(func(cbor.Map) cbor.Map { return nil })
	must.Hold(t, got.Outcome == verify.NotProved, "with an empty header: %s", got.Outcome)
}

// unreadPairs are header parameters that are not read here, each as it stands: other programs may write them.
var unreadPairs = map[string]string{
	"the value undefined": "\x18\x63\xf7", "a simple value": "\x18\x63\xf0", "a long number": "\x18\x63\x1b\xff\xff\xff\xff\xff\xff\xff\xff", "a number longer than needed": "\x18\x63\x18\x05",
	"an array without a length": "\x18\x63\x9f\xff", "a text that is none": "\x18\x63\x61\xff", "a label of bytes": "\x41\x61\x01", "a second array of receipts": "\x19\x01\x8a\x80",
	"much nesting": "\x18\x63" + strings.Repeat("\x81", 20) + "\x01",
}

// withPair adds a header parameter to the unprotected header of a statement, as it stands.
func withPair(t *testing.T, doc []byte, pair string) []byte {
	list, _ := part(t, doc)
	header := inCBOR(t, list[1])
	header[0]++
	return slices.Concat([]byte{0xd2, 0x84}, inCBOR(t, list[0]), header, []byte(pair), inCBOR(t, list[2]), inCBOR(t, list[3]))
}

// exported makes a statement of a record as scitt.Sign does, with further parameters in the protected header, by a key that the options get as the operator's.
func exported(t *testing.T, r *evidence.Record, key *ecdsa.PrivateKey, o verify.Options, more ...cbor.Pair) ([]byte, verify.Options) {
	t.Helper()
	file := must.Get(r.Marshal())(t)
	der := must.Get(evidence.MarshalPublicKey(key.Public()))(t)
	id := evidence.DigestOf(der)
	header := inCBOR(t, append(cbor.Map{{Key: int64(1), Value: int64(-7)}, {Key: int64(3), Value: scitt.ContentType}, {Key: int64(4), Value: id[:]},
		{Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "urn:jurat:operator:operator"}, {Key: int64(2), Value: r.Payload.RecordID}}}, {Key: int64(-70001), Value: scitt.About}}, more...))
	digest := sha256.Sum256(inCBOR(t, []any{"Signature1", header, []byte{}, r.Canonical()}))
	signature := must.Get(ecdsa.SignASN1(nil, key, digest[:]))(t)
	low := must.Get(sigkey.LowS(signature))(t)
	raw := must.Get(sigkey.RawECDSA(low))(t)
	known := *o.Trust
	known.Keys = append(slices.Clip(known.Keys), trust.Key{Name: "operator", Role: evidence.RoleOperator, Algorithm: evidence.ES256, KeyID: id, PublicKey: der, Custody: trust.ByOperator})
	prepared := must.Get(known.Prepared())(t)
	o.Trust = prepared
	return inCBOR(t, cbor.Tag{Number: 18, Content: []any{header, cbor.Map{{Key: int64(-70002), Value: file}}, r.Canonical(), raw}}), o
}

// worthless is a key of the tests.
func worthless(t *testing.T, of string) *ecdsa.PrivateKey {
	t.Helper()
	seed := sha256.Sum256([]byte("a worthless key of " + of))
	return must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:]))(t)
}

func answerOf(f verify.Finding) string { return strings.TrimSpace(string(f.Status) + " " + f.Rule) }

// certificate makes a certificate of a key, signed by itself.
func certificate(t *testing.T, key crypto.Signer) []byte {
	t.Helper()
	from := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	template := &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "the bank"}, NotBefore: from, NotAfter: from.AddDate(1, 0, 0)}
	return must.Get(x509.CreateCertificate(nil, template, template, key.Public(), key))(t)
}

// TestCertificateOfAStatement: a certificate that the protected header names proves nothing, and contradicts a statement that another key signed.
func TestCertificateOfAStatement(t *testing.T) {
	own, other := worthless(t, "an operator"), worthless(t, "somebody else")
	r, _, o := stated(t, jurattest.New(t), evidence.RoleOperator, "operator")
	hash := func(der []byte) []any { digest := sha256.Sum256(der); return []any{int64(-16), digest[:]} }
	for _, tt := range []struct {
		name           string
		header         func(own, another []byte) cbor.Map
		known, unknown string // with the exporter's key in the trust file, and without
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
			doc, known := exported(t, r, own, o, tt.header(certificate(t, own), certificate(t, other))...)
			must.Equal(t, answerOf(check(t, doc, known).Of(verify.Envelope)), tt.known, "known")
			must.Equal(t, answerOf(check(t, doc, o).Of(verify.Envelope)), tt.unknown, "unknown")
		})
	}
}

// TestCertificateOfARecordsStatement: a record's certificate of the exporter's key is named in the statement, with those that issued it.
func TestCertificateOfARecordsStatement(t *testing.T) {
	h := jurattest.New(t)
	ca := worthless(t, "a CA")
	r, _, o := stated(t, h, evidence.RoleOperator, "operator")
	i := slices.IndexFunc(o.Trust.Keys, func(k trust.Key) bool { return k.Role == evidence.RoleOperator })
	public := o.Trust.Keys[i].Public()
	name := func(common string) *x509.Certificate {
		return &x509.Certificate{SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: common}, NotBefore: jurattest.Start, NotAfter: jurattest.Start.AddDate(1, 0, 0), BasicConstraintsValid: true}
	}
	root, issuing, leaf := name("root"), name("issuing"), name("operator")
	root.IsCA, issuing.IsCA = true, true
	certify := func(of, by *x509.Certificate, public any) []byte {
		return must.Get(x509.CreateCertificate(nil, of, by, public, ca))(t)
	}
	rootDER, issuingDER, leafDER := certify(root, root, ca.Public()), certify(issuing, root, ca.Public()), certify(leaf, issuing, public)
	r.Certificates = [][]byte{rootDER, issuingDER, leafDER}
	doc := statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator"))
	list, _ := part(t, doc)
	header := must.Get(cbor.DecodeMap(list[0].([]byte)))(t)
	value, _ := header.Get(int64(33))
	chain, ok := value.([]any)
	must.Hold(t, ok && len(chain) == 2 && string(chain[0].([]byte)) == string(leafDER) && string(chain[1].([]byte)) == string(issuingDER), "%x", value)
	got := check(t, doc, o).Of(verify.Envelope)
	must.Hold(t, got.Status == verify.Proved, "%+v", got)
	without := o
	without.Trust = &trust.Trust{}
	must.Equal(t, answerOf(check(t, doc, without).Of(verify.Envelope)), "not proved unknown-key")
}

// TestSecondVerifierOnStatements compares the two verifiers on statements of records, with receipts, certificates and what is not read, and with single bytes changed.
func TestSecondVerifierOnStatements(t *testing.T) {
	var files []given
	take := func(name string, doc []byte, o verify.Options) {
		if _, err := verify.File(doc, o); err != nil {
			return // no file of this format: TestStatementsThatAreNone
		}
		files = append(files, given{fmt.Sprintf("%s-%d", name, len(files)), doc, trustOf(t, o), o, nil})
	}
	h := jurattest.NewForStrangers(t)
	r, own, o := stated(t, h, evidence.RoleOperator, "operator")
	included := must.Get(h.SignReceipt(r))(t)
	take("own", own, o)
	take("own-alone", statementBy(t, h, r, evidence.RoleOperator, "operator", scitt.Issuer(evidence.RoleOperator, "operator")), o)
	take("own-other-issuer", statementBy(t, h, r, evidence.RoleOperator, "operator", "urn:jurat:agent:a", included), o)
	take("own-actor", statementBy(t, h, r, evidence.RoleAgent, "a", scitt.Issuer(evidence.RoleAgent, "a"), included), h.Options(t))
	mine, other := worthless(t, "an operator"), worthless(t, "somebody else")
	for _, value := range []any{certificate(t, mine), certificate(t, other), []any{certificate(t, mine), certificate(t, other)}, []any{certificate(t, other), certificate(t, mine)}, []byte("DER")} {
		certified, known := exported(t, r, mine, o, cbor.Pair{Key: int64(33), Value: value})
		take("own-certified", certified, known)
		take("own-certified-unknown", certified, o)
	}
	for _, pair := range unreadPairs {
		take("own-with-what-is-not-read", withPair(t, own, pair), o)
	}
	take("own-cut", own[:len(own)-1], o)
	stamps := bytes.Index(own, []byte(`"timestamps"`)) // to the end of the record: which damaged certificates in tokens can be read, libraries decide
	for i := range 120 {                               // every so many bytes, each bit in its turn
		at := (i*len(own)/120 + i) % len(own)
		if at > stamps && at < stamps+bytes.IndexByte(own[stamps:], '\n') {
			continue
		}
		changed := bytes.Clone(own)
		changed[at] ^= 1 << (i % 8)
		take("own-changed", changed, o)
	}
	must.Hold(t, len(files) >= 70, "only %d files", len(files))
	compareOver(t, files)
}
