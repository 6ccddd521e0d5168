package draw_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/witness"
	"jurat/reputation/draw"
)

const origin = "log.example/draws"

// A world is a log, and witnesses that cosign it.
type world struct {
	t         testing.TB
	signer    note.Signer
	lines     [][]byte
	hashes    []tlog.Hash
	witnesses []*witness.Witness
	keys      []*operator.Cosigner
	asked     map[string]int64 // by witness: what it has cosigned
}

func newWorld(t testing.TB, witnesses int) *world {
	t.Helper()
	private, public, err := note.GenerateKey(strings.NewReader(strings.Repeat("a log of a test ", 8)), origin)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := note.NewSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := note.NewVerifier(public)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, signer: signer, asked: map[string]int64{}}
	for n := range witnesses {
		key, err := operator.GenerateCosigner(bytes.NewReader(bytes.Repeat([]byte{byte(n + 1)}, 32)), fmt.Sprintf("witness.example/w%d", n+1))
		if err != nil {
			t.Fatal(err)
		}
		second := int64(1_700_000_000)
		one, err := witness.Open(t.Context(), witness.Config{File: filepath.Join(t.TempDir(), "memory.db"), Key: key, Logs: []note.Verifier{verifier},
			Now: func() time.Time { second++; return time.Unix(second, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = one.Close() })
		w.witnesses, w.keys = append(w.witnesses, one), append(w.keys, key)
	}
	return w
}

// fork returns a log with the same first entries, before the same witnesses.
func (w *world) fork(size int64) *world {
	again := &world{t: w.t, signer: w.signer, witnesses: w.witnesses, keys: w.keys, asked: w.asked}
	for _, line := range w.lines[:size] {
		again.add(line)
	}
	return again
}

func (w *world) ReadHashes(indexes []int64) (list []tlog.Hash, err error) {
	for _, i := range indexes {
		list = append(list, w.hashes[i])
	}
	return list, nil
}

func (w *world) size() int64 { return int64(len(w.lines)) }

func (w *world) add(line []byte) {
	hashes, err := tlog.StoredHashes(w.size(), line, w)
	if err != nil {
		w.t.Fatal(err)
	}
	w.hashes, w.lines = append(w.hashes, hashes...), append(w.lines, line)
}

func digestOf(text string) evidence.Digest { return evidence.DigestOf([]byte(text)) }

// entry is the entry of a record with this digest, of a chain if one is named.
func entry(record evidence.Digest, chain string, seq int) []byte {
	of := ""
	if chain != "" {
		of = fmt.Sprintf(`"chain":%q,"chain_seq":%d,`, evidence.ChainTag(chain), seq)
	}
	return []byte(fmt.Sprintf(`{%s"payload":%q,"signatures":["%s"]}`, of, record, base64.StdEncoding.EncodeToString(record[:4])))
}

// act is the entry of an act of a trial, by an actor. about: the log counts it as a judgment.
func act(trial string, seq int, role evidence.Role, name string, about bool) []byte {
	subject, record := "", digestOf(fmt.Sprint(trial, " act ", seq))
	if about {
		subject = fmt.Sprintf(`,"subject":%q,"subject_seq":1`, evidence.SubjectTag(evidence.RoleAgent, "desk"))
	}
	return []byte(fmt.Sprintf(`{"actor":%q,"actor_seq":%d,"chain":%q,"chain_seq":%d,"payload":%q,"signatures":["%s"]%s}`, evidence.ActorTag(role, name), seq,
		evidence.ChainTag(trial), seq, record, base64.StdEncoding.EncodeToString(record[:4]), subject))
}

// begin adds the first acts of a trial: of the submitter, the clerk and a juror.
func (w *world) begin(trial string) {
	w.add(act(trial, 1, evidence.RoleSubmitter, "zoe", false))
	w.add(act(trial, 2, evidence.RoleClerk, "clerk", false))
	w.add(act(trial, 3, evidence.RoleJuror, "juror-gpt", false))
}

// grow adds entries of records that the word begins to name.
func (w *world) grow(n int, word string) *world {
	for range n {
		w.add(entry(digestOf(fmt.Sprint(word, " ", w.size())), "", 0))
	}
	return w
}

func (w *world) tree(size int64) operator.Checkpoint {
	root, err := tlog.TreeHash(size, w)
	if err != nil {
		w.t.Fatal(err)
	}
	return operator.Checkpoint{Origin: origin, Size: size, Root: root}
}

func (w *world) prove(_ context.Context, old, size int64) ([]tlog.Hash, error) {
	if old == size || old == 0 {
		return nil, nil
	}
	if size > w.size() || old > size {
		return nil, fmt.Errorf("no proof from %d to %d", old, size)
	}
	return tlog.ProveTree(size, old, w)
}

// cosign has a witness cosign the whole log.
func (w *world) cosign(n int) error {
	signed, err := operator.SignCheckpoint(w.tree(w.size()), w.signer)
	if err != nil {
		w.t.Fatal(err)
	}
	old := w.asked[w.keys[n].Name()]
	proof, err := w.prove(w.t.Context(), min(old, w.size()), w.size())
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = w.witnesses[n].AddCheckpoint(w.t.Context(), witness.Request{Old: old, Proof: proof, Signed: signed})
	if err == nil {
		w.asked[w.keys[n].Name()] = w.size()
	}
	return err
}

// ask asks a witness for the draw of the block that ends at this size.
func (w *world) ask(n int, size int64) (operator.Draw, error) {
	tree := w.tree(size)
	text, err := operator.FormatCheckpoint(tree)
	if err != nil {
		w.t.Fatal(err)
	}
	known := w.asked[w.keys[n].Name()]
	var proof []tlog.Hash
	if size < known && known <= w.size() {
		if proof, err = w.prove(w.t.Context(), size, known); err != nil {
			w.t.Fatal(err)
		}
	}
	signature, err := w.witnesses[n].Draw(w.t.Context(), witness.Request{Old: known, Proof: proof, Signed: text})
	return operator.Draw{Root: tree.Root[:], Signature: signature, Size: size, Witness: w.keys[n].Witness.String()}, err
}

// all cosigns with every witness, and returns the draws of all whole blocks.
func (w *world) all() (draws []operator.Draw) {
	w.t.Helper()
	for n := range w.witnesses {
		if err := w.cosign(n); err != nil {
			w.t.Fatal(err)
		}
		for size := int64(operator.DrawBlock); size <= w.size(); size += operator.DrawBlock {
			d, err := w.ask(n, size)
			if err != nil {
				w.t.Fatal(err)
			}
			draws = append(draws, d)
		}
	}
	return draws
}

func (w *world) policy(share int64) draw.Policy {
	p := draw.Policy{Share: share}
	for _, key := range w.keys {
		p.Witnesses = append(p.Witnesses, &key.Witness)
	}
	return p
}

func (w *world) read(p draw.Policy, draws []operator.Draw) *draw.Result {
	w.t.Helper()
	found, err := draw.Read(w.tree(w.size()), p, draws, bytes.NewReader(w.file()))
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) file() []byte { return append(bytes.Join(w.lines, []byte("\n")), '\n') }

func text(t testing.TB, r *draw.Result) string {
	t.Helper()
	doc, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc)
}

