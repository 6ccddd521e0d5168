// Package ledger is the only writer: it seals what agents and people said, and keeps the records in one append-only
// log.
//
// # Guarantees
//
// When Seal returns a record, the record is signed, is stamped or waits to be, is durable, and has a place of its own
// in the log. When Seal returns an error, the record is not in the log, except after ErrUnknown: then the caller
// looks it up by its id. The log has no gaps, and no record id or payload twice. Its RFC 6962 hashes are stored in
// the same transaction as its records.
//
// Every method returns the errors of its store, wrapped: ErrClosed, ErrBusy, ErrDiskFull and ErrReadOnly, ErrDamaged if
// stored data contradict each other, ErrExpired for one record that was deleted, and the context's error. A comment at a
// method names only the errors that it has beside these.
//
// If an authority that should stamp does not answer, the record waits for it. That it waits is stored in the record's
// transaction. Settle adds late time stamps to records, in one transaction with an act that says so. So a record
// lacks a stamp that it should have if and only if the log says that it waits.
//
// When Checkpoint returns, the log's key has signed the size and the root hash of what is committed. The checkpoint
// is in the store and, if Config.Published is set, outside it. From then on not even the operator can change, drop or
// reorder one of these records without contradicting that signature. Records after the last checkpoint are protected
// only by their own signatures and time stamps. If some of them are removed from the end, nothing shows it.
//
// A ledger signs a checkpoint, and appends, only if the log contains every checkpoint that the ledger knows of. So a
// log that was restored from a backup, or lost its end, takes no record until it contains again what was signed.
// Otherwise there would be two histories under one key, and no proof could tell which one is true.
//
// # Concurrency
//
// Canonical form, signatures and time stamps are made in parallel. Only the places in the log, the hashes and the
// transactions are made one after the other: a lock orders them within a process, and the store's lock between
// processes. Readers do not wait. The places and the hashes are computed inside the transaction (see storage.Plan):
// otherwise two processes that append all the time could keep refusing each other.
//
// One transaction, and so one fsync, stores the records of all callers in the queue. A caller that finds no commit in
// progress commits the queue, even its own record alone; others wait for the next transaction, which one of them makes.
//
// Each record of a transaction is judged by itself and by what is committed. A duplicate, a key that has ended or an
// event that does not fit refuses this one record and not its neighbours. A record that would have to be judged by a
// neighbour is left for the next transaction: the same id twice, a key event and a record that the key signs, stamps
// that two bring. So a refusal is true whether the transaction succeeds or not. When a transaction fails, each of its
// callers looks for its own record, because a store can fail after it has stored.
//
// A caller whose context ends while its record is in the queue takes the record out. Once a transaction has taken the
// record, the caller's context no longer counts, and the caller gets the outcome.
//
// # A record that its owner signed is accepted unchanged, or refused
//
// Accept refuses a record that comes with time stamps, certificates or a place in a log. It does not strip them,
// because their owner may rely on them. It changes one thing: an ECDSA signature with a high S becomes the equivalent
// one with a low S, because `openssl` makes a high S every other time and has no option against it. Custody of a name
// goes from operator to owner and never back: an operator that could take over a name could also repudiate what was
// said under it.
//
// # Callers share one fsync, but not each other's errors
//
// A bad record refuses itself alone. The caller that commits does so for all: no goroutine in the background could hang.
package ledger

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/log/ledger/storage"
)

var (
	// ErrNoLog means that the store is empty: Create has never been called on it.
	ErrNoLog = errors.New("there is no log here")
	// ErrExists means that Create found a log, or the traces of one.
	ErrExists = errors.New("there is a log here already")
	// ErrBehind means that the log lacks records that its own checkpoint covers: it was restored from a backup, or
	// its end was removed. It can be read, but takes no records until it has them again.
	ErrBehind = errors.New("the log is behind its own checkpoint")
	// ErrForked means that the log contradicts a checkpoint that its key has signed.
	ErrForked = errors.New("the log contradicts its own checkpoint")
	// ErrUnknown means that the store failed and may or may not have stored the record. Look it up by the record id
	// in the error, before you seal the same again.
	ErrUnknown = errors.New("it is not known whether the record is in the log")
)

// A Stamper obtains time-stamp tokens.
type Stamper interface {
	// Stamp asks every configured authority for an RFC 3161 token over a SHA-256 imprint. An authority that does not
	// answer is listed in Missing, without an error.
	Stamp(ctx context.Context, imprint [32]byte) (Stamped, error)
}

