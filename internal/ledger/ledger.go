// Package ledger is the only writer: it seals what was said, and keeps the records in one append-only log.
//
// # What holds when
//
// When Seal has returned a record, the record is signed, stamped or waiting to be, durable, and has a place in the log that no other
// record has. When Seal has returned an error, the record is not in the log, unless the error is ErrUnknown, and then
// the record's id says. The log has no gaps, no record id and no payload twice, and its RFC 6962 hashes are stored in
// the same transaction as its records.
//
// Where an authority that is to stamp has not answered, the record waits for it, and that it waits is stored with it, in
// the same transaction. Settle gives records the time stamps that they wait for, in one transaction with the act that
// says so. So a record is without a stamp that it was to have if and only if the log says that it waits.
//
// When Checkpoint has returned, the log key has signed the size and the root hash of what is committed, and this
// stands in the store and, where Config.Published is set, outside of it. From then on nobody, the operator included,
// can change, drop or reorder one of these records without contradicting that signature. Of records after the last
// checkpoint only their own signatures and time stamps speak; that some are missing at the end shows nowhere.
//
// A ledger signs a checkpoint only over a log that contains every checkpoint it knows of, and appends only to such a
// log. So a log that came back from a backup, or lost its end, takes no record until it holds again what was signed:
// otherwise there would be two histories under one key, and no proof could tell which is the true one.
//
// # Who does what
//
// Bringing a draft into canonical form, signing and stamping happen in parallel. Only the places in the log, the hashes
// and the transactions are one after the other: in one process by a lock, between processes by the store's. Readers
// wait for nobody. The places and the hashes are decided on inside the transaction (see Plan), and not before it with a
// comparison at the end: two processes that append all the time would keep refusing each other.
//
// One transaction, and so one fsync, stores the records of many callers: all that are sealed and in the queue when it
// begins. Nobody waits for a batch to fill. A caller that finds nobody committing commits at once what is there, be it
// its own record alone; those who come meanwhile wait for the next transaction, which one of them makes for all. At most
// maxQueued are in the queue, and the others wait before it.
//
// Each record of a transaction is judged by itself and by what is committed: a duplicate, a key that has ended or an
// event that does not fit refuses this one record, and its neighbours do not notice. What would have to be judged by a
// neighbour (the same id twice, an event of a key and what the key signs, stamps that two bring) is left for the next
// transaction, so that a refusal is true whether this one succeeds or not. When a transaction fails, each of its callers looks
// for its own record, since a store can fail after it has stored.
//
// Where records are stamped together (Config.Group), whoever is about to commit stamps what is in the queue first, and what belongs to
// each record is made while the transaction is under way: it goes into the next one.
//
// A caller whose context ends while its record is in the queue leaves with it. Once a transaction has taken the record, the
// caller is told what became of it, and its context does not count any more.
//
// # What an owner signed is taken as it is, or not at all
//
// A record from elsewhere that brings time stamps, certificates or a place in a log is refused rather than stripped, so that nobody
// relies on what was dropped. One thing is changed: an ECDSA signature with a high S becomes its twin, as `openssl` makes one every
// other time and cannot be told otherwise. Custody goes from operator to owner and never back: an operator that could take over a
// name could deny for it, too.
//
// # Many callers share one fsync, and no fate
//
// All records that are sealed when a transaction begins go into it, however few they are; nobody waits for a batch to fill, so a
// lone caller is not slower for there being groups. Each record is judged by what is committed, never by a neighbour: what depends
// on a neighbour (the same id, an event of a key, stamps that two bring) waits for the next transaction. So a bad record refuses
// itself alone, and a refusal is true whether the transaction succeeds or not. Whoever commits, does it for all: there is no thread
// in the background that could hang, or be forgotten at the end.
package ledger

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/internal/keys"
	"jurat/internal/ledger/brief"
	"jurat/internal/ledger/links"
	"jurat/internal/ledger/storage"
)

var (
	// ErrNoLog says that the store is empty: Create has never been called on it.
	ErrNoLog = errors.New("there is no log here")
	// ErrExists says that there is a log, or was one, where Create was to begin one.
	ErrExists = errors.New("there is a log here already")
	// ErrBehind says that the log lacks records that a checkpoint of its own covers: it came back from a backup, or
	// its end was cut off. It can be read, and takes nothing until it has them again.
	ErrBehind = errors.New("the log is behind its own checkpoint")
	// ErrForked says that the log is not the one that its key has signed a checkpoint of.
	ErrForked = errors.New("the log contradicts its own checkpoint")
	// ErrUnknown says that the store failed so that nobody knows whether the record is in the log. Look it up by the
	// record id that the error names, before the same is sealed again.
	ErrUnknown = errors.New("it is not known whether the record is in the log")
)

// A Stamper obtains time-stamp tokens.
type Stamper interface {
	// Stamp asks every authority that is to stamp for an RFC 3161 token over a SHA-256 imprint. An authority that does
	// not answer is no error: it is missing.
	Stamp(ctx context.Context, imprint [32]byte) (Stamped, error)
}

// Stamped is what came of asking authorities for time stamps.
type Stamped struct {
	Tokens   [][]byte  // DER, each checked as far as its receiver can check it
	Missing  []Missing // authorities that are to stamp and gave no good token
	Earliest time.Time // what the earliest token proves; zero: nobody has looked
}

// Missing is an authority whose time stamp is still to come, and why.
type Missing struct {
	Authority string
	Reason    error
}

// Published is where the last checkpoint is kept outside the store, so that a store that went back in time is known.
type Published interface {
	// Load returns the last checkpoint, or "" when there has been none.
	Load(ctx context.Context) (string, error)
	// Store replaces it, durably and whole.
	Store(ctx context.Context, checkpoint string) error
}

