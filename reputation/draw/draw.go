// Package draw finds which records of a log were drawn to be tried, and which of them were not.
//
// # Who decides what is tried
//
// An operator that chose which records a jury sees would choose the good ones. So witnesses draw, and each reader computes again what they
// drew. The log is cut into blocks of [operator.DrawBlock] entries. A witness signs, for the tree that ends a block, that this is the
// beginning of the log that it has cosigned. The signature has neither time nor randomness. A record of the block is drawn by that witness if
//
//	SHA-256( "jurat/drawn/v1" ‖ 0x00 ‖ signature ‖ digest of the payload )
//
// read as a big-endian number, is a multiple of the policy's share N. A record is to be tried if one witness of the policy drew it. With n
// witnesses that is about n of N records.
//
// # Why the operator cannot choose
//
// The draw uses no cosignature of a checkpoint, although the log has those already. A cosignature covers the time, and a witness gives a new
// one each second. An operator could ask again until it likes what is drawn, or ask for a tree of another size. Here is nothing to choose:
//
//   - Predict: the signature needs the witness's key, and the witness signs only after it has cosigned a tree that has the whole block.
//   - Ask again, or later: the answer is the same bytes, whenever and how often anybody asks, at whatever size the log has by then.
//   - Choose another tree: which tree draws a record follows from the record's index alone. A witness that has cosigned a log signs one root
//     for each size, because it cosigns no second history.
//   - Change the block after the draw, or set the log back: the witness has cosigned it, and refuses another.
//   - Add filler: it moves a record to another block, and changes signatures that are unknown before and fixed after.
//   - Skip: a block without the draw of one of the policy's witnesses is a Gap, which is a debt as an untried record is. The operator can
//     always settle it, as the witness answers for old blocks too.
//   - Begin the trial, and stop it when the first jurors find against the agent: a trial counts as held when the log has counted its judgment
//     ([Record].Judged), and is a debt until then.
//   - Show one draw of several: there is no quorum. Each witness of the policy draws for itself, and draws are added up. So an operator that
//     holds all witnesses but one cannot keep out what that one draws.
//   - Try it as an exhibit against another agent: the judgment that the log counts must be about the record's actor, or about the agent that a
//     recorder saw act, as far as the reader has the recorder's record ([Policy].Whose): an entry does not say whose act was seen.
//   - Try a record under the drawn name, but put another before the jury: the exhibits that package reputation finds in the trial say for which
//     records it counts.
//
// # What remains
//
// A holder of a witness's key knows its draws in advance, and can make other signatures that are valid too. Two of them for one block show
// it ([Result].Twofold), and both draw; one is not recognised. So the reader needs one witness that the operator does not hold. The last
// entries, fewer than a block, are not drawn yet, and an operator that seals nothing more leaves them so ([Result].Waiting). A record that
// was never sealed cannot be drawn. The witness itself can refuse to answer, which readers cannot distinguish from an operator that does not ask.
//
// The package uses no clock, file or network.
package draw

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/evidence/operator"
)

// Format names the form of a Result in JSON.
const Format = "jurat/draws/v1"

// MaxShare is the largest share.
const MaxShare = 1 << 32

// MaxWitnesses is how many witnesses a policy may name.
const MaxWitnesses = 64

// A Policy is what a reader demands.
type Policy struct {
	Actor     evidence.Digest     // only records of this actor (evidence.ActorTag), and none of trials' acts; zero: all records
	Share     int64               // each witness draws one of so many records, 1 to MaxShare; 1: every record
	Witnesses []*operator.Witness // 1 to MaxWitnesses with different names: all of them must have drawn

	// Whose returns whose act a drawn entry is, by evidence.ActorTag, if a recorder sealed what it saw an agent do; zero: it is the act of its actor. unread says that
	// the entry is a recorder's, and the reader does not have the record. nil: what recorders sealed counts as theirs.
	Whose func(e *evidence.Entry) (agent evidence.Digest, unread bool, err error)
}

// Check returns an error for a policy by which nothing can be drawn.
func (p *Policy) Check() error {
	if p.Share < 1 || p.Share > MaxShare {
		return fmt.Errorf("share: %d, want 1 to %d", p.Share, int64(MaxShare))
	}
	if n := len(p.Witnesses); n < 1 || n > MaxWitnesses {
		return fmt.Errorf("%d witnesses, want 1 to %d: witnesses draw", n, MaxWitnesses)
	}
	names := map[string]bool{}
	for _, w := range p.Witnesses {
		if names[w.Name()] {
			return fmt.Errorf("two witnesses are named %q", evidence.Abbreviate(w.Name()))
		}
		names[w.Name()] = true
	}
	return nil
}

// Drawn reports whether a witness's signature on the draw of a block draws the record with this digest. It does not verify the signature.
func Drawn(signature []byte, record evidence.Digest, share int64) bool {
	sum := sha256.New()
	sum.Write([]byte("jurat/drawn/v1\x00"))
	sum.Write(signature)
	sum.Write(record[:])
	return remainder(sum.Sum(nil), uint64(share)) == 0
}