// Stamped is the result of asking authorities for time stamps.
type Stamped struct {
	Tokens   [][]byte  // DER, each checked as far as its receiver can check it
	Missing  []Missing // authorities that should stamp but gave no good token
	Earliest time.Time // the time that the earliest token proves; zero: unknown
}

// Missing is an authority whose time stamp is missing, and why.
type Missing struct {
	Authority string
	Reason    error
}

// Published is where the last checkpoint is stored outside the store, so that a store that was set back is detected.
type Published interface {
	// Load returns the last checkpoint, or "" if there has been none.
	Load(ctx context.Context) (string, error)
	// Store replaces it, durably and atomically.
	Store(ctx context.Context, checkpoint string) error
}

// A Keeper decides what is sealed apart, and keeps what opens it.
type Keeper interface {
	// Apart returns a draft that names the members to seal apart, and those to make provable: those that it names
	// itself, and those that always are for its actor.
	Apart(ctx context.Context, draft *evidence.Draft) (*evidence.Draft, error)
	// Keep stores the record's disclosures, durably. The record is committed only after that. For a record without
	// disclosures it stores that they were never here. It can be called again for the same record, also after a
	// crash.
	Keep(ctx context.Context, record *evidence.Record) error
	// Forget removes the disclosures that Keep has stored, because the record did not get into the log.
	Forget(ctx context.Context, record *evidence.Record) error
}

