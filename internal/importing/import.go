package importing

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/maphash"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"jurat/evidence"
	"jurat/evidence/observed"
)

// Options say whose acts are imported, and where they go.
type Options struct {
	Agent    string // whose acts the file tells of
	Name     string // of conversations that have none of their own; "": that of the file, without its extension
	Recorder string // who imports
	Version  string // of this program
	Skip     bool   // pass over entries that are wrong or were changed

	// Chain returns the chain of a conversation.
	Chain func(conversation string) string
	// Sealed returns what the log has under a record id; nil: nothing.
	Sealed func(ctx context.Context, recordID string) (*Sealed, error)
	// Seal seals an act. It is called by several goroutines, but for one chain by one at a time, in the order of the file. nil for Check.
	Seal func(ctx context.Context, recordID string, act observed.Act) error
	// Each is told of each new entry; nil: nobody is.
	Each func(Entry)
	// Progress is told how many entries were looked at; nil: nobody is.
	Progress func(done, total int64)

	Now     func() time.Time // nil: time.Now
	Workers int              // how many seal at once; 0: 16
}

// Sealed is what a record says that was sealed of an entry before.
type Sealed struct {
	Bytes  int64
	SHA256 evidence.Digest // zero: the record has expired, and what it said is not known
}

// An Entry is what is said of one exchange that is new.
type Entry struct {
	Chain   string `json:"chain"`
	Record  string `json:"record"`
	Place   string `json:"place"`
	Prompt  int    `json:"messages_before"` // messages that were said to the agent
	Answers int    `json:"messages_after"`
	Bytes   int    `json:"bytes"`
	SaidAt  string `json:"said_at,omitzero"` // by the word of the file
	Model   string `json:"model,omitzero"`
}

// A Tally counts what a file has.
type Tally struct {
	Entries int     `json:"entries"` // that could be read
	New     int     `json:"new"`     // of these, not in the log; after Seal: that were sealed
	Known   int     `json:"known"`   // in the log, and the same
	Changed int     `json:"changed"` // in the log, and other than in the file
	Wrong   int     `json:"wrong"`   // that could not be read
	Chains  int     `json:"chains"`  // of the entries
	Faults  []error `json:"-"`       // the first of those that are changed or wrong
}

// mostFaults is how many faults are named.
const mostFaults = 100

// ErrChanged is in the chain of the fault of an entry that the log has with other words.
var ErrChanged = errors.New("it was changed since it was imported")

// Check reads a file to its end and says what is new in it. Nothing is sealed.
func Check(ctx context.Context, f *File, o Options) (Tally, error) {
	return f.walk(ctx, &o, func(*Exchange, string) error { return nil })
}

// Seal seals what is new in a file. Call Check before, and only if it finds no fault or they are to be passed over. If the context ends, what was sealed
// stands, and another call goes on from there.
func Seal(ctx context.Context, f *File, o Options) (Tally, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Workers == 0 {
		o.Workers = 16
	}
	o.Skip = true // Check has named what is wrong
	s := newSealers(ctx, f, &o)
	tally, err := f.walk(ctx, &o, s.take)
	sealed, failed := s.wait()
	tally.New = sealed
	if failed != nil {
		return tally, failed
	}
	if err = cmp.Or(err, ctx.Err()); err != nil { // what waited in the queues was not sealed
		return tally, err
	}
	return tally, f.unchanged()
}

// walk reads all exchanges, and calls do for each that is new.
func (f *File) walk(ctx context.Context, o *Options, do func(e *Exchange, id string) error) (t Tally, err error) {
	if err := f.open(); err != nil {
		return t, err
	}
	if o.Name != "" {
		f.label, f.given = o.Name, o.Name
	}
	w := &walk{File: f, o: o, tally: &t, seen: map[uint64]uint64{}, chains: map[uint64]bool{}, seed: maphash.MakeSeed(), do: do}
	defer func() { t.Chains = len(w.chains) }()
	for e, err := range f.Exchanges(ctx) {
		var fault *Fault
		switch {
		case errors.As(err, &fault):
			t.Wrong++
			w.fault(fault)
			continue
		case err != nil:
			return t, err
		}
		if err := w.exchange(ctx, e); err != nil {
			return t, err
		}
		if o.Progress != nil {
			o.Progress(int64(t.Entries), 0)
		}
	}
	return t, ctx.Err()
}

type walk struct {
	*File
	o      *Options
	tally  *Tally
	seen   map[uint64]uint64 // digests of ids and parts: an id may stand twice in a file
	chains map[uint64]bool   // digests of names
	seed   maphash.Seed
	do     func(*Exchange, string) error
}

func (w *walk) fault(err error) {
	if len(w.tally.Faults) < mostFaults {
		w.tally.Faults = append(w.tally.Faults, err)
	}
}