// TestDrawnByArithmetic: the drawn records are those that big integers give, and about as many as the share says.
func TestDrawnByArithmetic(t *testing.T) {
	w := newWorld(t, 2).grow(640, "record")
	draws := w.all()
	for _, share := range []int64{1, 2, 7, 20, 1000, draw.MaxShare} {
		found := w.read(w.policy(share), draws)
		at, drawn := 0, map[int64]bool{}
		for _, d := range found.Drawn {
			drawn[d.Index] = true
		}
		for i := range w.size() {
			want := false
			for _, d := range draws {
				if d.Size-operator.DrawBlock > i || i >= d.Size {
					continue
				}
				digest := digestOf(fmt.Sprint("record ", i))
				sum := sha256.Sum256(slices.Concat([]byte("jurat/drawn/v1\x00"), d.Signature, digest[:]))
				want = want || new(big.Int).Mod(new(big.Int).SetBytes(sum[:]), big.NewInt(share)).Sign() == 0
			}
			if want != drawn[i] {
				t.Errorf("share %d: record %d: drawn %v, want %v", share, i, drawn[i], want)
			}
			if want {
				at++
			}
		}
		if share == 20 && (at < 30 || at > 100) { // 2 of 20 of 640
			t.Errorf("%d of 640 records are drawn", at)
		}
		if share == 1 && at != 640 || len(found.Missing) > 0 || found.Waiting != 0 {
			t.Errorf("share %d: %d drawn, missing %v, waiting %d", share, at, found.Missing, found.Waiting)
		}
	}
}

