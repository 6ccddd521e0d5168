package scitt_test

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/scitt"
	"jurat/internal/kit/cbor"
	"jurat/internal/test/jurattest"
	"jurat/internal/test/must"
)

func sealed(t testing.TB, h *jurattest.House) *evidence.Record {
	t.Helper()
	r := h.Seal(t, evidence.Payload{AgentID: "agent A+B: 1", RequestID: "r1", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`"Which route?"`), Response: jsontext.Value(`"The A9."`), Parameters: jsontext.Value(`{"temperature":0.2}`)})
	h.Seal(t, evidence.Payload{AgentID: "other", RequestID: "r2", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "m-1",
		Prompt: jsontext.Value(`"And?"`), Response: jsontext.Value(`"No."`), Parameters: jsontext.Value(`{}`)})
	r = must.Get(h.Ledger.ProveOne(t.Context(), r))(t)
	return r
}

// operator returns the operator's key in a House.
func operator(t testing.TB, h *jurattest.House) (evidence.Signer, crypto.PublicKey) {
	t.Helper()
	signers := must.Get(h.Keys.Signers(t.Context(), evidence.RoleOperator, "operator"))(t)
	return signers[0], h.Trust(t).Key(signers[0].Info().KeyID).Public()
}

// worthless returns a key of the tests.
func worthless(t testing.TB, algorithm string) (evidence.Signer, crypto.Signer) {
	t.Helper()
	file := must.Get(os.ReadFile(filepath.Join("..", "..", "evidence", "testdata", "keys", "worthless-test-key-"+algorithm+".pem")))(t)
	block, _ := pem.Decode(file)
	key := must.Get(evidence.ParsePrivateKey(block.Bytes))(t)
	signer := must.Get(evidence.NewSigner(key, nil))(t)
	return signer, key
}

func exported(t testing.TB, h *jurattest.House) (*evidence.Record, []byte) {
	t.Helper()
	r := sealed(t, h)
	receipt := must.Get(h.SignReceipt(r))(t)
	signer, _ := operator(t, h)
	doc := must.Get(scitt.Sign(r, scitt.Issuer(evidence.RoleOperator, "operator"), signer, receipt))(t)
	return r, doc
}

func parsed(t testing.TB, doc []byte) *scitt.Statement {
	t.Helper()
	return must.Get(scitt.Parse(doc))(t)
}

func TestStatementOfARecord(t *testing.T) {
	h := jurattest.New(t)
	r, doc := exported(t, h)
	_, public := operator(t, h)
	s := parsed(t, doc)
	if !scitt.Is(doc) || !s.Own() || s.Issuer != "urn:jurat:operator:operator" || s.Subject != r.Payload.RecordID || s.ContentType != scitt.ContentType ||
		!bytes.Equal(s.Payload, r.Canonical()) || len(s.Receipts) != 1 {
		t.Errorf("%+v", s)
	}
	must.Want(t, s.Check(public), nil)
	again := must.Get(s.Record())(t)
	want, _ := r.Marshal()
	if got, err := again.Marshal(); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: %s", err, got)
	}
	origin, log := h.Trust(t).LogKey(s.Receipts[0].KeyID)
	must.Hold(t, origin == jurattest.Origin && s.Receipts[0].Issuer == scitt.LogIssuer(jurattest.Origin), "%q, %+v", origin, s.Receipts[0])
	must.Fail(t, nil)(s.Receipts[0].Check(log, s.Receipts[0].Entry))
	proof, err := s.Receipts[0].Proof()
	must.Hold(t, err == nil && proof.Index == r.Log.Index && proof.Size == 2, "%+v, %v", proof, err)
	page := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "format.md")))(t)
	quoted := strings.Join(strings.Fields(strings.ReplaceAll(string(page), "\n> ", " ")), " ")
	must.Hold(t, strings.Contains(quoted, scitt.About), "docs/format.md does not contain: %s", scitt.About)
}

