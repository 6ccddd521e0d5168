package witness

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"time"

	"jurat/client/tiles"
	"jurat/evidence/operator"
	"jurat/verify/trust"
)

// Kind is what a log has done wrong.
type Kind string

const (
	Fork       Kind = "fork"       // the log's key signed two histories
	Shrink     Kind = "shrink"     // the log shows less than before
	Rewritten  Kind = "rewritten"  // the log serves data that does not match its checkpoint
	Foreign    Kind = "foreign"    // another server answers in its place, or a signature is false
	Impossible Kind = "impossible" // the log's key signed what no log can have
	Flood      Kind = "flood"      // the log says that it has grown by more than a monitor can read
)

// Meaning explains the kind to people.
func (k Kind) Meaning() string {
	return map[Kind]string{
		Fork:       "the log's key has signed two histories that exclude each other: a reader of one is not shown the other",
		Shrink:     "the log shows an earlier state than before: it was restored from a backup or dropped its end, or a server in between gives an old answer",
		Rewritten:  "the data does not hash to what the log's key has signed: the log, or a server in between, has changed or lost it",
		Flood:      "the log has signed more than the monitor can read in a reasonable time, seeing nothing else: any number of equal entries takes a moment",
		Impossible: "the log's key has signed what no log can have: the key was misused or stolen, or the log's program has a fault",
		Foreign:    "the server is not the log whose key was given, or it serves what neither this key nor the named witness has signed",
	}[k]
}

// An Alarm says what a log did that it must never do, and holds the evidence. It is an error.
type Alarm struct {
	Kind   Kind
	Reason string
	Old    string                // the checkpoint that was seen before; "": none
	New    string                // the checkpoint that was seen now; "": none was readable
	Proof  *operator.Consistency // of a fork between two sizes: from tiles under New, it leads to another root than Old's (operator.ErrFork)
	Served *tiles.InconsistentError
}

func (a *Alarm) Error() string { return fmt.Sprintf("%s: %s", a.Kind, a.Reason) }

// ToOthers says what Old, New, Proof and Served prove to a reader who knows the log's key and does not trust the monitor. Only what the key
// has signed proves anything: the rest could come from anyone.
func (a *Alarm) ToOthers() string {
	switch {
	case a.Kind == Fork && a.Old == "", a.Kind == Impossible:
		return "that the log's key has signed a checkpoint that no log can have"
	case a.Kind == Fork:
		return "that the log's key has signed both checkpoints, and no log can have both. Together they prove that the log is false, no matter who shows them or when"
	case a.Kind == Shrink:
		return "that the log's key has signed both checkpoints, and no more: every log signs smaller ones first. An intact log can give a consistency proof"
	case a.Kind == Flood:
		return "that the log's key has signed that it has so many entries"
	case a.Kind == Rewritten && a.Served != nil && a.Served.Served == nil && a.New != "":
		return "that the log's key has signed a checkpoint that no log can have"
	case a.Kind == Rewritten && a.New != "":
		return "what the log's key has signed, and nothing against the log: anyone can have made what was served, unsigned. While it is served, others can see it"
	}
	return "nothing: what the log's key has not signed, anyone can have made. As long as it is served, others can see it themselves"
}

// SeenAlone says which part of the alarm only the monitor has seen.
func (a *Alarm) SeenAlone() string {
	return map[Kind]string{
		Fork:       "where and when they were shown",
		Shrink:     "that the smaller one was shown after the larger one, and for how long",
		Rewritten:  "that it was served in the log's place",
		Foreign:    "that it was served in the log's place",
		Flood:      "when it was shown",
		Impossible: "when it was shown",
	}[a.Kind]
}

// MonitorConfig says which log See looks at, and how closely.
type MonitorConfig struct {
	Log     *tiles.Client // required
	Trust   *trust.Trust  // required: the log's key, and the witnesses that must have cosigned
	Last    string        // the checkpoint that the last look returned; "": none, and everything is read
	Full    bool          // read everything, not only what is new
	Most    int64         // the largest number of new entries that a look reads; for more it returns a Flood alarm; 0: DefaultMost
	Sample  int           // how many randomly chosen old tiles to read again with their entries, unless everything is read
	Patient time.Duration // how long to wait for a log that shows less than before: a node or a cache may be behind; 0: 10 seconds

	// Progress is called with how many entries were read, and how many there are to read; nil: it is not called.
	Progress func(done, total int64)
}