// TestOperatorCannotPredict: no witness draws before it has cosigned the whole block, and then only for the tree that it has cosigned.
func TestOperatorCannotPredict(t *testing.T) {
	w := newWorld(t, 1).grow(63, "record")
	if err := w.cosign(0); err != nil {
		t.Fatal(err)
	}
	w.grow(1, "record")
	var conflict *witness.ConflictError
	if d, err := w.ask(0, 64); !errors.As(err, &conflict) || d.Signature != nil {
		t.Errorf("drawn before the block was cosigned: %v", err)
	}
	w.asked[w.keys[0].Name()] = 64 // a lie about what the witness has cosigned
	if d, err := w.ask(0, 64); !errors.As(err, &conflict) || d.Signature != nil {
		t.Errorf("drawn by a lie about what was cosigned: %v", err)
	}
}

// TestOperatorCannotDrawAgain: asking again, asking later with filler behind, and another checkpoint of the same log give the same draw.
func TestOperatorCannotDrawAgain(t *testing.T) {
	w := newWorld(t, 1).grow(64, "record")
	if err := w.cosign(0); err != nil {
		t.Fatal(err)
	}
	first, err := w.ask(0, 64)
	if err != nil {
		t.Fatal(err)
	}
	for range 70 {
		if err := w.grow(1, "filler").cosign(0); err != nil { // a new cosignature, at a new time, for a new tree
			t.Fatal(err)
		}
		again, err := w.ask(0, 64)
		if err != nil || !bytes.Equal(again.Signature, first.Signature) {
			t.Fatalf("with %d entries another draw, %v", w.size(), err)
		}
	}
}

// TestOperatorCannotSetBack: who has seen what is drawn, and begins the block again with other records, gets no draw for it.
func TestOperatorCannotSetBack(t *testing.T) {
	w := newWorld(t, 1).grow(64, "record")
	draws := w.all()
	for _, from := range []int64{0, 1, 32, 63} {
		other := w.fork(from).grow(int(64-from), "other")
		if err := other.cosign(0); err == nil {
			t.Errorf("a log that was set back to %d entries is cosigned", from)
		}
		if d, err := other.ask(0, 64); err == nil || d.Signature != nil {
			t.Errorf("a log that was set back to %d entries has a draw", from)
		}
		if err := other.grow(64, "more").cosign(0); err == nil {
			t.Errorf("a log that was set back to %d entries, and is longer, is cosigned", from)
		}
		// The draw of the old history says nothing of the new one.
		if found := other.read(w.policy(1), draws); len(found.Drawn) > 0 || len(found.Missing) != 1 || found.Missing[0].To != 128 {
			t.Errorf("the draw of the other history counts: %+v", found)
		}
	}
}

// TestOperatorCannotSkip: a draw that is kept back is a gap, whatever else is shown in its place, and a debt is no secret.
func TestOperatorCannotSkip(t *testing.T) {
	w := newWorld(t, 2).grow(200, "record")
	draws := w.all()
	full := w.read(w.policy(4), draws)
	if len(full.Missing) > 0 || full.Waiting != 8 {
		t.Fatalf("missing %v, waiting %d", full.Missing, full.Waiting)
	}
	other := newWorld(t, 2).grow(200, "another log's")
	hostile := operator.Draw{Root: make([]byte, 32), Size: 128, Signature: make([]byte, 64), Witness: w.keys[0].Witness.String()}
	for i, kept := range draws {
		rest := slices.Delete(slices.Clone(draws), i, i+1)
		moved, renamed := kept, kept
		moved.Size = kept.Size%192 + 64
		renamed.Witness = w.keys[0].Witness.String()
		if kept.Witness == renamed.Witness {
			renamed.Witness = w.keys[1].Witness.String()
		}
		found := w.read(w.policy(4), append(append(rest, moved, renamed, hostile), other.all()...))
		name := strings.Split(kept.Witness, "+")[0]
		if want := []draw.Gap{{From: kept.Size - 64, To: kept.Size, Witness: name}}; !slices.Equal(found.Missing, want) {
			t.Errorf("without a draw: missing %v, want %v", found.Missing, want)
		}
		for _, d := range found.Drawn {
			if i := slices.IndexFunc(full.Drawn, func(f draw.Record) bool { return f.Index == d.Index }); i < 0 {
				t.Errorf("record %d is drawn by what no witness drew", d.Index)
			}
		}
		other = newWorld(t, 2).grow(200, "another log's")
	}
	if found := w.read(w.policy(4), nil); len(found.Missing) != 2 || found.Missing[0] != (draw.Gap{From: 0, To: 192, Witness: "witness.example/w1"}) {
		t.Errorf("without any draw: missing %v", found.Missing)
	}
}