func TestAlgorithms(t *testing.T) {
	r := sealed(t, jurattest.New(t))
	for _, algorithm := range []string{"es256", "ed25519"} {
		signer, key := worthless(t, algorithm)
		doc := must.Get(scitt.Sign(r, "urn:x", signer))(t)
		must.Want(t, parsed(t, doc).Check(key.Public()), nil, algorithm)
		for _, other := range []string{"es256", "ed25519", "rs256"} {
			_, otherKey := worthless(t, other)
			err := parsed(t, doc).Check(otherKey.Public())
			must.Hold(t, other == algorithm || errors.Is(err, evidence.ErrSignature), "%s under %s: %v", algorithm, other, err)
		}
	}
	signer, _ := worthless(t, "rs256")
	_, err := scitt.Sign(r, "urn:x", signer)
	must.Hold(t, errors.Is(err, scitt.ErrAlgorithm) && strings.Contains(err.Error(), "RS256"), "%v", err)
}

func TestIssuer(t *testing.T) {
	must.Equal(t, scitt.Issuer(evidence.RoleAgent, "agent A:1/ü"), "urn:jurat:agent:agent%20A:1%2F%C3%BC")
}

// TestEveryByte: no byte of a statement can be changed without its record, its signature or its receipt telling.
func TestEveryByte(t *testing.T) {
	h := jurattest.New(t)
	_, doc := exported(t, h)
	_, public := operator(t, h)
	_, log := h.Trust(t).LogKey(parsed(t, doc).Receipts[0].KeyID)
	for i := range doc {
		changed := bytes.Clone(doc)
		changed[i] ^= 1
		s, err := scitt.Parse(changed)
		if err != nil {
			continue
		}
		r, err := s.Record()
		if err != nil || s.Check(public) != nil || len(s.Receipts) != 1 {
			continue
		}
		if _, err := s.Receipts[0].Check(log, s.Receipts[0].Entry); err != nil || string(s.Receipts[0].KeyID) != string(parsed(t, doc).Receipts[0].KeyID) {
			continue
		}
		if r.CheckSignature(0, h.Trust(t).Key(r.Payload.Signers[0].KeyID).Public()) == nil && bytes.Equal(r.LogEntry(r.Log.Counts()), s.Receipts[0].Entry) && !inProofsOfTheRecord(doc, i) {
			t.Errorf("byte %d of %d: nothing tells", i, len(doc))
		}
	}
}

// inProofsOfTheRecord reports whether a byte is in a part of the record that package verify checks, and not this package: token, checkpoint,
// place in the log.
func inProofsOfTheRecord(doc []byte, i int) bool {
	from, to := bytes.Index(doc, []byte(`"log":{`)), bytes.Index(doc, []byte(`"payload":{`))
	stamps := bytes.Index(doc, []byte(`"timestamps":`))
	return i >= from && i < to || i >= stamps && i < stamps+bytes.IndexByte(doc[stamps:], '\n')
}

// parts are a COSE_Sign1 that a stranger may put together.
type parts struct {
	protected, unprotected cbor.Map
	payload                any
	tag                    uint64
}

func statementParts() parts {
	return parts{tag: 18, payload: []byte("paid"), unprotected: cbor.Map{}, protected: cbor.Map{
		{Key: int64(1), Value: int64(-7)}, {Key: int64(3), Value: "text/plain"}, {Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "https://bank.example"}, {Key: int64(2), Value: "transfer-7"}}}}}
}

// signed encodes the parts, signed with a key of the tests by the standard library alone.
func (p parts) signed(t testing.TB, key crypto.Signer) []byte {
	t.Helper()
	header := encoded(t, p.protected)
	payload, _ := p.payload.([]byte)
	tbs := encoded(t, []any{"Signature1", header, []byte{}, payload})
	var signature []byte
	switch private := key.(type) {
	case *ecdsa.PrivateKey:
		digest := sha256.Sum256(tbs)
		r, s, err := ecdsa.Sign(rnd{}, private, digest[:])
		must.Do(t, err)
		signature = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case ed25519.PrivateKey:
		signature = ed25519.Sign(private, tbs)
	}
	return encoded(t, cbor.Tag{Number: p.tag, Content: []any{header, p.unprotected, p.payload, signature}})
}

type rnd struct{}

