package verify_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/sha256"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/cbor"
	"jurat/internal/ecdsasig"
	"jurat/jurattest"
	"jurat/scitt"
	"jurat/verify"
	"jurat/verify/trust"
)

// stated is a record, its statement by an actor, and the options that prove it.
func stated(t *testing.T, h *jurattest.House, role evidence.Role, name string) (*evidence.Record, []byte, verify.Options) {
	t.Helper()
	r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := h.SignReceipt(r)
	if err != nil {
		t.Fatal(err)
	}
	doc := statementBy(t, h, r, role, name, scitt.Issuer(role, name), receipt)
	return r, doc, h.Options(t)
}

func statementBy(t *testing.T, h *jurattest.House, r *evidence.Record, role evidence.Role, name, issuer string, receipts ...[]byte) []byte {
	t.Helper()
	signers, err := h.Keys.Signers(t.Context(), role, name)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := scitt.Sign(r, issuer, signers[0], receipts...)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// part returns the parts of a COSE_Sign1 to be changed, and what writes them again.
func part(t *testing.T, doc []byte) (list []any, again func() []byte) {
	t.Helper()
	value, err := cbor.Decode(bytes.Clone(doc))
	if err != nil {
		t.Fatal(err)
	}
	return value.(cbor.Tag).Content.([]any), func() []byte { return inCBOR(t, value) }
}

func inCBOR(t *testing.T, value any) []byte {
	t.Helper()
	doc, err := cbor.Encode(value)
	if err != nil {
		t.Fatal(err)
	}
	return doc
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
			header, err := cbor.DecodeMap(list[0].([]byte))
			if err != nil {
				t.Fatal(err)
			}
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
		{"a receipt of another structure", func(t *testing.T, _ *jurattest.House, _ *evidence.Record, doc []byte, _ *verify.Options) []byte {
			return inReceipt(t, doc, func(list []any) {
				header, err := cbor.DecodeMap(list[0].([]byte))
				if err != nil {
					t.Fatal(err)
				}
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
			report := verified(t, doc, o)
			if got := report.Of(verify.Envelope); got.Status != tt.status || got.Rule != tt.rule || report.Outcome != tt.status || report.Kind != verify.OneRecord {
				t.Errorf("%+v, outcome %s", got, report.Outcome)
			}
			if report.Statement == nil || report.Statement.Subject != r.Payload.RecordID {
				t.Errorf("%+v", report.Statement)
			}
		})
	}
}

// TestStatementByTheActor: the record's own actor may sign its statement.
func TestStatementByTheActor(t *testing.T) {
	_, doc, o := stated(t, jurattest.New(t), evidence.RoleAgent, "a")
	report := verified(t, doc, o)
	if got := report.Of(verify.Envelope); got.Status != verify.Proved || !strings.Contains(got.Reason, `agent "a" signed the statement`) {
		t.Errorf("%+v", got)
	}
	if got := report.Statement.Receipts; len(got) != 1 || got[0].Status != verify.Proved {
		t.Errorf("%+v", got)
	}
}

// TestStatementWithOneOfTwoSignatures: a COSE_Sign1 has one signature, so keys that sign only together prove no export.
func TestStatementWithOneOfTwoSignatures(t *testing.T) {
	h := jurattest.New(t)
	h.Keys.PostQuantum = true
	_, doc, o := stated(t, h, evidence.RoleOperator, "operator")
	if got := verified(t, doc, o).Of(verify.Envelope); got.Status != verify.NotProved || got.Rule != "second-signature" {
		t.Errorf("%+v", got)
	}
}

// TestInsideAStatement: an honest statement does not help a record that lies.
func TestInsideAStatement(t *testing.T) {
	h := jurattest.New(t)
	r, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
	if err != nil {
		t.Fatal(err)
	}
	other, err := h.Ledger.ProveOne(t.Context(), h.Seal(t, output("a")))
	if err != nil {
		t.Fatal(err)
	}
	changed := *r
	changed.Signatures = other.Signatures
	doc := statementBy(t, h, &changed, evidence.RoleOperator, "operator", "urn:jurat:operator:operator")
	report := verified(t, doc, h.Options(t))
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
	early, err := h.Ledger.ProveOne(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := h.SignReceipt(early)
	if err != nil {
		t.Fatal(err)
	}
	h.Seal(t, output("c"))
	if _, err := h.Ledger.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	late, err := h.Ledger.ProveOneLatest(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	list, again := part(t, receipt)
	header := list[1].(cbor.Map)
	i := slices.IndexFunc(header, func(p cbor.Pair) bool { return p.Key == int64(396) })
	value, err := cbor.Decode(header[i].Value.(cbor.Map)[0].Value.([]any)[0].([]byte))
	if err != nil {
		t.Fatal(err)
	}
	proof := value.([]any)
	proof[0] = proof[0].(int64) + 1
	header[i].Value = cbor.Map{{Key: int64(-1), Value: []any{inCBOR(t, proof)}}}
	report := verified(t, statementBy(t, h, late, evidence.RoleOperator, "operator", "urn:jurat:operator:operator", again()), h.Options(t))
	if got := report.Of(verify.Order); answerOf(got) != "proved" || report.Outcome != verify.Proved {
		t.Errorf("%+v, outcome %s", got, report.Outcome)
	}
	if got := report.Statement.Receipts[0]; got.Status != verify.Proved || !strings.HasSuffix(got.Reason, "has the record") {
		t.Errorf("%+v", got)
	}
}

// TestDamagedStatement: a statement that is recognisably jurat's is reported, and others' damaged files are not ours.
func TestDamagedStatement(t *testing.T) {
	_, doc, o := stated(t, jurattest.New(t), evidence.RoleOperator, "operator")
	for _, end := range []int{200, len(doc) - 1} {
		report := verified(t, doc[:end], o)
		if got := report.Of(verify.Content); report.Outcome != verify.NotProved || answerOf(got) != "not proved form" {
			t.Errorf("cut after %d bytes: %+v", end, report.Guarantees)
		}
	}
	list, again := part(t, doc)
	list[2] = []byte("{}")
	if report := verified(t, again(), o); report.Of(verify.Content).Rule != "form" || report.Of(verify.Envelope).Status != verify.NotProved {
		t.Errorf("another payload: %+v", report.Guarantees)
	}
	if _, err := verify.File([]byte{0xd2, 0x84, 0x40}, o); !errors.Is(err, verify.ErrNotOurs) {
		t.Error(err)
	}
}

// TestUnprotectedRefutesNothing puts parts beside statements that anybody can put there, and takes others out.
func TestUnprotectedRefutesNothing(t *testing.T) {
	s := newStranger(t)
	h := jurattest.New(t)
	_, own, o := stated(t, h, evidence.RoleOperator, "operator")
	others := verify.Options{Trust: s.known(t)}
	impossible := s.receipt(t, func(_ cbor.Map, proof []any) { proof[1] = int64(2) })([]byte("x"))
	for name, given := range map[string]struct {
		doc []byte
		o   verify.Options
	}{"own": {own, o}, "others": {s.statement(t, s.receipt(t, nil)), others}, "without a protected kid": {s.withoutKeyID(t), others}} {
		before := verified(t, given.doc, given.o)
		for what, add := range map[string]cbor.Pair{
			"an algorithm": {Key: int64(1), Value: int64(-7)}, "crit": {Key: int64(2), Value: []any{int64(1)}}, "a content type": {Key: int64(3), Value: "text/html"},
			"a kid": {Key: int64(4), Value: []byte("key-1")}, "claims": {Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "x"}}}, "a certificate": {Key: int64(33), Value: []byte("x")},
			"a structure": {Key: int64(395), Value: int64(7)}, "proofs": {Key: int64(396), Value: "x"}, "a number": {Key: int64(99), Value: int64(1)}, "a text": {Key: "x", Value: nil},
			"sentences": {Key: int64(-70001), Value: "x"}, "an entry": {Key: int64(-70003), Value: "x"},
		} {
			list, again := part(t, given.doc)
			list[1] = append(list[1].(cbor.Map), add)
			if got := verified(t, again(), given.o); name == "own" && got.Outcome != before.Outcome {
				t.Errorf("%s, with %s: %s, %+v", name, what, got.Outcome, got.Details)
			} else if got.Outcome == verify.Refuted {
				t.Errorf("%s, with %s: refuted: %+v", name, what, got.Details)
			}
		}
		for what, receipts := range map[string]any{"no array": "x", "none": []any{}, "a text": []any{"x"}, "no COSE": []any{[]byte{0}}, "an impossible proof": []any{impossible}, "seventeen": slices.Repeat([]any{impossible}, 17)} {
			list, again := part(t, given.doc)
			header := slices.DeleteFunc(list[1].(cbor.Map), func(p cbor.Pair) bool { return p.Key == int64(394) })
			list[1] = append(header, cbor.Pair{Key: int64(394), Value: receipts})
			got := verified(t, again(), given.o)
			if got.Outcome == verify.Refuted || name == "own" && got.Outcome != before.Outcome {
				t.Errorf("%s, with receipts that are %s: %s, %+v", name, what, got.Outcome, got.Details)
			}
		}
		for what, record := range map[string]any{"missing": nil, "a text": "x", "damaged": []byte("x")} {
			list, again := part(t, given.doc)
			header := slices.DeleteFunc(list[1].(cbor.Map), func(p cbor.Pair) bool { return p.Key == int64(-70002) })
			if list[1] = header; record != nil {
				list[1] = append(header, cbor.Pair{Key: int64(-70002), Value: record})
			}
			got := verified(t, again(), given.o)
			if want := "not proved no-record"; got.Outcome == verify.Refuted || name == "own" && answerOf(got.Of(verify.Content)) != want {
				t.Errorf("%s, with a record that is %s: %s, %+v", name, what, got.Outcome, got.Guarantees)
			}
		}
		for what, pair := range unreadPairs {
			got, err := verify.File(withPair(t, given.doc, pair), given.o)
			if name == "own" && err == nil && (got.Outcome != verify.NotProved || answerOf(got.Of(verify.Content)) != "not proved form") || name == "own" && err != nil {
				t.Errorf("%s, with %s: %v, %+v", name, what, err, got)
			} else if name != "own" && !errors.Is(err, verify.ErrNotOurs) && (err != nil || got.Outcome == verify.Refuted) {
				t.Errorf("%s, with %s: %v, %+v", name, what, err, got)
			}
		}
		list, again := part(t, given.doc)
		list[1] = cbor.Map{}
		if got := verified(t, again(), given.o); got.Outcome != verify.NotProved {
			t.Errorf("%s, with an empty header: %s", name, got.Outcome)
		}
	}
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

// withoutKeyID is a statement by another key than the bank's, which names none.
func (s *stranger) withoutKeyID(t *testing.T) []byte {
	other := newStranger(t)
	other.rekey()
	other.header = slices.Delete(slices.Clone(other.header), 2, 3)
	return other.statement(t)
}

// A stranger signs statements and keeps a log.
type stranger struct {
	issuer  *ecdsa.PrivateKey
	service ed25519.PrivateKey
	header  cbor.Map
	payload []byte
}

func newStranger(t *testing.T) *stranger {
	t.Helper()
	seed := sha256.Sum256([]byte("a worthless key of a stranger"))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return &stranger{issuer: key, service: ed25519.NewKeyFromSeed(seed[:]), payload: []byte("Transfer 7 was paid."), header: cbor.Map{{Key: int64(1), Value: int64(-7)}, {Key: int64(3), Value: "text/plain"}, {Key: int64(4), Value: []byte("key-1")},
		{Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "https://bank.example"}, {Key: int64(2), Value: "transfer-7"}}}}}
}

// statement signs a payload, with receipts that service makes of the entry.
func (s *stranger) statement(t *testing.T, receipts ...func(entry []byte) []byte) []byte {
	t.Helper()
	header, payload := inCBOR(t, s.header), s.payload
	digest := sha256.Sum256(inCBOR(t, []any{"Signature1", header, []byte{}, payload}))
	der, err := ecdsa.SignASN1(nil, s.issuer, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	low, err := ecdsasig.LowS(der)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := ecdsasig.Raw(low)
	if err != nil {
		t.Fatal(err)
	}
	bare := cbor.Tag{Number: 18, Content: []any{header, cbor.Map{}, payload, raw}}
	entry := inCBOR(t, bare)
	if len(receipts) == 0 {
		return entry
	}
	var list []any
	for _, make := range receipts {
		list = append(list, make(entry))
	}
	bare.Content.([]any)[1] = cbor.Map{{Key: int64(394), Value: list}}
	return inCBOR(t, bare)
}

// receipt returns the receipt of a log with two entries.
func (s *stranger) receipt(t *testing.T, change func(header cbor.Map, proof []any)) func(entry []byte) []byte {
	return func(entry []byte) []byte {
		other := tlog.RecordHash([]byte("another"))
		root := tlog.NodeHash(tlog.RecordHash(entry), other)
		header := cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(4), Value: []byte("service-1")}, {Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "https://log.example"}}}, {Key: int64(395), Value: int64(1)}}
		proof := []any{int64(2), int64(0), []any{other[:]}}
		if change != nil {
			change(header, proof)
		}
		signed := inCBOR(t, header)
		signature := ed25519.Sign(s.service, inCBOR(t, []any{"Signature1", signed, []byte{}, root[:]}))
		return inCBOR(t, cbor.Tag{Number: 18, Content: []any{signed, cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-1), Value: []any{inCBOR(t, proof)}}}}}, nil, signature}})
	}
}