// TestOperatorWithAWitness: who holds all witnesses but one can sign as it likes, and still keeps nothing out that the honest one draws.
func TestOperatorWithAWitness(t *testing.T) {
	w := newWorld(t, 2).grow(64, "record")
	draws := w.all()
	honest := draw.Policy{Share: 3, Witnesses: w.policy(3).Witnesses[1:]}
	want := w.read(honest, draws)
	private := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	if !w.keys[0].PublicKey().Equal(private.Public()) {
		t.Fatal("not the witness's key")
	}
	text, err := operator.FormatCheckpoint(w.tree(64))
	if err != nil {
		t.Fatal(err)
	}
	for range 50 {
		ground := draws[0]
		ground.Signature = signOtherwise(t, private, []byte("jurat/draw/v1\n"+text))
		if !w.keys[0].VerifyDraw(w.tree(64), ground.Signature) {
			t.Fatal("the other signature is not valid, so it shows nothing")
		}
		found := w.read(w.policy(3), []operator.Draw{ground, draws[1]})
		for _, d := range want.Drawn {
			if !slices.ContainsFunc(found.Drawn, func(f draw.Record) bool { return f.Index == d.Index }) {
				t.Fatalf("record %d, which the honest witness drew, is kept out", d.Index)
			}
		}
		if both := w.read(w.policy(3), append(draws, ground)); len(both.Twofold) != 1 || both.Twofold[0].Witness != "witness.example/w1" {
			t.Fatalf("two signatures of one witness: %v", both.Twofold)
		}
	}
}

// signOtherwise signs with a nonce of its own: valid, and not what RFC 8032 makes.
func signOtherwise(t *testing.T, private ed25519.PrivateKey, message []byte) []byte {
	t.Helper()
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	seed := sha512Sum(private.Seed())
	seed[0], seed[31] = seed[0]&248, seed[31]&127|64
	nonce := make([]byte, 32)
	if _, err := rand.Read(nonce); err != nil {
		t.Fatal(err)
	}
	// The point of a nonce r is the public key of the scalar r. Ed25519 gives such a point for every seed.
	of := ed25519.NewKeyFromSeed(nonce)
	scalar := sha512Sum(nonce)
	scalar[0], scalar[31] = scalar[0]&248, scalar[31]&127|64
	point := of.Public().(ed25519.PublicKey)
	k := little(sha512Sum(slices.Concat(point, private.Public().(ed25519.PublicKey), message)))
	s := new(big.Int).Mul(k, little(seed[:32]))
	s.Add(s, little(scalar[:32])).Mod(s, order)
	out := s.FillBytes(make([]byte, 32))
	slices.Reverse(out)
	return append(slices.Clone(point), out...)
}

func sha512Sum(of []byte) []byte { sum := sha512.Sum512(of); return sum[:] }

// little reads a little-endian number.
func little(of []byte) *big.Int {
	turned := slices.Clone(of)
	slices.Reverse(turned)
	return new(big.Int).SetBytes(turned)
}

