// Package jurattest is a test kit: an installation in a temporary folder, in which every key, clock, id and nonce is known.
// So two runs of the same test make the same bytes.
//
// Its keys are derived from their owners' names, and its time-stamping authority is the mock, whose key is public.
// Its records prove nothing.
package jurattest

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/scitt"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// Origin is the name of a House's log.
const Origin = "jurattest.example/log"

// Start is the time at which a House's clock begins.
var Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// A House is an installation for one test. Its log accepts records that contradict each other, as a hostile operator's
// log does.
type House struct {
	Ledger *ledger.Ledger
	Keys   *Keys
	Now    func() time.Time // a millisecond later at each call; a test may set another clock before it uses the House
	Random io.Reader        // the same bytes in each House

	log       note.Signer
	verifier  string
	authority *timestamp.Authority
}

// New makes a House.
func New(t testing.TB) *House {
	t.Helper()
	return furnish(t, "", timestamp.NewMock())
}

// NewNeighbour makes the House of another owner: another log, and other keys for actors of the same names.
func NewNeighbour(t testing.TB) *House {
	t.Helper()
	return furnishWith(t, "a neighbour's ", timestamp.NewMock(), "neighbour."+Origin, 3)
}

// NewImpostor makes a House whose actors have the same names and other keys.
func NewImpostor(t testing.TB) *House {
	t.Helper()
	return furnish(t, "an impostor's ", timestamp.NewMock())
}

func furnish(t testing.TB, whose string, authority *timestamp.Authority) *House {
	t.Helper()
	return furnishWith(t, whose, authority, Origin, 2)
}

func furnishWith(t testing.TB, whose string, authority *timestamp.Authority, origin string, seed byte) *House {
	t.Helper()
	h := &House{Keys: &Keys{whose: whose, made: map[evidence.KeyID]trust.Key{}}, Now: clock(), Random: stream(1),
		authority: authority}
	private, public, err := note.GenerateKey(stream(seed), origin)
	check(t, err)
	signer, err := note.NewSigner(private)
	check(t, err)
	verifier, err := note.NewVerifier(public)
	check(t, err)
	h.verifier, h.log = public, signer
	store, err := sqlite.UnsafeCreate(t.Context(), filepath.Join(t.TempDir(), "log.db"))
	check(t, err)
	h.Ledger, err = ledger.Create(t.Context(), ledger.Config{Store: store, Signer: signer, Verifier: verifier,
		UnsafeContradictions: true, Stamper: stamper{authority}, Random: h.Random, Now: func() time.Time { return h.Now() }})
	check(t, err)
	t.Cleanup(func() { check(t, h.Ledger.Close()) })
	return h
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clock() func() time.Time {
	var mu sync.Mutex
	now := Start
	return func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(time.Millisecond)
		return now
	}
}

// stream returns pseudo-random bytes that are the same every time.
func stream(n byte) io.Reader { return rand.NewChaCha8([32]byte{n}) }

type stamper struct{ *timestamp.Authority }

func (s stamper) Stamp(_ context.Context, imprint [32]byte) (ledger.Stamped, error) {
	token, err := s.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
	return ledger.Stamped{Tokens: [][]byte{token}}, err
}

// Keys gives every actor a key derived from its role and name, and with PostQuantum a second one.
type Keys struct {
	PostQuantum bool // must be set before the first key is given out: the trust file cannot say that a key once signed alone

	whose string
	mu    sync.Mutex // held while made is read or written
	made  map[evidence.KeyID]trust.Key
}

// Signers returns the signers of an actor, for a trial. Its errors are those of evidence.NewSigner.
func (k *Keys) Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error) {
	seed := sha256.Sum256([]byte(k.whose + "jurattest: a worthless key\x00" + string(role) + "\x00" + name))
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:])
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	keys := []crypto.Signer{private}
	if k.PostQuantum {
		second := sha256.Sum256(append(seed[:], "and a second one"...))
		keys = append(keys, evidence.NewMLDSA65(&second))
	}
	return k.give(trust.Key{Name: name, Role: role, Custody: trust.ByOperator}, keys)
}