// known is the trust of a reader who knows both keys.
func (s *stranger) known(t *testing.T) *trust.Trust {
	t.Helper()
	made := &trust.Trust{}
	add := func(name, issuer string, use trust.StatementUse, kid string, public any) {
		der, err := evidence.MarshalPublicKey(public)
		if err != nil {
			t.Fatal(err)
		}
		algorithm, err := evidence.AlgorithmOf(public)
		if err != nil {
			t.Fatal(err)
		}
		made.SCITT = append(made.SCITT, trust.StatementKey{Name: name, Issuer: issuer, Use: use, Algorithm: algorithm, KeyID: evidence.DigestOf(der), PublicKey: der, COSEKeyID: []byte(kid)})
	}
	add("the bank", "https://bank.example", trust.IssuesStatements, "key-1", s.issuer.Public())
	add("the log", "https://log.example", trust.IssuesReceipts, "service-1", s.service.Public())
	prepared, err := made.Prepared()
	if err != nil {
		t.Fatal(err)
	}
	doc, err := prepared.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if prepared, err = trust.Parse(doc); err != nil {
		t.Fatal(err)
	}
	return prepared
}

func TestEveryRuleOfOthersStatements(t *testing.T) {
	type answers struct{ content, order, receipt string } // "proved", or status and rule; receipt: the status of the first
	for _, tt := range []struct {
		name   string
		change func(s *stranger, tr *trust.Trust)
		make   func(t *testing.T, s *stranger) []byte
		want   answers
		says   string
	}{
		{name: "nothing", want: answers{"proved", "proved", "proved"}},
		{name: "no trust", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT = nil }, want: answers{"not proved unknown-key", "not proved receipt", "not proved"}, says: "no SCITT key of the issuer"},
		{name: "an unknown service", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT = tr.SCITT[:1] }, want: answers{"proved", "not proved receipt", "not proved"}, says: "not checked: the trust file has no SCITT key of the transparency service"},
		{name: "an issuer's key that signs no receipts", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT[1].Use = trust.IssuesStatements }, want: answers{"proved", "not proved receipt", "not proved"}},
		{name: "a service's key that signs no statements", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT[0].Use = trust.IssuesReceipts }, want: answers{"not proved unknown-key", "proved", "proved"}},
		{name: "another issuer's key", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT[0].Issuer = "https://other.example" }, want: answers{"not proved unknown-key", "proved", "proved"}},
		{name: "a revoked key", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT[0].Revoked = jurattest.Start }, want: answers{"proved", "proved", "proved"}, says: "revoked from"},
		{name: "a revoked service", change: func(_ *stranger, tr *trust.Trust) { tr.SCITT[1].Revoked = jurattest.Start }, want: answers{"proved", "not proved receipt", "not proved"}, says: "revoked from"},
		{name: "another key of the issuer", change: func(s *stranger, _ *trust.Trust) { s.header[2].Value = []byte("key-2"); s.rekey() }, want: answers{"not proved unknown-key", "proved", "proved"}, says: "none of the keys"},
		{name: "a wrong signature", change: func(s *stranger, _ *trust.Trust) { s.rekey() }, want: answers{"refuted signature", "proved", "proved"}},
		{name: "an unknown algorithm", change: func(s *stranger, _ *trust.Trust) { s.header[0].Value = int64(-37) }, want: answers{"not proved unsupported", "proved", "proved"}},
		{name: "a certificate of its own", change: func(s *stranger, _ *trust.Trust) {
			s.header = append(s.header, cbor.Pair{Key: int64(33), Value: []byte("DER")})
			s.header[3].Value = cbor.Map{{Key: int64(1), Value: "https://other.example"}}
		}, want: answers{"not proved unknown-key", "proved", "proved"}, says: "proves nothing by itself"},
		{name: "no issuer", change: func(s *stranger, _ *trust.Trust) { s.header = s.header[:3] }, want: answers{"not proved unknown-key", "proved", "proved"}, says: "names no issuer"},
		{name: "no receipt", make: func(t *testing.T, s *stranger) []byte { return s.statement(t) }, want: answers{"proved", "not proved no-receipt", ""}},
		{name: "a receipt of another statement", make: func(t *testing.T, s *stranger) []byte {
			return s.statement(t, func([]byte) []byte { return s.receipt(t, nil)([]byte("another")) })
		}, want: answers{"proved", "not proved receipt", "not proved"}, says: "no key that the trust file has"},
		{name: "a receipt for the digest", make: func(t *testing.T, s *stranger) []byte {
			return s.statement(t, func(entry []byte) []byte {
				digest := sha256.Sum256(entry)
				return s.receipt(t, nil)(digest[:])
			})
		}, want: answers{"proved", "proved", "proved"}},
		{name: "another structure", make: func(t *testing.T, s *stranger) []byte {
			return s.statement(t, s.receipt(t, func(header cbor.Map, _ []any) { header[3].Value = int64(2) }))
		}, want: answers{"proved", "not proved receipt", "not proved"}, says: "structure 2"},
		{name: "an impossible proof", make: func(t *testing.T, s *stranger) []byte {
			return s.statement(t, s.receipt(t, func(_ cbor.Map, proof []any) { proof[1] = int64(2) }))
		}, want: answers{"proved", "not proved receipt", "not proved"}},
		{name: "a good receipt beside an unknown one", make: func(t *testing.T, s *stranger) []byte {
			return s.statement(t, s.receipt(t, nil), s.receipt(t, func(header cbor.Map, _ []any) { header[3].Value = int64(2) }))
		}, want: answers{"proved", "proved", "proved"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newStranger(t)
			tr := s.known(t)
			if tt.change != nil {
				tt.change(s, tr)
			}
			doc := s.statement(t, s.receipt(t, nil))
			if tt.make != nil {
				doc = tt.make(t, s)
			}
			report := verified(t, doc, verify.Options{Trust: tr})
			got := answers{content: answerOf(report.Of(verify.Content)), order: answerOf(report.Of(verify.Order))}
			if len(report.Statement.Receipts) > 0 {
				got.receipt = string(report.Statement.Receipts[0].Status)
			}
			if got != tt.want || report.Kind != verify.SignedStatement || report.Records != 0 {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
			doc, err := report.Marshal()
			if err != nil || !strings.Contains(string(doc), tt.says) {
				t.Errorf("%v, want %q: %s", err, tt.says, doc)
			}
			if (report.Outcome == verify.Proved) != (got.content == "proved" && got.order == "proved" && tt.says != "revoked from") {
				t.Errorf("outcome %s", report.Outcome)
			}
			for _, g := range []verify.Guarantee{verify.Time, verify.NonRepudiation} {
				if report.Of(g).Status != verify.NotProved {
					t.Errorf("%+v", report.Of(g))
				}
			}
		})
	}
}