// A Look is the result of a look that found nothing wrong.
type Look struct {
	Checkpoint string              // as it was served; the next look's MonitorConfig.Last
	Head       operator.Checkpoint // the parsed checkpoint
	First      bool                // there was no earlier checkpoint
	Before     int64               // the size of the earlier checkpoint
	Read       int64               // how many entries were checked against the tree
	Hidden     bool                // the log does not show entries to every reader: only their leaf hashes were checked
	Cosigned   []operator.Cosignature
	Unmet      error // why too few witnesses have cosigned; nil: enough have
}

const defaultPatience = 10 * time.Second

// DefaultMost is the default of MonitorConfig.Most: as many entries as a server gives to one reader in an hour.
const DefaultMost = 1 << 24

// ErrMemory says that the monitor's memory is no checkpoint of a trusted log. Destroying it must not gain a first look, which detects nothing.
var ErrMemory = errors.New("the remembered checkpoint is not valid")

// See looks at a log once. An error is an *Alarm, or says why it could not look: ErrMemory, tiles.ErrUnavailable, tiles.ErrRefused, or the context's.
func See(ctx context.Context, c MonitorConfig) (*Look, error) {
	if c.Log == nil || c.Trust == nil {
		return nil, errors.New("a monitor needs a log and a trust file")
	}
	m := &monitor{MonitorConfig: c}
	look, err := m.see(ctx)
	if served, is := errors.AsType[*tiles.InconsistentError](err); is {
		return nil, &Alarm{Kind: Rewritten, Reason: served.Error(), Old: c.Last, New: m.signed, Served: served}
	}
	return look, err
}

type monitor struct {
	MonitorConfig
	signed string // the checkpoint that this look examines
	hidden bool
	read   int64
	total  int64
}

func (m *monitor) see(ctx context.Context) (*Look, error) {
	old, err := m.known()
	if err != nil {
		return nil, err
	}
	head, err := m.head(ctx, old)
	if err != nil {
		return nil, err
	}
	look := &Look{Checkpoint: m.signed, Head: head, First: m.Last == "", Before: old.Size}
	look.Cosigned, look.Unmet = m.Trust.Witnessed(m.signed, time.Now()) // later cosignatures do not count
	if look.Unmet != nil && !errors.Is(look.Unmet, trust.ErrNotWitnessed) {
		return nil, m.alarm(Foreign, "%v", look.Unmet)
	}
	if err := m.compare(ctx, old, head); err != nil {
		return nil, err
	}
	look.Read, look.Hidden = m.read, m.hidden
	return look, nil
}

func (m *monitor) alarm(kind Kind, format string, args ...any) *Alarm {
	return &Alarm{Kind: kind, Reason: fmt.Sprintf(format, args...), Old: m.Last, New: m.signed}
}

// known parses the remembered checkpoint. The memory is the reader's own, so a checkpoint that is not valid is an error and not an alarm.
func (m *monitor) known() (operator.Checkpoint, error) {
	if m.Last == "" {
		return operator.Checkpoint{Root: operator.EmptyRoot()}, nil
	}
	old, err := m.Trust.OpenCheckpoint(m.Last)
	if err != nil {
		return old, fmt.Errorf("%w: %w", ErrMemory, err)
	}
	return old, nil
}

// head fetches the log's checkpoint. If it shows less than before, head asks again: a server in between may have cached an old one.
func (m *monitor) head(ctx context.Context, old operator.Checkpoint) (operator.Checkpoint, error) {
	patience := cmp.Or(m.Patient, defaultPatience)
	for until := time.Now().Add(patience); ; {
		head, err := m.fetch(ctx)
		if err != nil {
			return head, err
		}
		if m.Last != "" && head.Origin != old.Origin {
			return head, m.alarm(Foreign, "it is the log %s, not the watched log %s", head.Origin, old.Origin)
		}
		if head.Size >= old.Size {
			return head, nil
		}
		if time.Now().After(until) {
			return head, m.alarm(Shrink, "the log %s had %d entries, and shows %d", old.Origin, old.Size, head.Size)
		}
		select {
		case <-ctx.Done():
			return head, ctx.Err()
		case <-time.After(patience / 4):
		}
	}
}