// give makes signers of an actor's keys, and notes that each signs with the others.
func (k *Keys) give(whose trust.Key, keys []crypto.Signer) ([]evidence.Signer, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	var signers []evidence.Signer
	var ids []evidence.KeyID
	for _, private := range keys {
		signer, err := evidence.NewSigner(private, nil)
		if err != nil {
			return nil, err
		}
		key, info := whose, signer.Info()
		if key.PublicKey, err = evidence.MarshalPublicKey(private.Public()); err != nil {
			return nil, err
		}
		key.Algorithm, key.KeyID = info.Algorithm, info.KeyID
		k.made[info.KeyID] = key
		signers, ids = append(signers, signer), append(ids, info.KeyID)
	}
	for _, id := range ids {
		key := k.made[id]
		key.With = slices.DeleteFunc(slices.Clone(ids), func(other evidence.KeyID) bool { return other == id })
		k.made[id] = key
	}
	return signers, nil
}

// Trust returns the trust file of the House: every key given out so far, its authority, the log. If the authority is
// the mock, verification also needs verify.Options.UnsafeAllowMock.
func (h *House) Trust(t testing.TB) *trust.Trust {
	t.Helper()
	trusted := &trust.Trust{Format: trust.Format, Logs: []string{h.verifier}, Authorities: []trust.Authority{
		{Name: "mock", Certificate: h.authority.Certificates()[1].Raw, Clock: trust.OperatorClock}}}
	h.Keys.mu.Lock()
	for _, key := range h.Keys.made {
		trusted.Keys = append(trusted.Keys, key)
	}
	h.Keys.mu.Unlock()
	doc, err := trusted.Marshal()
	check(t, err)
	parsed, err := trust.Parse(doc)
	check(t, err)
	return parsed
}

// Options returns options to verify with the House's own trust.
func (h *House) Options(t testing.TB) verify.Options {
	t.Helper()
	return verify.Options{Trust: h.Trust(t), UnsafeAllowMock: true}
}

// SignCheckpoint signs any checkpoint with the log's key. The key is the same in every House, so two Houses are two
// histories under one key. Its errors are those of operator.SignCheckpoint.
func (h *House) SignCheckpoint(c operator.Checkpoint) (string, error) {
	return operator.SignCheckpoint(c, h.log)
}

// SignReceipt makes a receipt of the log for a record. Its errors are those of scitt.SignReceipt.
func (h *House) SignReceipt(r *evidence.Record) ([]byte, error) {
	return scitt.SignReceipt(r, scitt.Log{Key: h.verifier, Sign: h.log.Sign})
}

// Seal seals a payload with the keys of its actor.
func (h *House) Seal(t testing.TB, p evidence.Payload, apart ...string) *evidence.Record {
	t.Helper()
	draft, err := evidence.NewDraft(p)
	check(t, err)
	signers, err := h.Keys.Signers(t.Context(), draft.Role(), draft.Actor())
	check(t, err)
	r, err := h.Ledger.Seal(t.Context(), draft.SealingApart(apart...), signers)
	check(t, err)
	return r
}

// Bundle proves records against the log's checkpoint.
func (h *House) Bundle(t testing.TB, records ...*evidence.Record) *evidence.Bundle {
	t.Helper()
	b, err := h.Ledger.Prove(t.Context(), records...)
	check(t, err)
	return b
}

// Prompting says what an agent's program records as the input of a turn.
type Prompting bool

const (
	WholeHistory Prompting = true  // everything that was said before
	OnlyNew      Prompting = false // only messages since the agent's last turn
)

// Record seals a conversation of chat messages as its agent would: each turn is a model output in one chain, and
// names the previous one. No record holds messages after the agent's last turn.
func (h *House) Record(t testing.TB, conversation []byte, how Prompting, apart ...string) []*evidence.Record {
	t.Helper()
	var messages []json.RawMessage
	check(t, json.Unmarshal(conversation, &messages))
	var records []*evidence.Record
	from := 0
	for i, raw := range messages {
		var m struct{ Role string }
		check(t, json.Unmarshal(raw, &m))
		if m.Role != "assistant" {
			continue
		}
		prompt, err := json.Marshal(messages[from:i])
		check(t, err)
		p := evidence.Payload{ActionType: evidence.ModelOutput, AgentID: "recorded-agent", RequestID: fmt.Sprintf("turn-%d", len(records)+1),
			Timestamp: evidence.FormatTime(h.Now()), Model: "gpt-4o", ModelVersion: "gpt-4o-2024-08-06", Parameters: jsontext.Value("{}"),
			Prompt: prompt, Response: jsontext.Value(raw), ChainID: "recorded", ChainPosition: int64(len(records) + 1)}
		if n := len(records); n > 0 {
			p.PreviousRecord = records[n-1].Digest
		}
		records = append(records, h.Seal(t, p, apart...))
		if how == OnlyNew {
			from = i + 1
		}
	}
	return records
}
