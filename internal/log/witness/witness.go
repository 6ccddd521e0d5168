// Package witness cosigns checkpoints of logs, and asks other witnesses to do so (C2SP tlog-witness).
//
// A Witness remembers for each log the largest tree that it has cosigned. It cosigns a checkpoint only if that tree is its beginning. So a
// checkpoint with the demanded number of cosignatures belongs to one history, unless that many witnesses lie.
//
// # Witnesses
//
// A witness adds a line to the signed note, beside the log's. Readers who do not know the witness ignore the line. The reader's trust file
// names the witnesses, and says how many must have cosigned (`quorum`, without a default). With fewer the order is not proved. One public key is
// one witness, as cosignatures do not cover names. A false line in a witness's name refutes, as one in the log's name does. A cosignature with a
// time in the future does not count: otherwise a thief with a witness's key could cosign now for histories that are made later.
//
// # A witness remembers before it signs
//
// Reading the known tree and storing the larger one are one SQLite transaction, which begins by locking. The cosignature is made after the
// transaction is durable. Concurrent requests, a second process or a crash cost at most a cosignature. Triggers prevent every writer of the
// file from making it forget.
//
// # A log waits for no witness
//
// A server asks the witnesses in the background when the log has grown, and asks silent ones again. It keeps the last checkpoint that
// enough of them cosigned; proofs and `/log/checkpoint` use that one. An authority also stamps that one (`jurat log stamp --checkpoint`), even if more
// has been sealed meanwhile. The metrics and `jurat log witness` show how far each witness is.
//
// # A monitor watches a log
//
// It works for a reader who does not trust the log's operator. See compares a log with the last checkpoint that the monitor has seen. It
// demands that the log has only grown since: the given key signed the new checkpoint, the old tree is the beginning of the new one, and every
// new tile and entry is what the new checkpoint says. Anything else is an Alarm, with the evidence for it.
//
// # A monitor reads what is new, and some of what is old
//
// It demands a consistency proof from the tiles. Then it reads every new tile and entry, and some randomly chosen old tiles, and hashes them up to
// the root. Only a fork convinces others: the log's key signed both checkpoints, and nodes of the larger tree show that the smaller is not its
// beginning. The monitor relies on its memory, so an empty memory file is an error and not a first look. If a log shows less than before, the
// monitor asks again for some seconds, because a cache or a second node may be behind.
package witness

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/log/ledger/sqlite"
)

var (
	// ErrUnknownLog says that the witness does not know a log of this origin.
	ErrUnknownLog = errors.New("the log of this origin is unknown here")
	// ErrSignature says that none of the log's known keys signed the checkpoint.
	ErrSignature = errors.New("none of this log's known keys signed the checkpoint")
	// ErrMalformed says that a request does not have the form that the protocol demands.
	ErrMalformed = errors.New("malformed")
	// ErrProof says that the proof does not lead from the tree that the witness knows to the tree of the checkpoint.
	ErrProof = errors.New("the consistency proof is wrong")
)

// A ConflictError says that the request begins at another size than the witness knows, or that the log has forked.
type ConflictError struct {
	Size   int64 // the size of the largest tree that the witness has cosigned
	Forked bool  // the checkpoint has this size too, but another root
}

func (e *ConflictError) Error() string {
	if e.Forked {
		return fmt.Sprintf("the log has signed another tree of %d entries", e.Size)
	}
	return fmt.Sprintf("the last tree of this log that this witness cosigned has %d entries", e.Size)
}

// Config says which logs a Witness cosigns, and with which key.
type Config struct {
	File string             // required: the database of the witness's memory; Open makes it if it is missing
	Key  *operator.Cosigner // required
	Logs []note.Verifier    // the keys of the logs to cosign. Each key's name is the log's origin; a log may have several keys
	Now  func() time.Time   // nil: time.Now
}

// A Witness cosigns. It is safe for concurrent use, and several processes may share its file.
type Witness struct {
	key   *operator.Cosigner
	logs  map[string][]note.Verifier // by origin
	now   func() time.Time
	db    *sql.DB
	after func(step string) // called after each step; tests crash there
}

// Open opens a witness's memory, or makes it. It returns an error if the file belongs to another witness.
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
	if w.db, err = sqlite.OpenFile(c.File, "synchronous(FULL)"); err == nil {
		w.db.SetMaxOpenConns(1) // one request at a time reads or writes, and only briefly
		if err = claim(ctx, w.db, c.Key); err != nil {
			err = errors.Join(err, w.db.Close())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", c.File, err)
	}
	return w, nil
}