func (rnd) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(i + 1)
	}
	return len(b), nil
}

func encoded(t testing.TB, value any) []byte {
	t.Helper()
	return must.Get(cbor.Encode(value))(t)
}

// TestOtherStatement reads a statement of another program, also with the other S of its ECDSA signature.
func TestOtherStatement(t *testing.T) {
	_, key := worthless(t, "es256")
	doc := statementParts().signed(t, key)
	s := parsed(t, doc)
	if s.Own() || s.Issuer != "https://bank.example" || s.Subject != "transfer-7" || s.ContentType != "text/plain" || string(s.Payload) != "paid" {
		t.Errorf("%+v", s)
	}
	must.Want(t, s.Check(key.Public()), nil)
	other := bytes.Clone(doc)
	half := other[len(other)-32:]
	new(big.Int).Sub(key.Public().(*ecdsa.PublicKey).Params().N, new(big.Int).SetBytes(half)).FillBytes(half)
	must.Want(t, parsed(t, other).Check(key.Public()), nil)
	must.Refuse(t, "", "it has a record")(s.Record())
}

func TestStatementsRefused(t *testing.T) {
	_, key := worthless(t, "es256")
	for _, tt := range []struct {
		name   string
		change func(p *parts)
		want   string
	}{
		{"another tag", func(p *parts) { p.tag = 17 }, "tag 18"},
		{"a detached payload", func(p *parts) { p.payload = nil }, "detached"},
		{"a payload that is a text", func(p *parts) { p.payload = "paid" }, "neither a byte string nor null"},
		{"claims that are no map", func(p *parts) { p.protected[2].Value = "x" }, "CWT claims (15): not a map"},
		{"an issuer that is no text", func(p *parts) { p.protected[2].Value = cbor.Map{{Key: int64(1), Value: int64(7)}} }, "claim 1 is not a text"},
	} {
		p := statementParts()
		tt.change(&p)
		must.Refuse(t, tt.want, tt.name)(scitt.Parse(p.signed(t, key)))
	}
	doc := statementParts().signed(t, key)
	for name, changed := range map[string][]byte{"bytes after the end": append(bytes.Clone(doc), 0), "no tag": doc[1:], "the tag in two bytes": append([]byte{0xd8, 18}, doc[1:]...),
		"an array of three": append([]byte{0xd2, 0x83}, doc[2:]...), "cut": doc[:len(doc)-1], "nothing": nil} {
		must.Refuse(t, "", name)(scitt.Parse(changed))
	}
}

// TestSignaturesNotPassedOver: what is not understood is said, and never taken for valid.
func TestSignaturesNotPassedOver(t *testing.T) {
	_, key := worthless(t, "es256")
	crit := func(labels ...any) func(p *parts) {
		return func(p *parts) { p.protected = append(p.protected, cbor.Pair{Key: int64(2), Value: labels}) }
	}
	for _, tt := range []struct {
		name   string
		change func(p *parts)
		want   error // nil: valid
		text   string
	}{
		{"nothing", func(p *parts) {}, nil, ""},
		{"a critical parameter that is known", crit(int64(3)), nil, ""},
		{"a critical parameter that is not known", func(p *parts) {
			p.protected = append(p.protected, cbor.Pair{Key: "x", Value: true})
			crit("x")(p)
		}, scitt.ErrUnsupported, "x is critical"},
		{"a critical certificate", func(p *parts) {
			p.protected = append(p.protected, cbor.Pair{Key: int64(33), Value: []byte("x")})
			crit(int64(33))(p)
		}, scitt.ErrUnsupported, "33 is critical"},
		{"a critical parameter that is missing", crit(int64(99)), nil, "99, which is missing"},
		{"crit without a parameter", crit(), nil, "not an array of header parameters"},
		{"crit with bytes", crit([]byte("x")), nil, "not an array of header parameters"},
		{"no algorithm", func(p *parts) { p.protected = p.protected[1:] }, nil, "names no algorithm"},
		{"an algorithm of another kind", func(p *parts) { p.protected[0].Value = int64(-37) }, scitt.ErrUnsupported, "algorithm -37"},
		{"an algorithm by name", func(p *parts) { p.protected[0].Value = "ES256" }, scitt.ErrUnsupported, "not a number"},
		{"the algorithm of another key", func(p *parts) { p.protected[0].Value = int64(-8) }, evidence.ErrSignature, "another kind of key"},
	} {
		p := statementParts()
		tt.change(&p)
		err := parsed(t, p.signed(t, key)).Check(key.Public())
		if tt.text == "" && err != nil || tt.text != "" && (err == nil || !strings.Contains(err.Error(), tt.text)) || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v, %q", tt.name, err, tt.want, tt.text)
		}
	}
	doc := statementParts().signed(t, key)
	p := statementParts()
	p.payload = []byte("owed")
	other := p.signed(t, key)
	swapped := append(bytes.Clone(doc[:len(doc)-64]), other[len(other)-64:]...)
	must.Want(t, parsed(t, swapped).Check(key.Public()), evidence.ErrSignature)
}