// TestHonestAnswers: over HTTP, a witness draws what it has cosigned, says what it knows where it is asked too early, and a client takes no
// other signature for a draw.
func TestHonestAnswers(t *testing.T) {
	w := newWorld(t, 2).grow(130, "record")
	server := httptest.NewServer(w.witnesses[0].Handler(slog.New(slog.DiscardHandler)))
	defer server.Close()
	remote, err := witness.NewRemote(server.URL, &w.keys[0].Witness, nil)
	if err != nil {
		t.Fatal(err)
	}
	var conflict *witness.ConflictError
	if _, err := remote.AskDraw(t.Context(), w.tree(64), w.prove); !errors.As(err, &conflict) || conflict.Size != 0 {
		t.Errorf("before anything is cosigned: %v", err)
	}
	if err := w.cosign(0); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{64, 128} {
		d, err := remote.AskDraw(t.Context(), w.tree(size), w.prove)
		if err != nil || !w.keys[0].VerifyDraw(w.tree(size), d.Signature) || d.Size != size {
			t.Fatalf("%+v, %v", d, err)
		}
	}
	if _, err := remote.AskDraw(t.Context(), w.tree(65), w.prove); !errors.Is(err, witness.ErrUnavailable) {
		t.Errorf("a tree that ends no block: %v", err)
	}
	wrong, err := witness.NewRemote(server.URL, &w.keys[1].Witness, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := wrong.AskDraw(t.Context(), w.tree(64), w.prove); !errors.Is(err, witness.ErrUnavailable) {
		t.Errorf("another witness's signature: %v", err)
	}
	other := newWorld(t, 1).grow(130, "another log's")
	if _, err := remote.AskDraw(t.Context(), other.tree(64), other.prove); !errors.Is(err, witness.ErrProof) {
		t.Errorf("another history: %v", err)
	}
}

// TestTrials: the trial of a drawn record is found by the record's digest alone, and counted in the log. It is judged when the log counts a judgment
// of its clerk: an operator that stops it before, or has a person decide in its chain, has not held it.
func TestTrials(t *testing.T) {
	w := newWorld(t, 1).grow(64, "record")
	draws := w.all()
	drawn := w.read(w.policy(4), draws).Drawn
	if len(drawn) < 5 {
		t.Fatalf("%d records are drawn", len(drawn))
	}
	for i, then := range []func(trial string){
		func(string) {},
		func(trial string) { w.add(act(trial, 4, evidence.RoleClerk, "clerk", true)) },
		func(trial string) { w.add(act(trial, 4, evidence.RoleReviewer, "mia", true)) },
		func(trial string) { w.add(act(trial, 4, evidence.RoleClerk, "clerk", false)) },
	} {
		w.begin(drawn[i].Trial)
		then(drawn[i].Trial)
	}
	old := drawn[4].Trial // entries of a log that counts no actors
	w.add(entry(digestOf("one"), old, 1))
	w.add(entry(digestOf("two"), old, 2))
	found := w.read(w.policy(4), draws).Drawn
	for i, want := range []struct {
		acts   int64
		judged bool
	}{{3, false}, {4, true}, {4, false}, {4, false}, {2, false}, {0, false}} {
		if i < len(found) && (found[i].Acts != want.acts || found[i].Judged != want.judged) {
			t.Errorf("record %d: %d acts, judged %v, want %+v", i, found[i].Acts, found[i].Judged, want)
		}
	}
	if id := draw.TrialID(drawn[0].Record); evidence.CheckRecordID(id) != nil || drawn[0].Trial != "trial-"+id {
		t.Errorf("the trial's id is %q", id)
	}
}

// TestTrialOfAnotherAgent: a drawn record that stands as an exhibit in a trial of another agent was not tried. Whose a record is from before the log
// counted unknown actors.
func TestTrialOfAnotherAgent(t *testing.T) {
	w := newWorld(t, 1)
	of := map[evidence.Digest]bool{} // the records of desk, and those without an agent
	for n := range 64 {
		record := digestOf(fmt.Sprint("record ", n))
		switch name := []string{"desk", "another", ""}[n%3]; name {
		case "":
			w.add(entry(record, "", 0))
			of[record] = true
		default:
			w.add([]byte(fmt.Sprintf(`{"actor":%q,"actor_seq":%d,"payload":%q,"signatures":["%s"]}`, evidence.ActorTag(evidence.RoleAgent, name), n/3+1, record, base64.StdEncoding.EncodeToString(record[:4]))))
			of[record] = name == "desk"
		}
	}
	draws := w.all()
	for _, r := range w.read(w.policy(1), draws).Drawn {
		w.begin(r.Trial)
		w.add(act(r.Trial, 4, evidence.RoleClerk, "clerk", true)) // about desk
	}
	found := w.read(w.policy(1), draws[:1]).Drawn
	if len(found) < 64 {
		t.Fatalf("%d records are drawn", len(found))
	}
	for _, r := range found[:64] {
		if r.Judged != of[r.Record] {
			t.Errorf("record %d: judged %v, want %v", r.Index, r.Judged, of[r.Record])
		}
	}
}

// TestRecordedActs: a recorder's record is the act of the agent that it saw, where the reader has the record: its trial counts if it judges that agent. What the reader
// does not have is said to be unread.
func TestRecordedActs(t *testing.T) {
	w := newWorld(t, 1)
	gate := evidence.ActorTag(evidence.RoleRecorder, "gate")
	whose := map[evidence.Digest]evidence.Digest{} // of the records that the reader has
	for n := range 64 {
		record := digestOf(fmt.Sprint("record ", n))
		w.add([]byte(fmt.Sprintf(`{"actor":%q,"actor_seq":%d,"payload":%q,"signatures":["%s"]}`, gate, n+1, record, base64.StdEncoding.EncodeToString(record[:4]))))
		switch n % 4 {
		case 0:
			whose[record] = evidence.ActorTag(evidence.RoleAgent, "desk")
		case 1:
			whose[record] = evidence.ActorTag(evidence.RoleAgent, "another")
		case 2:
			whose[record] = evidence.Digest{} // an event of the recorder
		}
	}
	draws := w.all()
	for _, r := range w.read(w.policy(1), draws).Drawn {
		w.begin(r.Trial)
		w.add(act(r.Trial, 4, evidence.RoleClerk, "clerk", true)) // about desk
	}
	before := w.read(w.policy(1), draws)
	for _, r := range before.Drawn[:64] {
		if r.Judged {
			t.Errorf("record %d is judged for a reader who does not know whose act it is", r.Index)
		}
	}
	knowing := w.policy(1)
	knowing.Whose = func(e *evidence.Entry) (evidence.Digest, bool, error) {
		agent, known := whose[e.Payload]
		return agent, !known && e.Actor == gate, nil
	}
	for i, r := range w.read(knowing, draws).Drawn[:64] {
		if r.Judged != (i%4 == 0) {
			t.Errorf("record %d: judged %v", r.Index, r.Judged)
		}
	}
	knowing.Actor = evidence.ActorTag(evidence.RoleAgent, "desk")
	if found := w.read(knowing, draws); len(found.Drawn) != 16 || found.Unread != 16 || !found.Drawn[3].Judged {
		t.Errorf("%d drawn, %d unread", len(found.Drawn), found.Unread)
	}
	knowing.Whose = func(*evidence.Entry) (evidence.Digest, bool, error) {
		return evidence.Digest{}, false, errors.New("no disk")
	}
	if _, err := draw.Read(w.tree(w.size()), knowing, draws, bytes.NewReader(w.file())); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("%v", err)
	}
}