// remainder divides a big-endian number by one of at most MaxShare: a rest has 32 bits, so nothing overflows.
func remainder(number []byte, by uint64) (rest uint64) {
	for word := range slices.Chunk(number, 4) {
		rest = (rest<<32 | uint64(binary.BigEndian.Uint32(word))) % by
	}
	return rest
}

// TrialID returns the id of the trial of a drawn record, which is also the record id of its submission. It follows from the record alone. So
// everybody finds the trial, and a log can have only one.
func TrialID(record evidence.Digest) string {
	return evidence.RecordIDFor("", "jurat/drawn-trial/v1", record.String())
}

// TrialChain returns the chain_id of the trial of a drawn record.
func TrialChain(record evidence.Digest) string { return evidence.TrialPrefix + TrialID(record) }

// A Record was drawn, and is to be tried.
type Record struct {
	Acts      int64           `json:"acts"`   // how many entries the log has of its trial; 0: the trial has not begun
	Index     int64           `json:"index"`  // in the log
	Judged    bool            `json:"judged"` // the log has counted a judgment of its clerk about the record's actor
	Record    evidence.Digest `json:"record"`
	Trial     string          `json:"trial"`     // chain_id of its trial
	Witnesses []string        `json:"witnesses"` // the names of those that drew it, in the policy's order

	actor evidence.Digest // whose record it is; zero: the log did not count actors yet
}

// A Gap is a run of blocks for which a witness's draw is missing.
type Gap struct {
	From    int64  `json:"from"` // index of the first entry
	To      int64  `json:"to"`   // index after the last
	Witness string `json:"witness"`
}

// A Result is what a reader finds. Its members are in canonical order.
type Result struct {
	Actor   evidence.Digest `json:"actor,omitzero"` // of the policy
	Drawn   []Record        `json:"drawn"`          // in the order of the log
	Format  string          `json:"format"`
	Missing []Gap           `json:"missing"` // by witness in the policy's order, then by index
	Origin  string          `json:"origin"`
	Share   int64           `json:"share"`
	Size    int64           `json:"size"`             // of the checkpoint
	Twofold []Gap           `json:"twofold"`          // blocks for which a witness signed twice, differently: it breaks its rule
	Unknown int64           `json:"unknown,omitzero"` // drawn records of which the log does not say whose they are; only if the policy names an actor
	Unread  int64           `json:"unread,omitzero"`  // drawn records of recorders that the reader does not have; only if the policy names an actor
	Waiting int64           `json:"waiting"`          // the last entries, which are not drawn yet
}

// A Reading collects what is needed of a log's entries. Make it with New, and give it every entry in order.
type Reading struct {
	policy  Policy
	origin  string
	draws   map[int64][]operator.Draw
	tree    operator.Frontier
	block   []evidence.Entry // without signatures
	chains  map[evidence.Digest]chain
	result  *Result
	missing map[string][]Gap
	twofold map[string][]Gap
	err     error // of Policy.Whose
}

// A chain is what the entries say of one.
type chain struct {
	acts  int64
	clerk evidence.Digest   // the actor of the second entry, which in a trial is the clerk's opening
	about []evidence.Digest // whom the clerk's judgment is about
}

// add takes the chain's next entry. People decide in a trial's chain, too, but only the clerk seals the judgment.
func (c chain) add(e *evidence.Entry) chain {
	c.acts = max(c.acts, e.ChainSeq)
	if e.ChainSeq == 2 {
		c.clerk = e.Actor
	}
	if e.SubjectSeq > 0 && !e.Actor.IsZero() && e.Actor == c.clerk && !slices.Contains(c.about, e.Subject) {
		c.about = append(c.about, e.Subject)
	}
	return c
}

// judged reports whether the chain has a judgment about the actor of a record. If the log did not count actors when it took the record in,
// its author is unknown, and any judgment counts.
func (c chain) judged(actor evidence.Digest) bool {
	return len(c.about) > 0 && (actor.IsZero() || slices.Contains(c.about, actor))
}

// New begins a reading of the log of this name. draws are those that the log's acts hold, and others that the reader has, in any order.
// False ones do no harm: a draw counts if a witness of the policy signed it for the root that the entries have.
func New(origin string, policy Policy, draws []operator.Draw) (*Reading, error) {
	if err := policy.Check(); err != nil {
		return nil, fmt.Errorf("reading draws: %w", err)
	}
	r := &Reading{policy: policy, origin: origin, draws: map[int64][]operator.Draw{}, chains: map[evidence.Digest]chain{},
		missing: map[string][]Gap{}, twofold: map[string][]Gap{},
		result: &Result{Actor: policy.Actor, Format: Format, Origin: origin, Share: policy.Share, Drawn: []Record{}, Missing: []Gap{}, Twofold: []Gap{}}}
	for _, d := range draws {
		r.draws[d.Size] = append(r.draws[d.Size], d)
	}
	return r, nil
}

// Add takes the log's next entry: its bytes, and what they say.
func (r *Reading) Add(line []byte, entry *evidence.Entry) {
	r.tree.Add(tlog.RecordHash(line))
	r.block = append(r.block, evidence.Entry{Actor: entry.Actor, Case: entry.Case, Payload: entry.Payload})
	if !entry.Chain.IsZero() {
		r.chains[entry.Chain] = r.chains[entry.Chain].add(entry)
	}
	if len(r.block) == operator.DrawBlock {
		r.draw()
		r.block = r.block[:0]
	}
}