// schema is the schema of the witness's memory. Its triggers refuse every change that would make a known tree smaller or remove it.
const schema = `
CREATE TABLE IF NOT EXISTS witness (one INTEGER PRIMARY KEY CHECK (one = 1), key TEXT NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS logs (origin TEXT PRIMARY KEY, size INTEGER NOT NULL, root BLOB NOT NULL, checkpoint TEXT NOT NULL) STRICT;
CREATE TRIGGER IF NOT EXISTS logs_grow BEFORE UPDATE ON logs
WHEN NEW.origin <> OLD.origin OR NEW.size < OLD.size OR NEW.size = OLD.size AND NEW.root <> OLD.root
BEGIN SELECT RAISE(ABORT, 'a witness forgets nothing'); END;
CREATE TRIGGER IF NOT EXISTS logs_stay BEFORE DELETE ON logs BEGIN SELECT RAISE(ABORT, 'a witness forgets nothing'); END;
`

// claim binds the file to this witness, or checks that it is bound to it. What one key has cosigned says nothing about another key.
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
		return fmt.Errorf("it is the memory of the witness %s, but the key belongs to %s", whose, key)
	}
	return nil
}

// Key returns the witness's verifier key, which readers trust.
func (w *Witness) Key() *operator.Witness { return &w.key.Witness }

// Close closes the file. The memory of every cosignature is durable already. Its errors are those of the database.
func (w *Witness) Close() error { return w.db.Close() }

// A Request asks a witness to cosign a checkpoint.
type Request struct {
	Old    int64       // the size of the tree that the log believes the witness to know; 0: none
	Proof  []tlog.Hash // the consistency proof from that tree to the checkpoint's
	Signed string      // the checkpoint, as a signed note
}

// AddCheckpoint cosigns a checkpoint, and returns the line to add to it. It checks in this order: ErrMalformed for a malformed checkpoint,
// ErrUnknownLog, ErrSignature, ErrMalformed for an old size above the checkpoint's, *ConflictError, ErrProof.
func (w *Witness) AddCheckpoint(ctx context.Context, r Request) (line string, err error) {
	text, head, err := w.open(r.Signed)
	if err != nil {
		return "", err
	}
	if r.Old < 0 || r.Old > head.Size {
		return "", fmt.Errorf("%w: the old size %d is not between 0 and the checkpoint's %d", ErrMalformed, r.Old, head.Size)
	}
	known, err := last(ctx, w.db.QueryRowContext, head.Origin)
	if err == nil {
		err = follows(known, head, r) // before the file is locked, so that one log's proof does not delay other logs
	}
	if err != nil {
		return "", err
	}
	w.after("checked")
	at, err := w.remember(ctx, known, head, r)
	if err != nil {
		return "", err
	}
	w.after("remembered") // after a crash here, the log asks again for the cosignature
	return w.key.Cosign(text, at), nil
}

// open parses a checkpoint and verifies the log's signature. The witness cosigns extension lines without reading them.
func (w *Witness) open(signed string) (text string, head operator.Checkpoint, err error) {
	n, err := note.Open([]byte(signed), nil)
	if unverified, is := errors.AsType[*note.UnverifiedNoteError](err); is {
		n, err = unverified.Note, nil
	}
	if err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	origin, _, _ := strings.Cut(n.Text, "\n")
	keys := w.logs[origin]
	if keys == nil {
		return "", head, fmt.Errorf("%w: %q", ErrUnknownLog, origin)
	}
	if n, err = operator.OpenNote(signed, note.VerifierList(keys...)); err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrSignature, err)
	}
	head, err = parse(n.Text)
	if err != nil {
		return "", head, fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return n.Text, head, nil
}

// parse parses the text of a checkpoint (C2SP tlog-checkpoint), which may have extension lines.
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

// remember replaces the remembered tree, if it is still the known one, in one short transaction, which excludes every other process. It returns
// a time at which no larger tree was known.
func (w *Witness) remember(ctx context.Context, known, head operator.Checkpoint, r Request) (at time.Time, err error) {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return at, fmt.Errorf("remembering the checkpoint: %w", err)
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	now, err := last(ctx, tx.QueryRowContext, head.Origin)
	if err != nil {
		return at, err
	}
	if now != known { // another request of this log came in between, so the check above no longer holds
		return at, &ConflictError{Size: now.Size, Forked: now.Size == head.Size && now.Root != head.Root}
	}
	at = w.now()
	_, err = tx.ExecContext(ctx, `INSERT INTO logs VALUES (?, ?, ?, ?) ON CONFLICT (origin) DO UPDATE SET `+
		`size = excluded.size, root = excluded.root, checkpoint = excluded.checkpoint`, head.Origin, head.Size, head.Root[:], r.Signed)
	if err == nil {
		err = tx.Commit() // a crash before the commit keeps the old tree, and nothing is signed
	}
	if err != nil {
		return at, fmt.Errorf("remembering the checkpoint: %w", err)
	}
	return at, nil
}