// TestRefused: what is not the log of the checkpoint, and a policy by which nothing can be drawn, give an error.
func TestRefused(t *testing.T) {
	w := newWorld(t, 1).grow(70, "record")
	good := w.policy(4)
	for name, p := range map[string]draw.Policy{"no share": {Witnesses: good.Witnesses}, "too large": {Share: draw.MaxShare + 1, Witnesses: good.Witnesses},
		"no witness": {Share: 4}, "twice": {Share: 4, Witnesses: append(good.Witnesses, good.Witnesses...)}} {
		if _, err := draw.Read(w.tree(70), p, nil, bytes.NewReader(w.file())); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	head := w.tree(70)
	for name, change := range map[string]func(*operator.Checkpoint){"root": func(c *operator.Checkpoint) { c.Root[0] ^= 1 },
		"larger": func(c *operator.Checkpoint) { c.Size++ }, "smaller": func(c *operator.Checkpoint) { c.Size-- }} {
		other := head
		change(&other)
		if _, err := draw.Read(other, good, nil, bytes.NewReader(w.file())); !errors.Is(err, draw.ErrOtherLog) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := draw.Read(head, good, nil, strings.NewReader("{}\n")); !errors.Is(err, operator.ErrEntries) {
		t.Errorf("no entries: %v", err)
	}
}

var update = flag.Bool("update", false, "write the vectors")

// vectors are a log, and cases: draws and a share, and what follows.
type vectors struct {
	Cases     []vector `json:"cases"`
	Entries   []string `json:"entries"`
	Origin    string   `json:"origin"`
	Root      []byte   `json:"root"`
	Witnesses []string `json:"witnesses"`
}

type vector struct {
	Name  string          `json:"name"`
	Actor evidence.Digest `json:"actor,omitzero"`
	Share int64           `json:"share"`
	Draws []operator.Draw `json:"draws"`
	Want  jsontext.Value  `json:"want"`
}

// TestVectors: the vectors, which other implementations are checked with, are what this one finds.
func TestVectors(t *testing.T) {
	name := filepath.Join("..", "..", "testdata", "vectors", "draws", "draws.json")
	if *update {
		writeVectors(t, name)
	}
	doc, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var file vectors
	if err := json.Unmarshal(doc, &file, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) < 5 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	var policy draw.Policy
	for _, key := range file.Witnesses {
		w, err := operator.ParseWitness(key)
		if err != nil {
			t.Fatal(err)
		}
		policy.Witnesses = append(policy.Witnesses, w)
	}
	head := operator.Checkpoint{Origin: file.Origin, Size: int64(len(file.Entries)), Root: tlog.Hash(file.Root)}
	for _, v := range file.Cases {
		policy.Share, policy.Actor = v.Share, v.Actor
		found, err := draw.Read(head, policy, v.Draws, strings.NewReader(strings.Join(file.Entries, "\n")+"\n"))
		if err != nil {
			t.Fatalf("%s: %v", v.Name, err)
		}
		if err := v.Want.Compact(); err != nil {
			t.Fatal(err)
		}
		if got := text(t, found); got != string(v.Want) {
			t.Errorf("%s:\n%s, want\n%s", v.Name, got, v.Want)
		}
	}
}

func writeVectors(t *testing.T, file string) {
	w := newWorld(t, 2).grow(20, "from before the log counted actors")
	desk := evidence.ActorTag(evidence.RoleAgent, "desk")
	for n := range 130 {
		of, seq := desk, n/2+1
		if n%2 == 1 {
			of = evidence.ActorTag(evidence.RoleAgent, "another")
		}
		about := ""
		if n%10 == 0 {
			about = fmt.Sprintf(`"case":%q,`, digestOf("a case"))
		}
		record := digestOf(fmt.Sprint("record ", n))
		w.add([]byte(fmt.Sprintf(`{"actor":%q,"actor_seq":%d,%s"payload":%q,"signatures":["%s"]}`, of, seq, about, record, base64.StdEncoding.EncodeToString(record[:4]))))
	}
	draws := w.all()
	of := w.read(w.policy(8), draws).Drawn
	for n := range 3 {
		w.add(entry(digestOf(fmt.Sprint("act ", n)), of[0].Trial, n+1))
	}
	for _, one := range of[1:4] {
		w.begin(one.Trial)
	}
	w.add(act(of[2].Trial, 4, evidence.RoleClerk, "clerk", true))
	w.add(act(of[3].Trial, 4, evidence.RoleReviewer, "mia", true))
	for _, one := range of[4:8] { // judgments about desk, whosever records these are
		w.begin(one.Trial)
		w.add(act(one.Trial, 4, evidence.RoleClerk, "clerk", true))
	}
	twice := draws[0]
	text, err := operator.FormatCheckpoint(w.tree(64))
	if err != nil {
		t.Fatal(err)
	}
	twice.Signature = signOtherwise(t, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32)), []byte("jurat/draw/v1\n"+text))
	forged := draws[1]
	forged.Signature = slices.Clone(draws[1].Signature)
	forged.Signature[40] ^= 1
	moved := draws[1]
	moved.Size = 64
	root := w.tree(w.size()).Root
	all := vectors{Origin: origin, Root: root[:]}
	for _, key := range w.keys {
		all.Witnesses = append(all.Witnesses, key.Witness.String())
	}
	for _, line := range w.lines {
		all.Entries = append(all.Entries, string(line))
	}
	for _, one := range []struct {
		name  string
		share int64
		draws []operator.Draw
	}{
		{"of one actor", 3, draws}, {"every record of one actor", 1, draws[1:]},
		{"all draws", 8, draws}, {"every record", 1, draws}, {"a large share", 4294967296, draws}, {"a share that is no power of two", 13, draws},
		{"no draw", 8, []operator.Draw{}}, {"one draw is missing", 8, draws[1:]}, {"a forged draw", 8, []operator.Draw{draws[0], forged, draws[2], draws[3]}},
		{"a draw of another block", 8, []operator.Draw{moved, draws[1], draws[2], draws[3]}}, {"two draws of one block", 8, append(slices.Clone(draws), twice)},
		{"in another order, and twice", 8, []operator.Draw{draws[3], draws[0], draws[2], draws[1], draws[0]}},
	} {
		policy := w.policy(one.share)
		if strings.Contains(one.name, "of one actor") {
			policy.Actor = desk
		}
		found := w.read(policy, one.draws)
		want, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		all.Cases = append(all.Cases, vector{Name: one.name, Actor: policy.Actor, Share: one.share, Draws: one.draws, Want: want})
	}
	doc, err := json.Marshal(all, jsontext.WithIndent(" "))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, append(doc, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}