// TestRecordsRefused: a statement that claims to be of a record must be the one that is made of it.
func TestRecordsRefused(t *testing.T) {
	h := jurattest.New(t)
	r := sealed(t, h)
	file := must.Get(r.Marshal())(t)
	_, key := worthless(t, "es256")
	own := func() parts {
		return parts{tag: 18, payload: r.Canonical(), unprotected: cbor.Map{{Key: int64(-70002), Value: file}}, protected: cbor.Map{{Key: int64(1), Value: int64(-7)}, {Key: int64(3), Value: scitt.ContentType},
			{Key: int64(15), Value: cbor.Map{{Key: int64(1), Value: "urn:jurat:operator:operator"}, {Key: int64(2), Value: r.Payload.RecordID}}}, {Key: int64(-70001), Value: scitt.About}}}
	}
	must.Get(parsed(t, own().signed(t, key)).Record())(t)
	for _, tt := range []struct {
		name   string
		change func(p *parts)
		want   string
	}{
		{"another payload", func(p *parts) { p.payload = []byte("x") }, "not that of the record"},
		{"another subject", func(p *parts) { p.protected[2].Value = cbor.Map{{Key: int64(2), Value: "x"}} }, `subject is "x"`},
		{"another type", func(p *parts) { p.protected[1].Value = "text/plain" }, "content type"},
		{"a type that is no text", func(p *parts) { p.protected[1].Value = []byte(scitt.ContentType) }, "content type"},
		{"another sentence", func(p *parts) { p.protected[3].Value = "signed by the agent" }, "does not say what the signature is"},
		{"no sentence", func(p *parts) { p.protected = p.protected[:3] }, "does not say what the signature is"},
		{"no record", func(p *parts) { p.unprotected = cbor.Map{} }, "the record is not in it"},
		{"a damaged record", func(p *parts) { p.unprotected[0].Value = file[1:] }, "the record is not in it (header parameter -70002)"},
	} {
		p := own()
		tt.change(&p)
		s := parsed(t, p.signed(t, key))
		if _, err := s.Record(); err == nil || !strings.Contains(err.Error(), tt.want) || s.Own() != (tt.name != "no sentence") {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

// receipt is a receipt over a root, signed with a key of the tests.
func receipt(t testing.TB, key crypto.Signer, root []byte, proof any, protected ...cbor.Pair) []byte {
	t.Helper()
	p := parts{tag: 18, protected: append(cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(395), Value: int64(1)}}, protected...), payload: root,
		unprotected: cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-1), Value: []any{encoded(t, proof)}}}}}}
	return p.signed(t, key)
}

// withReceipt puts receipts into a statement, as a transparency service does.
func withReceipt(t testing.TB, statement []byte, receipts ...[]byte) []byte {
	t.Helper()
	value := must.Get(cbor.Decode(statement))(t)
	list := make([]any, len(receipts))
	for i := range receipts {
		list[i] = receipts[i]
	}
	value.(cbor.Tag).Content.([]any)[1] = cbor.Map{{Key: int64(394), Value: list}}
	return encoded(t, value)
}