// rekey signs with another key from now on.
// TestManyReceiptsOfALongStatement: what receipts are checked against is made once, however many receipts and keys there are.
func TestManyReceiptsOfALongStatement(t *testing.T) {
	s := newStranger(t)
	s.payload = make([]byte, 1<<20)
	known := s.known(t)
	for n := range 8 {
		seed := sha256.Sum256([]byte{byte(n)})
		der, err := evidence.MarshalPublicKey(ed25519.NewKeyFromSeed(seed[:]).Public())
		if err != nil {
			t.Fatal(err)
		}
		known.SCITT = append(known.SCITT, trust.StatementKey{Name: fmt.Sprint("the log ", n), Issuer: "https://log.example", Use: trust.IssuesReceipts, Algorithm: evidence.Ed25519, KeyID: evidence.DigestOf(der), PublicKey: der})
	}
	prepared, err := known.Prepared()
	if err != nil {
		t.Fatal(err)
	}
	other := sha256.Sum256([]byte("a key that nobody knows"))
	s.service = ed25519.NewKeyFromSeed(other[:])
	receipts := make([]func([]byte) []byte, scitt.MaxReceipts)
	for n := range receipts {
		receipts[n] = s.receipt(t, nil)
	}
	doc := s.statement(t, receipts...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	report, err := verify.File(doc, verify.Options{Trust: prepared})
	runtime.ReadMemStats(&after)
	if err != nil || len(report.Statement.Receipts) != scitt.MaxReceipts || report.Of(verify.Order).Status != verify.NotProved {
		t.Fatalf("%v, %+v", err, report)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 40<<20 {
		t.Errorf("%d MiB were allocated to check %d receipts of a statement of 1 MiB", allocated>>20, scitt.MaxReceipts)
	}
	t.Logf("%d KiB allocated", (after.TotalAlloc-before.TotalAlloc)>>10)
}

func (s *stranger) rekey() {
	seed := sha256.Sum256([]byte("another worthless key"))
	s.issuer, _ = ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
}

func answerOf(f verify.Finding) string { return strings.TrimSpace(string(f.Status) + " " + f.Rule) }

// TestStatementPolicies: what no statement can have does not count, unless the reader asks for it.
func TestStatementPolicies(t *testing.T) {
	s := newStranger(t)
	doc := s.statement(t, s.receipt(t, nil))
	for _, tt := range []struct {
		name string
		o    verify.Options
		want verify.Status
	}{
		{"default", verify.Options{}, verify.Proved},
		{"strict", verify.Options{Policy: verify.Strict}, verify.Proved},
		{"before", verify.Options{Before: jurattest.Start}, verify.NotProved},
		{"time", verify.Options{Require: []verify.Guarantee{verify.Time}}, verify.NotProved},
		{"vantage", verify.Options{Require: []verify.Guarantee{verify.Vantage}}, verify.NotProved},
	} {
		tt.o.Trust = s.known(t)
		if got := verified(t, doc, tt.o); got.Outcome != tt.want {
			t.Errorf("%s: %s, %+v", tt.name, got.Outcome, got.Guarantees)
		}
	}
}

func TestStatementKeysRefused(t *testing.T) {
	good := newStranger(t).known(t)
	for name, change := range map[string]func(k *trust.StatementKey){
		"name is empty":      func(k *trust.StatementKey) { k.Name = "" },
		"issuer is empty":    func(k *trust.StatementKey) { k.Issuer = "" },
		`use is "x"`:         func(k *trust.StatementKey) { k.Use = "x" },
		"public_key":         func(k *trust.StatementKey) { k.PublicKey = nil },
		`alg is "RS256"`:     func(k *trust.StatementKey) { k.Algorithm = evidence.RS256 },
		"key_id is":          func(k *trust.StatementKey) { k.KeyID[0]++ },
		"is there twice for": func(k *trust.StatementKey) { *k = good.SCITT[1] },
	} {
		bad := new(trust.Trust)
		for _, k := range good.SCITT {
			bad.SCITT = append(bad.SCITT, trust.StatementKey{Name: k.Name, Issuer: k.Issuer, Use: k.Use, Algorithm: k.Algorithm, KeyID: k.KeyID, PublicKey: k.PublicKey})
		}
		change(&bad.SCITT[0])
		if _, err := bad.Prepared(); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