// exchange compares an exchange with what the log has.
func (w *walk) exchange(ctx context.Context, e *Exchange) error {
	w.tally.Entries++
	w.chains[maphash.String(w.seed, e.Conversation)] = true
	id := w.id(e)
	part := e.Part()
	if e.own {
		key, sum := maphash.String(w.seed, id), maphash.Bytes(w.seed, part)
		if before, twice := w.seen[key]; twice {
			return w.again(e, before == sum)
		}
		w.seen[key] = sum
	}
	sealed, err := w.o.Sealed(ctx, id)
	switch {
	case err != nil:
		return err
	case sealed == nil:
		w.tally.New++
		w.tell(e, id, len(part))
		return w.do(e, id)
	case sealed.SHA256.IsZero(), sealed.Bytes == int64(len(part)) && sealed.SHA256 == evidence.DigestOf(part):
		w.tally.Known++
		return nil
	case sealed.Bytes > 0 && sealed.Bytes < int64(len(part)) && evidence.Digest(sha256.Sum256(part[:sealed.Bytes])) == sealed.SHA256:
		if rest := e.rest(sealed.Bytes); rest != nil {
			w.tally.Known++
			return w.exchange(ctx, rest)
		}
	}
	w.tally.Changed++
	w.fault(&Fault{w.Name, e.Place(), fmt.Errorf("%w: the record %s has another text of this entry, or was made by a version of this program that read it otherwise; --name gives what has no ids of its own another name", ErrChanged, id)})
	return nil
}

// again takes an entry whose id stood in the file before.
func (w *walk) again(e *Exchange, same bool) error {
	if same {
		w.tally.Known++
		return nil
	}
	w.tally.Wrong++
	w.fault(&Fault{w.Name, e.Place(), fmt.Errorf("an entry before it has the same id %q and other words", cut(e.Entry, 100))})
	return nil
}

// id is that of the record of an exchange.
func (w *walk) id(e *Exchange) string {
	if e.told != nil {
		return e.told.RecordID(w.o.Agent, false) // as if the exporter had sent it
	}
	format := string(w.Format)
	if w.Format.isConversation() {
		format = "conversation" // which form it has may be seen otherwise another time
	}
	return evidence.RecordIDFor("", "import", w.o.Agent, format, e.Conversation, e.Entry)
}

func (w *walk) tell(e *Exchange, id string, bytes int) {
	if w.o.Each == nil {
		return
	}
	prompt, answers, model := e.counted()
	for _, u := range e.units {
		model = or(u.model, or(u.requested, model))
	}
	w.o.Each(Entry{Chain: w.o.Chain(e.Conversation), Record: id, Place: e.Place(), Prompt: prompt, Answers: answers, Bytes: bytes, SaidAt: e.when(), Model: model})
}

// sealers seal exchanges: those of one chain one after the other, those of several at once, as one at a time would wait for the disk each time.
type sealers struct {
	*File
	o      *Options
	ctx    context.Context // ends when one cannot be sealed
	group  *errgroup.Group
	seed   maphash.Seed
	queues []chan job
	sealed atomic.Int64
}

type job struct {
	e  *Exchange
	id string
}

func newSealers(ctx context.Context, f *File, o *Options) *sealers {
	s := &sealers{File: f, o: o, seed: maphash.MakeSeed(), queues: make([]chan job, o.Workers)}
	s.group, s.ctx = errgroup.WithContext(ctx)
	for i := range s.queues {
		s.queues[i] = make(chan job, 1)
		s.group.Go(func() error { return s.work(s.queues[i]) })
	}
	return s
}

// take hands an exchange to the one who seals its chain.
func (s *sealers) take(e *Exchange, id string) error {
	queue := s.queues[maphash.String(s.seed, e.Conversation)%uint64(len(s.queues))]
	select {
	case queue <- job{e, id}:
		return nil
	case <-s.ctx.Done():
		return context.Cause(s.ctx)
	}
}

// work seals until its queue ends. An act that has begun is sealed whole, however this ends.
func (s *sealers) work(queue chan job) error {
	for j := range queue {
		if s.ctx.Err() != nil {
			return nil // the caller's own context, or the other's error, says why
		}
		act := s.act(s.o, j.e, j.id, s.o.Now())
		if err := s.o.Seal(context.WithoutCancel(s.ctx), j.id, act); err != nil {
			return fmt.Errorf("%s: %s: sealing: %w", s.Name, j.e.Place(), err)
		}
		s.sealed.Add(1)
	}
	return nil
}

// wait waits for what has begun. It returns how many were sealed, and why one could not be.
func (s *sealers) wait() (int, error) {
	for _, queue := range s.queues {
		close(queue)
	}
	err := s.group.Wait()
	return int(s.sealed.Load()), err
}
