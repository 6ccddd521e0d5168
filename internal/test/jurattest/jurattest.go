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
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/evidence/scitt"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/test/must"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

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

func New(t testing.TB) *House {
	t.Helper()
	return furnish(t, "", timestamp.NewMock(), Origin, 2)
}

// NewNeighbour makes the House of another owner: another log, and other keys for actors of the same names.
func NewNeighbour(t testing.TB) *House {
	t.Helper()
	return furnish(t, "a neighbour's ", timestamp.NewMock(), "neighbour."+Origin, 3)
}

// NewImpostor makes a House whose actors have the same names and other keys.
func NewImpostor(t testing.TB) *House {
	t.Helper()
	return furnish(t, "an impostor's ", timestamp.NewMock(), Origin, 2)
}

func furnish(t testing.TB, whose string, authority *timestamp.Authority, origin string, seed byte) *House {
	t.Helper()
	h := &House{Keys: &Keys{whose: whose, made: map[evidence.KeyID]trust.Key{}}, Now: clock(), Random: stream(1),
		authority: authority}
	private, public, err := note.GenerateKey(stream(seed), origin)
	must.Do(t, err)
	signer := must.Get(note.NewSigner(private))(t)
	verifier := must.Get(note.NewVerifier(public))(t)
	h.verifier, h.log = public, signer
	store := must.Get(sqlite.UnsafeCreate(t.Context(), filepath.Join(t.TempDir(), "log.db")))(t)
	h.Ledger = must.Get(ledger.Create(t.Context(), ledger.Config{Store: store, Signer: signer, Verifier: verifier,
		UnsafeContradictions: true, Stamper: stamper{authority}, Random: h.Random, Now: func() time.Time { return h.Now() }}))(t)
	t.Cleanup(func() { must.Do(t, h.Ledger.Close()) })
	return h
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
func stream(n byte) io.Reader { return mathrand.NewChaCha8([32]byte{n}) }

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
	doc := must.Get(trusted.Marshal())(t)
	return must.Get(trust.Parse(doc))(t)
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

func (h *House) Seal(t testing.TB, p evidence.Payload, apart ...string) *evidence.Record {
	t.Helper()
	draft := must.Get(evidence.NewDraft(p))(t)
	signers := must.Get(h.Keys.Signers(t.Context(), draft.Role(), draft.Actor()))(t)
	return must.Get(h.Ledger.Seal(t.Context(), draft.SealingApart(nil, apart...), signers))(t)
}

// Bundle proves records against the log's checkpoint.
func (h *House) Bundle(t testing.TB, records ...*evidence.Record) *evidence.Bundle {
	t.Helper()
	return must.Get(h.Ledger.Prove(t.Context(), records...))(t)
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
	must.Do(t, json.Unmarshal(conversation, &messages))
	var records []*evidence.Record
	from := 0
	for i, raw := range messages {
		var m struct{ Role string }
		must.Do(t, json.Unmarshal(raw, &m))
		if m.Role != "assistant" {
			continue
		}
		prompt := must.Get(json.Marshal(messages[from:i]))(t)
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

type Mood string

// Moods of a TSA. All but the first give no good token.
const (
	Good       Mood = "good"
	Refuses    Mood = "refuses" // status 404: final, so the client does not try again
	Fails      Mood = "fails"   // status 500
	Garbage    Mood = "garbage"
	Another    Mood = "another" // a token over other data
	WrongNonce Mood = "nonce"
	Expired    Mood = "expired" // a token of a time at which its certificate had expired
	Hangs      Mood = "hangs"
)

func Moods() []Mood {
	return []Mood{Good, Refuses, Fails, Garbage, Another, WrongNonce, Expired, Hangs}
}

// A TSA is an independent time-stamping authority over HTTP on the loopback interface. It uses the machine's clock.
// Unlike a House, it proves time to readers who trust its root.
type TSA struct {
	URL  string
	Root *x509.Certificate

	Certificate *x509.Certificate // issued under Root

	operator      []pkix.Name
	server        *httptest.Server
	good, expired *timestamp.Authority

	mu    sync.Mutex // held while what follows is read or written
	mood  Mood
	asked int
}

// StartTSA starts an authority that gives good tokens, with new keys. Its certificate is valid for some hours around
// now, and names its operator, if one is given. It passes on the errors of making keys and certificates.
func StartTSA(operator ...pkix.Name) (*TSA, error) {
	a := &TSA{mood: Good, operator: operator}
	rootKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	from := time.Now().UTC().Truncate(time.Second).Add(-2 * time.Hour)
	validity := timestamp.CertificateConfig{Serial: big.NewInt(7), NotBefore: from, NotAfter: from.Add(24 * time.Hour), Key: rootKey}
	if a.Root, err = timestamp.NewRoot(validity); err != nil {
		return nil, err
	}
	if a.good, err = a.authority(rootKey, validity.NotAfter, time.Now); err != nil {
		return nil, err
	}
	// An authority stamps only within its certificate's validity. An expired one therefore continues with a wrong
	// clock.
	past := from.Add(time.Hour)
	if a.expired, err = a.authority(rootKey, past, func() time.Time { return past }); err != nil {
		return nil, err
	}
	a.Certificate = a.good.Certificates()[0]
	a.server = httptest.NewServer(http.HandlerFunc(a.serve))
	a.URL = a.server.URL
	return a, nil
}

func (a *TSA) authority(rootKey *ecdsa.PrivateKey, until time.Time, now func() time.Time) (*timestamp.Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	leaf, err := timestamp.NewCertificate(timestamp.CertificateConfig{Serial: big.NewInt(8), NotBefore: a.Root.NotBefore,
		NotAfter: until, Key: key}, a.Root, rootKey)
	if err != nil {
		return nil, err
	}
	for _, name := range a.operator {
		if leaf, err = renamed(leaf, name, a.Root, rootKey); err != nil {
			return nil, err
		}
	}
	return timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{a.Root}, Now: now})
}

// renamed is a certificate with another subject.
func renamed(c *x509.Certificate, subject pkix.Name, by *x509.Certificate, key *ecdsa.PrivateKey) (*x509.Certificate, error) {
	template := *c
	template.Subject, template.RawSubject, template.ExtKeyUsage = subject, nil, nil
	for _, extension := range c.Extensions {
		if extension.Critical && extension.Id.String() == "2.5.29.37" {
			template.ExtraExtensions = []pkix.Extension{extension}
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, by, c.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(der)
}

func (a *TSA) Close() {
	a.server.CloseClientConnections()
	a.server.Close()
}

func (a *TSA) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.Root.Raw})
}