// TestProofs holds the proof of each entry of each small tree against package tlog.
func TestProofs(t *testing.T) {
	var entries [][]byte
	hashes := map[int64]tlog.Hash{}
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		list := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			list[i] = hashes[x]
		}
		return list, nil
	})
	for size := int64(1); size <= 33; size++ {
		entry := binary.BigEndian.AppendUint64(nil, uint64(size))
		entries = append(entries, entry)
		stored := must.Get(tlog.StoredHashes(size-1, entry, reader))(t)
		for i, h := range stored {
			hashes[tlog.StoredHashIndex(0, size-1)+int64(i)] = h
		}
		root := must.Get(tlog.TreeHash(size, reader))(t)
		for index := range size {
			path := must.Get(tlog.ProveRecord(size, index, reader))(t)
			p := scitt.Proof{Size: size, Index: index, Path: path}
			must.Give(p.Root(entries[index]))(t, root, "entry", index, "of", size)
			p.Path = append(p.Path, tlog.Hash{})
			must.Refuse(t, "", "entry", index, "of", size)(p.Root(entries[index]))
			if len(path) > 0 {
				p.Path = path[:len(path)-1]
				must.Refuse(t, "", "entry", index, "of", size)(p.Root(entries[index]))
			}
		}
	}
}

func TestReceipts(t *testing.T) {
	_, key := worthless(t, "ed25519")
	_, issuer := worthless(t, "es256")
	bare, entry := statementParts().signed(t, issuer), []byte("an entry")
	leaf := tlog.RecordHash(entry)
	other := tlog.RecordHash([]byte("another entry"))
	root := tlog.NodeHash(leaf, other)
	proof := []any{int64(2), int64(0), []any{other[:]}}
	detached := func(key crypto.Signer, root tlog.Hash, proof any, protected ...cbor.Pair) []byte {
		doc := receipt(t, key, root[:], proof, protected...)
		value := must.Get(cbor.Decode(doc))(t)
		list := value.(cbor.Tag).Content.([]any)
		list[2] = nil
		return encoded(t, value)
	}
	vds := func(n any) cbor.Map {
		return cbor.Map{{Key: int64(1), Value: int64(-8)}, {Key: int64(395), Value: n}}
	}
	for _, tt := range []struct {
		name    string
		receipt []byte
		want    error
		text    string
	}{
		{"detached", detached(key, root, proof), nil, ""},
		{"attached", receipt(t, key, root[:], proof), nil, ""},
		{"another root inside", receipt(t, key, other[:], proof), evidence.ErrSignature, "another root"},
		{"another root", detached(key, other, proof), evidence.ErrSignature, ""},
		{"another key", detached(issuer, root, proof), evidence.ErrSignature, ""},
		{"another path", detached(key, root, []any{int64(2), int64(0), []any{leaf[:]}}), evidence.ErrSignature, ""},
		{"the other leaf", detached(key, root, []any{int64(2), int64(1), []any{other[:]}}), evidence.ErrSignature, ""},
		{"an index beyond the tree", detached(key, root, []any{int64(2), int64(2), []any{other[:]}}), nil, "not in a tree of 2"},
		{"a negative index", detached(key, root, []any{int64(2), int64(-1), []any{other[:]}}), nil, "not in a tree of 2"},
		{"an empty tree", detached(key, root, []any{int64(0), int64(0), []any{}}), nil, "a tree of 0 entries"},
		{"a huge tree", detached(key, root, []any{int64(1) << 62, int64(0), []any{other[:]}}), nil, "want 1 to"},
		{"a path too long", detached(key, root, []any{int64(2), int64(0), []any{other[:], other[:]}}), nil, "does not have the length"},
		{"a path too short", detached(key, root, []any{int64(3), int64(0), []any{other[:]}}), nil, "does not have the length"},
		{"a path of 64", detached(key, root, []any{int64(2), int64(0), slicesOf(64, other[:])}), nil, "at most 63"},
		{"a short node", detached(key, root, []any{int64(2), int64(0), []any{[]byte("x")}}), nil, "byte string of 32"},
		{"a proof of two", detached(key, root, []any{int64(2), int64(0)}), nil, "want two numbers and a path"},
		{"a proof of texts", detached(key, root, []any{"2", int64(0), []any{}}), nil, "want two numbers and a path"},
		{"a critical parameter", detached(key, root, proof, cbor.Pair{Key: "x", Value: int64(1)}, cbor.Pair{Key: int64(2), Value: []any{"x"}}), scitt.ErrUnsupported, "critical"},
		{"another structure", parts{tag: 18, protected: vds(int64(2)), unprotected: cbor.Map{{Key: int64(396), Value: "x"}}}.signed(t, key), scitt.ErrUnsupported, "structure 2"},
		{"no structure", parts{tag: 18, protected: vds(int64(1))[:1], unprotected: cbor.Map{}}.signed(t, key), scitt.ErrUnsupported, "structure 0"},
		{"consistency", parts{tag: 18, protected: vds(int64(1)), unprotected: cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-2), Value: []any{[]byte("x")}}}}}}.signed(t, key), scitt.ErrUnsupported, "no proof of inclusion"},
		{"two proofs", parts{tag: 18, protected: vds(int64(1)), unprotected: cbor.Map{{Key: int64(396), Value: cbor.Map{{Key: int64(-1), Value: []any{encoded(t, proof), encoded(t, proof)}}}}}}.signed(t, key), scitt.ErrUnsupported, "2 proofs"},
	} {
		s := parsed(t, withReceipt(t, bare, tt.receipt))
		got, err := s.Receipts[0].Check(key.Public(), entry)
		valid := tt.want == nil && tt.text == ""
		if valid != (err == nil) || valid && got != root || tt.want != nil && !errors.Is(err, tt.want) || !valid && !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %v, %q", tt.name, err, tt.want, tt.text)
		}
	}
}