// A Keeper says what is sealed apart, and keeps what opens it.
type Keeper interface {
	// Apart lists the members that are sealed apart of a draft: those that it names itself, and those that always are of its actor.
	Apart(ctx context.Context, draft *evidence.Draft) ([]string, error)
	// Keep stores the record's disclosures, durably. The record is appended after that, or not at all. Of a record without
	// disclosures it notes that they were never here, which it can be asked for again, after a crash too.
	Keep(ctx context.Context, record *evidence.Record) error
	// Forget takes away what Keep has stored, because the record did not get into the log.
	Forget(ctx context.Context, record *evidence.Record) error
}

// Config is what a Ledger works with.
type Config struct {
	Store     storage.Store    // required; the Ledger closes it
	Verifier  note.Verifier    // required: the log's public key, whose name is the log's origin
	Cosigned  Published        // where the last checkpoint is kept that witnesses have cosigned; nil: nobody cosigns
	Signer    note.Signer      // the log's private key; nil: no checkpoint can be signed
	Stamper   Stamper          // stamps every record; nil: nothing can be sealed
	Group     GroupStamper     // stamps together what is in the queue, beside Stamper; nil: nobody does
	Settler   Stamper          // stamps the acts that never wait, see Settle; nil: Stamper
	Published Published        // nil: none, and a store that went back in time passes for the present one
	Archive   storage.Archive  // gives back what rows have shed; nil: nobody does
	Apart     Keeper           // says what is sealed apart, and keeps it; nil: what a draft names, and the caller of Seal keeps it
	Random    io.Reader        // record ids and salts; nil: crypto/rand
	Now       func() time.Time // nil: time.Now

	// UnsafeContradictions takes in what the links of records contradict, and into a chain whoever comes: what a hostile operator can log.
	UnsafeContradictions bool

	// Indexing is told how far briefs are made of records that have none, see Briefs; nil: nobody is told.
	Indexing func(done, total int64)

	Poll time.Duration // how often a store that does not tell by itself is asked whether it has grown, see Grown; 0: half a second
}

func (c *Config) check() error {
	if c.Store == nil || c.Verifier == nil {
		return errors.New("a ledger needs a store and the log's public key")
	}
	if c.Signer != nil && (c.Signer.Name() != c.Verifier.Name() || c.Signer.KeyHash() != c.Verifier.KeyHash()) {
		return fmt.Errorf("%w: the private key (%s) and the public key (%s) of the log are not a pair",
			ErrCheckpoint, c.Signer.Name(), c.Verifier.Name())
	}
	return nil
}

// open reads a signed checkpoint of this log.
func (c *Config) open(signed string) (storage.Head, error) {
	return storage.OpenCheckpoint(signed, c.Verifier)
}

// A Ledger is one log, open. It is safe for concurrent use, and other processes may have the same log open.
type Ledger struct {
	cfg    Config
	refuse error // why this ledger takes no records at all; nil: it does
	fixed  error // why nothing can be written where the store is; nil: it can

	known atomic.Pointer[storage.Head] // the latest head that the log is known to have had: it must contain this for ever

	keys atomic.Pointer[keys.History] // what the log says of keys, as far as it was last read; nil: it was not. Never changed

	queue  *queue       // what is to be appended
	links  *links.Known // by what it is judged
	growth growth       // who waits for the log to grow

	writing storage.Lock // while it is held, nobody else in this process commits
	tree    *tree        // guarded by writing: the tree after the last append, for as long as the store's head is its head; nil: none yet

	briefs *brief.Index

	signedSize atomic.Int64 // how many records a stored checkpoint is known to cover: a tile shows no others

	signing   storage.Lock // while it is held, nobody else in this process signs or publishes
	published string       // guarded by signing: the checkpoint that this ledger last found or stored in Published
}

func newLedger(cfg Config) (*Ledger, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.Store = storage.WholeRows(cfg.Store, cfg.Archive)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Poll <= 0 {
		cfg.Poll = pollInterval
	}
	if cfg.Random == nil {
		cfg.Random = rand.Reader
	} else {
		cfg.Random = &lockedReader{from: cfg.Random}
	}
	l := &Ledger{cfg: cfg, queue: newQueue(), links: links.New(cfg.Store), writing: storage.NewLock(), signing: storage.NewLock()}
	l.known.Store(&storage.Head{Root: storage.EmptyHead.Root})
	if p, ok := storage.Kept(l.cfg.Store).(storage.Protected); ok {
		l.fixed = p.ReadOnly()
	}
	l.briefs = brief.New(cfg.Store, l.fixed, cfg.Indexing)
	return l, nil
}

// learn remembers that the log has had this head.
func (l *Ledger) learn(head storage.Head) {
	for {
		known := l.known.Load()
		if known.Size >= head.Size || l.known.CompareAndSwap(known, &head) {
			return
		}
	}
}

// Origin returns the log's name.
func (l *Ledger) Origin() string { return l.cfg.Verifier.Name() }

// Size returns how many records are committed.
func (l *Ledger) Size(ctx context.Context) (int64, error) {
	head, err := l.cfg.Store.Head(ctx)
	return head.Size, err
}

// Briefs returns what lists show of the log's records, and what names what.
func (l *Ledger) Briefs() *brief.Index { return l.briefs }

// Close closes the store. What Seal has returned needs no Close to be durable.
func (l *Ledger) Close() error { return l.cfg.Store.Close() }

// lockedReader lets many goroutines draw from a source that was made for one.
type lockedReader struct {
	mu   sync.Mutex // while it is held, nobody else reads
	from io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.from, p)
}