func (a *TSA) Be(m Mood) error {
	if !slices.Contains(Moods(), m) {
		return fmt.Errorf("unknown mood %q: expected one of %v", m, Moods())
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.mood = m
	return nil
}

// Asked returns how many requests came since the last call of Asked.
func (a *TSA) Asked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.asked
	a.asked = 0
	return n
}

func (a *TSA) serve(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.asked++
	mood := a.mood
	a.mu.Unlock()
	query, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	switch mood {
	case Refuses:
		w.WriteHeader(http.StatusNotFound)
		return
	case Fails:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case Hangs:
		<-r.Context().Done()
		return
	}
	reply, err := a.answer(mood, query)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/timestamp-reply")
	w.Write(reply) // the client may have gone
}

func (a *TSA) answer(mood Mood, query []byte) ([]byte, error) {
	request, err := ParseQuery(query)
	if err != nil {
		return nil, err
	}
	authority := a.good
	switch mood {
	case Good:
	case Garbage:
		return []byte("garbage"), nil
	case Expired:
		authority = a.expired
	case Another:
		request.Imprint[0] ^= 1
	case WrongNonce:
		request.Nonce.Add(request.Nonce, big.NewInt(1))
	default:
		return nil, errors.New("no such mood")
	}
	token, err := authority.Issue(request)
	if err != nil {
		return nil, err
	}
	return timestamp.MarshalResponse(token)
}

func ParseQuery(query []byte) (*timestamp.Request, error) {
	var q struct {
		Version int
		Imprint struct {
			Algorithm pkix.AlgorithmIdentifier
			Hash      []byte
		}
		Policy  asn1.ObjectIdentifier `asn1:"optional"`
		Nonce   *big.Int              `asn1:"optional"`
		CertReq bool                  `asn1:"optional"`
	}
	rest, err := asn1.Unmarshal(query, &q)
	if err != nil || len(rest) > 0 || q.Version != 1 || len(q.Imprint.Hash) != sha256.Size || !q.Imprint.Algorithm.Algorithm.Equal(asn1.ObjectIdentifier{2, 16, 840, 1, 101, 3, 4, 2, 1}) {
		return nil, fmt.Errorf("%x asks for no time stamp over SHA-256: %v", query, err)
	}
	r := &timestamp.Request{Imprint: [sha256.Size]byte(q.Imprint.Hash), Nonce: q.Nonce, CertReq: q.CertReq}
	if len(q.Policy) > 0 {
		r.Policy, err = x509.ParseOID(q.Policy.String())
	}
	return r, err
}

// NewForStrangers makes a House whose tokens other programs can verify. Verify refuses the mock's keys by their
// values. The keys of this authority are as worthless, but other programs do not know them. Its clock stands at
// Start, like the mock's.
func NewForStrangers(t testing.TB) *House {
	t.Helper()
	return furnish(t, "", Authority(t, "", Start), Origin, 2)
}

// Authority returns a time-stamping authority with worthless keys derived from its name. Its clock stands still. The
// same requests in the same order give the same tokens.
func Authority(t testing.TB, name string, now time.Time) *timestamp.Authority {
	t.Helper()
	rootKey, key := AuthorityKey(t, name+" root"), AuthorityKey(t, name)
	config := timestamp.CertificateConfig{Key: rootKey, Serial: big.NewInt(1), NotBefore: Start.AddDate(-1, 0, 0),
		NotAfter: Start.AddDate(99, 0, 0), Operator: "WORTHLESS: its keys are published " + name}
	root := must.Get(timestamp.NewRoot(config))(t)
	config.Key, config.Serial = key, big.NewInt(2)
	leaf := must.Get(timestamp.NewCertificate(config, root, rootKey))(t)
	return must.Get(timestamp.NewAuthority(timestamp.AuthorityConfig{Key: key, Certificate: leaf, Chain: []*x509.Certificate{root},
		Now: func() time.Time { return now }, Rand: stream(3), Policy: timestamp.MockPolicy()}))(t)
}

// AuthorityKey returns the key derived from a name. It signs without randomness (RFC 6979).
func AuthorityKey(t testing.TB, name string) crypto.Signer {
	t.Helper()
	seed := sha256.Sum256([]byte("jurattest: a worthless authority\x00" + name))
	key := must.Get(ecdsa.ParseRawPrivateKey(elliptic.P256(), seed[:]))(t)
	return deterministic{key}
}

type deterministic struct{ *ecdsa.PrivateKey }

func (d deterministic) Sign(_ io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	return d.PrivateKey.Sign(nil, digest, opts)
}
