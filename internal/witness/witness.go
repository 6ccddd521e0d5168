// Package witness cosigns checkpoints of logs that it has seen grow, and asks others to (C2SP tlog-witness).
//
// A Witness remembers of each log the largest tree that it has cosigned, and cosigns nothing that this tree is not the beginning
// of. So what has as many cosignatures as somebody demands is one history, unless that many witnesses lie. What it remembers is
// durable before anybody sees a cosignature: a crash in between loses a signature, and no memory.
//
// # Witnesses
//
// A line of theirs in the signed note, beside the log's, so that nobody is disturbed who does not know them. The reader's trust file
// names them and says how many must have cosigned (`quorum`); without that many the order is not proved. A quorum has no default
// there: a file that names witnesses and does not say how many would seem to demand them. One public key is one witness, as
// cosignatures do not cover names. A false line in a witness's name refutes, as a false line in the log's name does. One of a time
// to come does not count: who has a witness's key for a day could cosign histories with it that are made later.
//
// # A witness remembers before it signs
//
// Looking at the known tree, checking the proof and storing the larger tree are one transaction of SQLite that begins by locking;
// the cosignature is made after it is durable. Two requests, two processes or a kill at any moment cost a cosignature at most.
// Triggers keep the file from forgetting, whoever writes to it.
//
// # A log waits for no witness
//
// A server asks them beside everything else, when the log has grown and again where one was silent, and keeps the last checkpoint
// that counts; proofs and `/log/checkpoint` are under that one. What is stamped by an authority (`jurat log anchor`) is what was
// cosigned, also where more has been sealed meanwhile. How far witnesses are is in the metrics and in `jurat log witness list`.
//
// # A monitor watches a log
//
// It does so for somebody who does not trust who runs it.
//
// A Monitor remembers the last checkpoint that it has seen. When it looks again, it demands that the log has only grown since: that the
// key which it was told of signed the new checkpoint, that the old tree is the beginning of the new one, and that every tile and
// entry that came is what the new checkpoint says. Anything else is an Alarm, with what shows it to others.
//
// # A monitor reads what is new, and some of what is old
//
// It demands a consistency proof from the tiles, then every new tile and entry, and tiles chosen by chance, all hashed up to the
// root. There are four kinds of alarm, of which only a fork convinces others: both checkpoints are signed, and between two sizes
// nodes of the larger tree show that the smaller is not in it. Of the others the monitor's files say what its word is. Its memory is
// all that it has: an empty file is no first look. A log that shows less than before is asked again for some seconds, because a
// cache or a second node may be behind.
package witness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
	_ "modernc.org/sqlite" // the driver

	"jurat/evidence/operator"
)

var (
	// ErrUnknownLog says that the witness knows no log of this origin.
	ErrUnknownLog = errors.New("no log of this origin is known here")
	// ErrSignature says that no key that is known for the log signed the checkpoint.
	ErrSignature = errors.New("no key that is known for this log signed the checkpoint")
	// ErrMalformed says that what was sent is not what is asked for.
	ErrMalformed = errors.New("malformed")
	// ErrProof says that the proof does not lead from the tree that the witness knows to the one that it is to cosign.
	ErrProof = errors.New("the consistency proof does not hold")
)

// A ConflictError says that the witness knows the log at another size than the one asked for.
type ConflictError struct {
	Size   int64 // of the largest tree that it has cosigned
	Forked bool  // it has this size, and another root
}

func (e *ConflictError) Error() string {
	if e.Forked {
		return fmt.Sprintf("the log has signed another tree of %d entries", e.Size)
	}
	return fmt.Sprintf("the last tree of this log that was cosigned here has %d entries", e.Size)
}

// Config is what a Witness works with.
type Config struct {
	File string             // required: the database of what it remembers, made when it is not there
	Key  *operator.Cosigner // required
	Logs []note.Verifier    // the keys of the logs that it witnesses. The name of each is the log's origin; a log may have several
	Now  func() time.Time   // nil: time.Now
}

// A Witness cosigns. It is safe for concurrent use, and several processes may share its file.
type Witness struct {
	key   *operator.Cosigner
	logs  map[string][]note.Verifier // by origin
	now   func() time.Time
	db    *sql.DB
	after func(step string) // told of each step when it is done; tests crash there
}

// Open opens what a witness remembers.
func Open(ctx context.Context, c Config) (*Witness, error) {
	if c.File == "" || c.Key == nil {
		return nil, errors.New("a witness needs a file and a key")
	}
	w := &Witness{key: c.Key, logs: map[string][]note.Verifier{}, now: c.Now, after: func(string) {}}
	if w.now == nil {
		w.now = time.Now
	}
	for _, log := range c.Logs {
		w.logs[log.Name()] = append(w.logs[log.Name()], log)
	}
	var err error
	if w.db, err = openMemory(ctx, c); err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.File, err)
	}
	return w, nil
}