// draw evaluates the block that is full.
func (r *Reading) draw() {
	tree := operator.Checkpoint{Origin: r.origin, Size: r.tree.Size(), Root: r.tree.Root()}
	from := tree.Size - operator.DrawBlock
	drawnBy := make([][]string, operator.DrawBlock)
	for _, w := range r.policy.Witnesses {
		signed := r.signed(w, tree)
		gap := Gap{From: from, To: tree.Size, Witness: w.Name()}
		switch {
		case len(signed) == 0:
			r.missing[w.Name()] = extend(r.missing[w.Name()], gap)
		case len(signed) > 1:
			r.twofold[w.Name()] = extend(r.twofold[w.Name()], gap)
		}
		for i := range r.block {
			if slices.ContainsFunc(signed, func(signature []byte) bool { return Drawn(signature, r.block[i].Payload, r.policy.Share) }) {
				drawnBy[i] = append(drawnBy[i], w.Name())
			}
		}
	}
	for i, entry := range r.block {
		if drawnBy[i] == nil {
			continue
		}
		actor, unread := r.whose(&entry)
		switch {
		case !r.policy.Actor.IsZero() && entry.Actor.IsZero():
			r.result.Unknown++ // from before the log counted actors
		case !r.policy.Actor.IsZero() && unread:
			r.result.Unread++
		case r.policy.Actor.IsZero() || actor == r.policy.Actor && entry.Case.IsZero():
			r.result.Drawn = append(r.result.Drawn, Record{actor: actor, Index: from + int64(i), Record: entry.Payload, Trial: TrialChain(entry.Payload), Witnesses: drawnBy[i]})
		}
	}
}

// whose returns the tag of whose act an entry is: of its actor, or of the agent that a recorder saw.
func (r *Reading) whose(e *evidence.Entry) (tag evidence.Digest, unread bool) {
	if r.policy.Whose == nil || e.Actor.IsZero() || e.Actor == r.policy.Actor || !e.Case.IsZero() || r.err != nil {
		return e.Actor, false
	}
	agent, unread, err := r.policy.Whose(e)
	switch {
	case err != nil:
		r.err = fmt.Errorf("reading draws: %w", err)
		return e.Actor, false
	case agent.IsZero():
		return e.Actor, unread
	}
	return agent, unread
}

// signed returns the valid signatures of a witness on the draw of a tree, each once.
func (r *Reading) signed(w *operator.Witness, tree operator.Checkpoint) (signatures [][]byte) {
	for _, d := range r.draws[tree.Size] {
		known := slices.ContainsFunc(signatures, func(s []byte) bool { return bytes.Equal(s, d.Signature) })
		if d.Witness == w.String() && !known && w.VerifyDraw(tree, d.Signature) {
			signatures = append(signatures, d.Signature)
		}
	}
	return signatures
}

// extend adds a gap to those before it.
func extend(list []Gap, next Gap) []Gap {
	if last := len(list) - 1; last >= 0 && list[last].To == next.From {
		list[last].To = next.To
		return list
	}
	return append(list, next)
}

// ErrOtherLog says that the entries are not those of the checkpoint.
var ErrOtherLog = errors.New("the entries are not those that the checkpoint is about")

// Result ends the reading. It returns ErrOtherLog unless the entries are exactly those of the checkpoint, whose signatures the caller has
// verified, and errors of Policy.Whose.
func (r *Reading) Result(head operator.Checkpoint) (*Result, error) {
	if r.err != nil {
		return nil, r.err
	}
	if head.Origin != r.origin || head.Size != r.tree.Size() || head.Root != r.tree.Root() {
		return nil, fmt.Errorf("reading draws: %w: %d entries of %q", ErrOtherLog, r.tree.Size(), evidence.Abbreviate(r.origin))
	}
	r.result.Size, r.result.Waiting = head.Size, int64(len(r.block))
	for _, w := range r.policy.Witnesses {
		r.result.Missing = append(r.result.Missing, r.missing[w.Name()]...)
		r.result.Twofold = append(r.result.Twofold, r.twofold[w.Name()]...)
	}
	for i := range r.result.Drawn {
		drawn := &r.result.Drawn[i]
		of := r.chains[evidence.ChainTag(drawn.Trial)]
		drawn.Acts, drawn.Judged = of.acts, of.judged(drawn.actor)
	}
	return r.result, nil
}

// Read reads an entries file, up to the checkpoint's size. Its errors include operator.ErrEntries and ErrOtherLog, and those of New.
func Read(head operator.Checkpoint, policy Policy, draws []operator.Draw, entries io.Reader) (*Result, error) {
	r, err := New(head.Origin, policy, draws)
	if err != nil {
		return nil, err
	}
	err = operator.ReadEntries(entries, func(index int64, line []byte, entry *evidence.Entry) error {
		if index < head.Size {
			r.Add(line, entry)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return r.Result(head)
}