func slicesOf(n int, node []byte) []any {
	list := make([]any, n)
	for i := range list {
		list[i] = node
	}
	return list
}

// TestNoReceipt: a log signs no root that it has not signed in a checkpoint.
func TestNoReceipt(t *testing.T) {
	h := jurattest.New(t)
	r := sealed(t, h)
	for name, change := range map[string]func(r *evidence.Record){
		"no place":           func(r *evidence.Record) { r.Log = nil },
		"no checkpoint":      func(r *evidence.Record) { r.Log.Checkpoint = "" },
		"another checkpoint": func(r *evidence.Record) { r.Log.Checkpoint = strings.Replace(r.Log.Checkpoint, "\n2\n", "\n3\n", 1) },
		"another place":      func(r *evidence.Record) { r.Log.Index = 1 },
		"beyond the log":     func(r *evidence.Record) { r.Log.Index = 2 },
		"another path":       func(r *evidence.Record) { r.Log.Proof = [][]byte{make([]byte, 32)} },
		"other counts":       func(r *evidence.Record) { r.Log.ActorSeq++ },
	} {
		changed, log := *r, *r.Log
		changed.Log = &log
		change(&changed)
		must.Fail(t, scitt.ErrNoReceipt, name)(h.SignReceipt(&changed))
	}
}

// FuzzParse: no statement panics, and what opens is written again as the same statement.
func FuzzParse(f *testing.F) {
	h := jurattest.New(f)
	_, doc := exported(f, h)
	_, public := operator(f, h)
	_, key := worthless(f, "es256")
	f.Add(doc)
	f.Add(statementParts().signed(f, key))
	other := tlog.RecordHash([]byte("x"))
	f.Add(withReceipt(f, statementParts().signed(f, key), receipt(f, key, other[:], []any{int64(2), int64(0), []any{other[:]}})))
	f.Fuzz(func(t *testing.T, doc []byte) {
		s, err := scitt.Parse(doc)
		if err != nil {
			return
		}
		r, err := s.Record()
		must.Hold(t, err != nil || bytes.Equal(r.Canonical(), s.Payload), "a record with another payload")
		valid := s.Check(public) == nil
		for i := range s.Receipts {
			_, err := s.Receipts[i].Check(public, s.Receipts[i].Entry)
			must.Hold(t, err != nil || valid, "a receipt that the operator never signed")
		}
	})
}