// schema is of what a witness remembers. Nothing of it is ever made smaller, whoever writes.
const schema = `
CREATE TABLE IF NOT EXISTS witness (one INTEGER PRIMARY KEY CHECK (one = 1), key TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS logs (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL, checkpoint TEXT NOT NULL) STRICT;
CREATE TRIGGER IF NOT EXISTS logs_grow BEFORE UPDATE ON logs
WHEN NEW.origin <> OLD.origin OR NEW.size < OLD.size OR NEW.size = OLD.size AND NEW.root <> OLD.root
BEGIN SELECT RAISE(ABORT, 'a witness forgets nothing'); END;
CREATE TRIGGER IF NOT EXISTS logs_stay BEFORE DELETE ON logs BEGIN SELECT RAISE(ABORT, 'a witness forgets nothing'); END;
`

func openMemory(ctx context.Context, c Config) (*sql.DB, error) {
	path, err := filepath.Abs(c.File)
	if err != nil {
		return nil, err
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)", "journal_mode(WAL)", "synchronous(FULL)"}}
	db, err := sql.Open("sqlite", (&url.URL{Scheme: "file", Path: path, RawQuery: settings.Encode()}).String())
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // one looks or remembers at a time, for a moment
	if err := claim(ctx, db, c.Key); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// claim makes the file this witness's, or checks that it is: what one key has cosigned says nothing of another.
func claim(ctx context.Context, db *sql.DB, key *operator.Cosigner) error {
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return err
	}
	if _, err := db.ExecContext(ctx, `INSERT INTO witness VALUES (1, ?) ON CONFLICT DO NOTHING`, key.String()); err != nil {
		return err
	}
	var whose string
	if err := db.QueryRowContext(ctx, `SELECT key FROM witness`).Scan(&whose); err != nil {
		return err
	}
	if whose != key.String() {
		return fmt.Errorf("it is what the witness %s remembers, and the key is that of %s", whose, key)
	}
	return nil
}

// Key is the witness's verifier key, for those who are to trust it.
func (w *Witness) Key() *operator.Witness { return &w.key.Witness }

// Close closes the file. What was cosigned is remembered already.
func (w *Witness) Close() error { return w.db.Close() }

// A Request asks to cosign a checkpoint.
type Request struct {
	Old    int64       // the size of the tree that the witness is believed to know; 0: none
	Proof  []tlog.Hash // from it to the checkpoint's
	Signed string      // the checkpoint, a signed note
}

// AddCheckpoint cosigns a checkpoint, and returns the line to be added to it. In this order: ErrMalformed for what is no
// checkpoint, ErrUnknownLog, ErrSignature, ErrMalformed for an old size above the checkpoint's, a *ConflictError, ErrProof.
func (w *Witness) AddCheckpoint(ctx context.Context, r Request) (line string, err error) {
	text, head, err := w.open(r.Signed)
	if err != nil {
		return "", err
	}
	if r.Old < 0 || r.Old > head.Size {
		return "", fmt.Errorf("%w: the old size %d is not between 0 and the checkpoint's %d", ErrMalformed, r.Old, head.Size)
	}
	at, err := w.grow(ctx, r, head)
	if err != nil {
		return "", err
	}
	w.after("remembered") // a crash here costs the log a cosignature, for which it asks again
	return w.key.Cosign(text, at), nil
}

// open reads a checkpoint and checks the log's signature. Extension lines are the log's own business, and are cosigned with the rest.
func (w *Witness) open(signed string) (text string, head operator.Checkpoint, err error) {
	unknown, err := textOf(signed)
	if err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	origin, _, _ := strings.Cut(unknown, "\n")
	keys := w.logs[origin]
	if keys == nil {
		return "", head, fmt.Errorf("%w: %q", ErrUnknownLog, origin)
	}
	n, err := note.Open([]byte(signed), note.VerifierList(keys...))
	if err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	head, err = parse(n.Text)
	if err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return n.Text, head, nil
}

// textOf is what a note says, whoever signed it.
func textOf(signed string) (string, error) {
	n, err := note.Open([]byte(signed), nil)
	if unverified := (*note.UnverifiedNoteError)(nil); errors.As(err, &unverified) {
		return unverified.Note.Text, nil
	}
	if err == nil {
		return n.Text, nil
	}
	return "", err
}