func (m *monitor) fetch(ctx context.Context) (operator.Checkpoint, error) {
	signed, err := m.Log.Checkpoint(ctx)
	if err != nil {
		return operator.Checkpoint{}, err
	}
	m.signed = signed
	head, err := m.Trust.OpenCheckpoint(signed)
	switch {
	case errors.Is(err, trust.ErrNoCheckpoint):
		return head, m.alarm(Impossible, "%v", err)
	case err != nil:
		return head, m.alarm(Foreign, "%v", err)
	}
	return head, nil
}

// compare checks the log's data against both checkpoints.
func (m *monitor) compare(ctx context.Context, old, head operator.Checkpoint) error {
	if head.Size == 0 && head.Root != operator.EmptyRoot() {
		return m.alarm(Fork, "the log %s has signed a checkpoint of 0 entries with another root than an empty log's", head.Origin)
	}
	if head.Size == 0 {
		return nil
	}
	if old.Size == head.Size && old.Root != head.Root {
		return m.alarm(Fork, "the log %s has signed two checkpoints of %d entries with different roots", head.Origin, head.Size)
	}
	tree := m.Log.Tree(ctx, head)
	if err := m.follows(tree, old, head); err != nil {
		return err
	}
	// A log can sign a tree of 2^40 equal entries in a moment, but reading it takes a year, in which the monitor would see nothing else.
	if grown, most := head.Size-old.Size, cmp.Or(m.Most, DefaultMost); grown > most {
		return m.alarm(Flood, "the log %s says that it has %d entries, %d more than before, but a look reads at most %d", head.Origin, head.Size, grown, most)
	}
	parts, err := m.parts(old.Size, head.Size)
	if err != nil {
		return err
	}
	for _, part := range parts {
		m.total += part[1] - part[0]
	}
	const step = 8 * tiles.Width // entries are checked against their leaves, and the leaves against the root, a few tiles at a time
	for _, part := range parts {
		for start := part[0]; start < part[1]; start += step {
			end := min(part[1], start+step)
			if err := m.readEntries(tree, start, end); err != nil {
				return err
			}
			m.read += end - start
			if m.Progress != nil {
				m.Progress(m.read, m.total)
			}
		}
	}
	return nil
}

// follows demands a proof that the old tree is the beginning of the new one, made from tiles under the new root, so that it shows a fork.
func (m *monitor) follows(tree *tiles.Tree, old, head operator.Checkpoint) error {
	if m.Last == "" {
		return nil
	}
	proof, err := tree.ProveFork(old.Size)
	if err != nil {
		return err
	}
	if err := proof.Check(old, head); err != nil {
		a := m.alarm(Fork, "the log of %d entries is not the beginning of that of %d", old.Size, head.Size)
		a.Proof = proof
		return a
	}
	return nil
}

// parts returns the ranges of entries to read: the new ones, from the last incomplete tile on, and of the old ones all or a sample.
func (m *monitor) parts(old, size int64) ([][2]int64, error) {
	if m.Full || old == 0 {
		return [][2]int64{{0, size}}, nil
	}
	whole := old / tiles.Width // the number of complete tiles, which cannot have grown
	parts := [][2]int64{{whole * tiles.Width, size}}
	chosen := map[int64]bool{}
	for len(chosen) < m.Sample && int64(len(chosen)) < whole {
		drawn, err := rand.Int(rand.Reader, big.NewInt(whole))
		if err != nil {
			return nil, fmt.Errorf("choosing what to read again: %w", err)
		}
		if n := drawn.Int64(); !chosen[n] {
			chosen[n] = true
			parts = append(parts, [2]int64{n * tiles.Width, (n + 1) * tiles.Width})
		}
	}
	return parts, nil
}

func (m *monitor) readEntries(tree *tiles.Tree, from, to int64) error {
	if !m.hidden {
		err := tree.Entries(from, to, func(int64, []byte) error { return nil })
		if !errors.Is(err, tiles.ErrRefused) {
			return err
		}
		m.hidden = true
	}
	_, err := tree.Leaves(from, to)
	return err
}