// last returns the largest tree of a log that was cosigned, or an empty tree. query reads from the database, or in a transaction.
func last(ctx context.Context, query func(context.Context, string, ...any) *sql.Row, origin string) (operator.Checkpoint, error) {
	known := operator.Checkpoint{Origin: origin, Root: operator.EmptyRoot()}
	var root []byte
	err := query(ctx, `SELECT size, root FROM logs WHERE origin = ?`, origin).Scan(&known.Size, &root)
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

// follows returns an error if a tree does not follow the known one: a *ConflictError or ErrProof.
func follows(known, head operator.Checkpoint, r Request) error {
	if r.Old != known.Size {
		return &ConflictError{Size: known.Size}
	}
	if r.Old == head.Size && known.Root != head.Root {
		return &ConflictError{Size: known.Size, Forked: true}
	}
	if r.Old == 0 || r.Old == head.Size {
		if len(r.Proof) > 0 {
			return fmt.Errorf("%w: want an empty proof from %d to %d entries", ErrProof, r.Old, head.Size)
		}
		return nil
	}
	if err := tlog.CheckTree(r.Proof, head.Size, head.Root, known.Size, known.Root); err != nil {
		return fmt.Errorf("%w: from %d to %d entries: %w", ErrProof, known.Size, head.Size, err)
	}
	return nil
}

// A Known is the last checkpoint of a log that a witness has cosigned.
type Known struct {
	Origin     string `json:"origin"`
	Size       int64  `json:"size"`
	Checkpoint string `json:"checkpoint"` // as the log signed it
}

// Logs returns the logs that the witness has cosigned, by origin. Its errors are those of the database.
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

// maxLogged is how many bytes of one refusal are logged: any caller can cause refusals without limit.
const maxLogged = 1 << 10

// Handler serves add-checkpoint, /healthz and /key. It logs each refusal and its reason, together with what the log's own key signed. Two
// checkpoints of one size with different roots, both signed by a log, are evidence against that log.
func (w *Witness) Handler(log *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /add-checkpoint", func(out http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(out, r.Body, maxRequest))
		if err != nil {
			http.Error(out, "the request is too large, or broke off", http.StatusBadRequest)
			return
		}
		request, err := ParseRequest(string(body))
		var line string
		if err == nil {
			line, err = w.AddCheckpoint(r.Context(), request)
		}
		if err != nil {
			w.refuse(out, r, log, string(body), err)
			return
		}
		out.Header().Set("Content-Type", "text/plain; charset=utf-8")
		out.Header().Set("Cache-Control", "no-store")
		_, _ = io.WriteString(out, line) // a caller who has gone can ask again
	})
	mux.HandleFunc("GET /healthz", func(out http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(out, "ok\n") })
	mux.HandleFunc("GET /key", func(out http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(out, w.key.String()) })
	return mux
}

// statuses are the HTTP statuses that C2SP tlog-witness assigns to errors.
var statuses = map[error]int{ErrMalformed: http.StatusBadRequest, ErrUnknownLog: http.StatusNotFound, ErrSignature: http.StatusForbidden, ErrProof: http.StatusUnprocessableEntity}

func (w *Witness) refuse(out http.ResponseWriter, r *http.Request, log *slog.Logger, body string, err error) {
	if conflict, is := errors.AsType[*ConflictError](err); is {
		level := slog.LevelInfo
		if conflict.Forked {
			level = slog.LevelError
		}
		log.Log(r.Context(), level, "not cosigned", "why", clip(err.Error()), "signed", w.evidenceIn(body))
		out.Header().Set("Content-Type", sizeMedia)
		out.WriteHeader(http.StatusConflict)
		_, _ = fmt.Fprintf(out, "%d\n", conflict.Size)
		return
	}
	for is, status := range statuses {
		if errors.Is(err, is) {
			if is == ErrProof { // the log signed this checkpoint, so it is kept, although anyone may have sent it with a false proof
				log.Error("not cosigned", "why", clip(err.Error()), "signed", w.evidenceIn(body))
			} else {
				log.Info("not cosigned", "why", clip(err.Error()))
			}
			http.Error(out, err.Error(), status)
			return
		}
	}
	log.Error("not cosigned", "why", err)
	http.Error(out, "the witness failed", http.StatusInternalServerError)
}

// evidenceIn returns the part of a request that a known key of the log signed: the checkpoint without other signatures.
func (w *Witness) evidenceIn(body string) string {
	request, err := ParseRequest(body)
	if err != nil {
		return ""
	}
	origin, _, _ := strings.Cut(request.Signed, "\n")
	n, err := operator.OpenNote(request.Signed, note.VerifierList(w.logs[origin]...))
	if err != nil {
		return ""
	}
	n.UnverifiedSigs = nil
	signed, err := note.Sign(n)
	if err != nil {
		return ""
	}
	return clip(string(signed))
}

// clip cuts a text to the length that is logged.
func clip(text string) string {
	if len(text) <= maxLogged {
		return text
	}
	return strings.ToValidUTF8(text[:maxLogged], "") + "..."
}