// parse reads the text of a checkpoint (C2SP tlog-checkpoint), which may have extension lines.
func parse(text string) (operator.Checkpoint, error) {
	lines := strings.SplitAfter(text, "\n")
	if len(lines) < 4 {
		return operator.Checkpoint{}, errors.New("a checkpoint has at least three lines")
	}
	if slices.Contains(lines[3:len(lines)-1], "\n") {
		return operator.Checkpoint{}, errors.New("an extension line of a checkpoint is empty")
	}
	return operator.ParseCheckpoint(strings.Join(lines[:3], ""))
}

// grow has the witness remember a tree in the place of the one that it knows, if that one is its beginning. It returns a moment at which
// no larger tree was known. The proof is looked at before the file is locked: one log's proof holds up no other log.
func (w *Witness) grow(ctx context.Context, r Request, head operator.Checkpoint) (at time.Time, err error) {
	known, err := last(ctx, w.db, head.Origin)
	if err != nil {
		return at, err
	}
	if err := follows(known, head, r); err != nil {
		return at, err
	}
	w.after("checked")
	return w.remember(ctx, known, head, r)
}

// remember puts a tree in the place of another, if that is still the one that is known. Looking and changing are one transaction, which
// excludes all others, also of other processes, from its first moment, and does nothing else.
func (w *Witness) remember(ctx context.Context, known, head operator.Checkpoint, r Request) (at time.Time, err error) {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return at, fmt.Errorf("remembering the checkpoint: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // nothing, once it is committed
	now, err := last(ctx, tx, head.Origin)
	if err != nil {
		return at, err
	}
	if now != known { // another request of this log has come in between: what was looked at is held against nothing any more
		return at, &ConflictError{Size: now.Size, Forked: now.Size == head.Size && now.Root != head.Root}
	}
	at = w.now()
	_, err = tx.ExecContext(ctx, `INSERT INTO logs VALUES (?, ?, ?, ?) ON CONFLICT (origin) DO UPDATE SET size = excluded.size, root = excluded.root, checkpoint = excluded.checkpoint`,
		head.Origin, head.Size, head.Root[:], r.Signed)
	if err == nil {
		err = tx.Commit() // a crash before it is done leaves the tree that was known, and nothing is signed
	}
	if err != nil {
		return at, fmt.Errorf("remembering the checkpoint: %w", err)
	}
	return at, nil
}

// rows is a database, or a transaction in it.
type rows interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// last is the largest tree of a log that was cosigned; an empty one if none was.
func last(ctx context.Context, from rows, origin string) (operator.Checkpoint, error) {
	known := operator.Checkpoint{Origin: origin, Root: operator.EmptyRoot()}
	var root []byte
	err := from.QueryRowContext(ctx, `SELECT size, root FROM logs WHERE origin = ?`, origin).Scan(&known.Size, &root)
	if errors.Is(err, sql.ErrNoRows) {
		return known, nil
	}
	if err == nil && len(root) != tlog.HashSize {
		err = fmt.Errorf("a root of %d bytes", len(root))
	}
	if err != nil {
		return known, fmt.Errorf("reading what is known of the log: %w", err)
	}
	known.Root = tlog.Hash(root)
	return known, nil
}

// follows says why a tree does not come after the one that is known.
func follows(known, head operator.Checkpoint, r Request) error {
	if r.Old != known.Size {
		return &ConflictError{Size: known.Size}
	}
	if r.Old == head.Size && known.Root != head.Root {
		return &ConflictError{Size: known.Size, Forked: true}
	}
	if r.Old == 0 || r.Old == head.Size {
		if len(r.Proof) > 0 {
			return fmt.Errorf("%w: there is nothing to prove from %d to %d entries", ErrProof, r.Old, head.Size)
		}
		return nil
	}
	if err := tlog.CheckTree(r.Proof, head.Size, head.Root, known.Size, known.Root); err != nil {
		return fmt.Errorf("%w: from %d to %d entries: %w", ErrProof, known.Size, head.Size, err)
	}
	return nil
}

// A Known is the last that a witness has cosigned of a log.
type Known struct {
	Origin     string `json:"origin"`
	Size       int64  `json:"size"`
	Checkpoint string `json:"checkpoint"` // as the log signed it
}

// Logs lists what the witness knows, by origin.
func (w *Witness) Logs(ctx context.Context) ([]Known, error) {
	rows, err := w.db.QueryContext(ctx, `SELECT origin, size, checkpoint FROM logs ORDER BY origin`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []Known{}
	for rows.Next() {
		var k Known
		if err := rows.Scan(&k.Origin, &k.Size, &k.Checkpoint); err != nil {
			return nil, err
		}
		list = append(list, k)
	}
	return list, rows.Err()
}