// Config is what a Ledger works with.
type Config struct {
	Store     storage.Store    // required; the Ledger closes it
	Verifier  note.Verifier    // required: the log's public key, whose name is the log's origin
	Cosigned  Published        // where the last checkpoint with cosignatures of witnesses is stored; nil: none is
	Signer    note.Signer      // the log's private key; nil: no checkpoint can be signed
	Stamper   Stamper          // stamps every record; nil: no record can be sealed
	Settler   Stamper          // stamps the acts that never wait, see Settle; nil: Stamper
	Published Published        // nil: none, and a store that was set back is not detected
	Apart     Keeper           // decides and keeps what is sealed apart; nil: the draft decides, and the caller of Seal keeps it
	Random    io.Reader        // record ids and salts; nil: crypto/rand
	Now       func() time.Time // nil: time.Now

	// CatchUp makes Now continue from the time stamps of a record of the log, and Reach from the time at which a key begins. Another clock may have
	// given these times, and have been ahead. nil: nothing does.
	CatchUp func(*evidence.Record)
	Reach   func(time.Time)
	// Began returns since when the signers of a payload have their keys; nil: it is not known.
	Began func(context.Context, *evidence.Payload) (time.Time, error)

	// UnsafeContradictions turns off the judgment of links, and of who may enter a chain. A hostile operator can log
	// such records; tests use it.
	UnsafeContradictions bool

	Poll time.Duration // how often the head is read of a store that does not notify, see Grown; 0: twice a second
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

func (c *Config) open(signed string) (storage.Head, error) {
	return storage.OpenCheckpoint(signed, c.Verifier)
}

// A Ledger is one open log. It is safe for concurrent use, and other processes may have the same log open.
type Ledger struct {
	cfg    Config
	refuse error // why this ledger takes no records; nil: it takes them
	fixed  error // why the store cannot be written; nil: it can

	known atomic.Pointer[storage.Head] // the latest head that the log is known to have had; every later head must contain it

	keys atomic.Pointer[keys.History] // the state of keys as of the last read; nil: not read yet. Never changed

	queue  *queue      // what is to be appended
	links  *knownLinks // what the links of records are judged by
	growth growth      // the callers that wait for the log to grow

	writing storage.Lock // held while this process commits
	tree    *tree        // guarded by writing: the tree after the last append, if the store's head is still its head; nil: none yet

	briefs *brief.Index

	signedSize atomic.Int64 // how many records a stored checkpoint is known to cover; tiles show no others

	signing   storage.Lock // held while this process signs or publishes
	published string       // guarded by signing: the checkpoint that this ledger last found or stored in Published
}

func newLedger(cfg Config) (*Ledger, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
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
	l := &Ledger{cfg: cfg, queue: newQueue(), links: newLinks(cfg.Store), writing: storage.NewLock(), signing: storage.NewLock()}
	l.known.Store(&storage.Head{Root: storage.EmptyHead.Root})
	l.fixed = cfg.Store.ReadOnly()
	l.briefs = brief.New(cfg.Store, l.fixed)
	return l, nil
}

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

// Briefs returns the index of the log's briefs: what lists show of records, and what names what.
func (l *Ledger) Briefs() *brief.Index { return l.briefs }

// Close closes the store. What Seal has returned is durable without it.
func (l *Ledger) Close() error { return l.cfg.Store.Close() }

// lockedReader makes a random source safe for concurrent use.
type lockedReader struct {
	mu   sync.Mutex // held while a goroutine reads
	from io.Reader
}

func (r *lockedReader) Read(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return io.ReadFull(r.from, p)
}

// Errors of the store that callers of the Ledger see.
var (
	ErrNotFound   = storage.ErrNotFound
	ErrConflict   = storage.ErrConflict
	ErrDuplicate  = storage.ErrDuplicate
	ErrClosed     = storage.ErrClosed
	ErrDiskFull   = storage.ErrDiskFull
	ErrBusy       = storage.ErrBusy
	ErrAway       = storage.ErrAway
	ErrMoved      = storage.ErrMoved
	ErrReadOnly   = storage.ErrReadOnly
	ErrExpired    = storage.ErrExpired
	ErrDamaged    = storage.ErrDamaged
	ErrCheckpoint = storage.ErrCheckpoint
)

// A DuplicateError names the record that is in the log already.
type DuplicateError = storage.DuplicateError

// lastRows is how many rows at the end of the log Open compares with the tree. Package fsck reads all of them.
const lastRows = 16

// Create begins a log in an empty store. Open never does, so that a missing log is noticed. Create returns ErrExists
// if the store has a log, or Config.Published has the checkpoint of one.
func Create(ctx context.Context, cfg Config) (_ *Ledger, err error) {
	defer fault.While(&err, "creating ledger")
	l, err := newLedger(cfg)
	if err != nil {
		return nil, err
	}
	signed, err := l.sign(storage.EmptyHead)
	if err != nil {
		return nil, err
	}
	if err := l.nothingPublished(ctx); err != nil {
		return nil, err
	}
	// A crash before this leaves an empty store, and Create can be called again. After it there is a log, and Open
	// publishes the checkpoint.
	err = l.cfg.Store.SetCheckpoint(ctx, "", signed)
	if errors.Is(err, ErrConflict) {
		return nil, ErrExists
	}
	if err == nil {
		err = l.publish(ctx, signed)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

// nothingPublished returns ErrExists if a checkpoint is published: then there was a log before, and its store is
// missing.
func (l *Ledger) nothingPublished(ctx context.Context) error {
	if l.cfg.Published == nil {
		return nil
	}
	signed, err := l.cfg.Published.Load(ctx)
	if err != nil || signed == "" {
		return err
	}
	if in, err := l.cfg.Store.Checkpoint(ctx); err != nil || in != "" {
		return errors.Join(ErrExists, err)
	}
	return fmt.Errorf("%w: its checkpoint is published, but its records are missing: restore them", ErrExists)
}

// Open opens a log that Create has begun, and checks that its parts agree: the head with the stored hashes, the last
// rows with their leaf hashes, the checkpoint with the key and the tree. It returns ErrNoLog if there is no log, and
// ErrCheckpoint or ErrDamaged if the parts disagree. In that case fsck.Run tells more.
//
// A log that lacks records under the checkpoint in Config.Published, or whose store cannot be written, opens for
// reading, and CanAppend returns the reason.
func Open(ctx context.Context, cfg Config) (_ *Ledger, err error) {
	defer fault.While(&err, "opening ledger")
	l, err := newLedger(cfg)
	if err == nil {
		err = l.open(ctx)
	}
	if err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Ledger) open(ctx context.Context) error {
	signed, err := l.cfg.Store.Checkpoint(ctx)
	if err != nil {
		return err
	}
	if signed == "" {
		return ErrNoLog
	}
	checkpoint, err := l.cfg.open(signed)
	if err != nil {
		return err
	}
	head, err := l.cfg.Store.Head(ctx) // read after the checkpoint, which it must contain
	if err != nil {
		return err
	}
	if err := l.agrees(ctx, head, checkpoint); err != nil {
		return err
	}
	return l.compareWithPublished(ctx, signed, checkpoint, head)
}

func (l *Ledger) agrees(ctx context.Context, head, checkpoint storage.Head) error {
	hashes := l.cfg.hashes(ctx)
	if _, err := loadTree(head, hashes); err != nil {
		return err
	}
	if err := contains(head, checkpoint, hashes); err != nil {
		return fmt.Errorf("%w: the stored checkpoint: %w", ErrDamaged, err)
	}
	from := max(0, head.Size-lastRows)
	rows, err := l.cfg.Store.Rows(ctx, from, head.Size-from+1) // one more: there is none, unless the end of the log was taken away, or it has grown meanwhile
	if err != nil {
		return err
	}
	if n := int(head.Size - from); len(rows) > n {
		if now, err := l.cfg.Store.Head(ctx); err != nil || now == head {
			return cmp.Or(err, fmt.Errorf("%w: there is a record after the end of the log, at index %d", ErrDamaged, head.Size))
		}
		rows = rows[:n]
	}
	if int64(len(rows)) != head.Size-from {
		return fmt.Errorf("%w: only %[3]d of the last %[2]d rows are in the store", ErrDamaged, head.Size-from, len(rows))
	}
	for i := range rows {
		if err := l.rowInTree(&rows[i], hashes); err != nil {
			return err
		}
	}
	return nil
}

func (l *Ledger) rowInTree(row *storage.Row, hashes tlog.HashReader) error {
	entry, err := row.LogEntry()
	if err != nil {
		return err
	}
	stored, err := hashes.ReadHashes([]int64{tlog.StoredHashIndex(0, row.Index)})
	if err != nil {
		return err
	}
	if stored[0] != tlog.RecordHash(entry) {
		return fmt.Errorf("%w: row %d (record %s) differs from what was logged there", ErrDamaged, row.Index, row.RecordID)
	}
	return nil
}

// compareWithPublished detects a store that was set back, and publishes a newer checkpoint of the store.
func (l *Ledger) compareWithPublished(ctx context.Context, signed string, checkpoint, head storage.Head) error {
	if l.cfg.Published == nil {
		l.learn(head)
		return nil
	}
	outside, err := l.cfg.Published.Load(ctx)
	if err != nil {
		return err
	}
	if outside == "" && checkpoint.Size > 0 {
		l.refuse = fmt.Errorf("%w: it covers %s, but no checkpoint is published: "+
			"restore the latest checkpoint that anyone has", ErrBehind, plural.Of(checkpoint.Size, "record"))
		return nil
	}
	published := storage.EmptyHead
	if outside != "" {
		if published, err = l.cfg.open(outside); err != nil {
			return fmt.Errorf("the published checkpoint: %w", err)
		}
	}
	err = contains(head, published, l.cfg.hashes(ctx))
	if errors.Is(err, ErrBehind) || errors.Is(err, ErrForked) {
		l.known.Store(&published) // appending returns an error until the log contains it
		return nil
	}
	if err != nil {
		return err
	}
	l.learn(head)
	l.published = outside
	if l.cfg.Signer == nil || l.fixed != nil || published.Size >= checkpoint.Size {
		return nil
	}
	return l.publish(ctx, signed)
}

// CanAppend returns why no record can be sealed: ErrReadOnly, ErrBehind, ErrForked, or the store's reason, such as
// ErrDiskFull. It returns nil if it knows of no reason.
func (l *Ledger) CanAppend(ctx context.Context) error {
	if err := l.mayAppend(); err != nil {
		return err
	}
	known := *l.known.Load()
	head, err := l.cfg.Store.Head(ctx)
	if err != nil {
		return err
	}
	if err := contains(head, known, l.cfg.hashes(ctx)); err != nil {
		return err
	}
	return l.cfg.Store.Probe(ctx)
}

// ReadOnly returns ErrReadOnly, with the reason, if the store cannot be written.
func (l *Ledger) ReadOnly() error { return l.fixed }

// mayAppend checks what it can without reading the store.
func (l *Ledger) mayAppend() error {
	if l.fixed != nil {
		return l.fixed
	}
	if l.cfg.Stamper == nil {
		return fmt.Errorf("%w: no time-stamping authority is configured", ErrReadOnly)
	}
	if l.refuse != nil {
		return l.refuse
	}
	return l.InPlace() // before settings are read and values stored, which a folder that is away would lack
}

// InPlace returns ErrMoved, wrapped, if the files of the log are not where this process opened them.
func (l *Ledger) InPlace() error { return l.cfg.Store.InPlace() }
