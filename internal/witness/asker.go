package witness

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"

	"jurat/evidence/operator"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
)

// SettingsFile is where the settings are.
const SettingsFile = "witnesses.json"

const cosignedFile = "cosigned"

// A CosignedFile keeps the last checkpoint that witnesses have cosigned. Where many machines share a log, they share the file.
type CosignedFile struct{ Files filestore.Store }

// Load implements ledger.Published.
func (n CosignedFile) Load(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text, err := n.Files.Read(ctx, cosignedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Store implements ledger.Published.
func (n CosignedFile) Store(ctx context.Context, checkpoint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.Files.Replace(ctx, cosignedFile, []byte(checkpoint))
}

// askTime is how long a witness may take to answer. Nobody who seals waits for one.
const askTime = 5 * time.Second

// Settings are the witnesses that are asked to cosign a log's checkpoints.
type Settings struct {
	Quorum int       `json:"quorum"` // how many of them make a checkpoint count; goes into the trust file
	List   []Address `json:"witnesses"`
}

// An Address is where a witness is asked, and the key by which it signs.
type Address struct {
	URL string `json:"url"` // its submission prefix
	Key string `json:"key"` // its verifier key, as C2SP tlog-cosignature has it
}

// Name is the witness's, as its key has it.
func (w *Address) Name() string {
	key, err := operator.ParseWitness(w.Key)
	if err != nil {
		return w.URL
	}
	return key.Name()
}

// ReadSettings returns the witnesses that are asked. Without a file there are none.
func ReadSettings(ctx context.Context, files filestore.Store) (*Settings, error) {
	w := new(Settings)
	text, err := files.Read(ctx, SettingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, w, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", files.Where(SettingsFile), err)
	}
	return w, nil
}

// An Asker asks the witnesses of a log to cosign its checkpoints. All its exported fields are required. It is safe for concurrent use.
type Asker struct {
	Files  filestore.Store
	Ledger *ledger.Ledger
	Log    note.Verifier // of the log's checkpoints
	Now    func() time.Time
	Check  func(context.Context, *Settings) error // refuses witnesses that a trust file cannot demand

	mu      sync.Mutex // while it is held, nobody else in this process asks witnesses
	remotes map[Address]*Remote
}

// Settings returns the witnesses that are asked.
func (a *Asker) Settings(ctx context.Context) (*Settings, error) { return ReadSettings(ctx, a.Files) }

// Add has a witness asked from now on. With a quorum of 0 more than half of all are demanded.
func (a *Asker) Add(ctx context.Context, w Address, quorum int) error {
	if err := a.change(ctx, quorum, func(list []Address) ([]Address, error) {
		for _, other := range list {
			if other.URL == w.URL || other.Key == w.Key {
				return nil, fmt.Errorf("there is one with this URL or key already: %s, %s", other.Name(), other.URL)
			}
		}
		return append(list, w), nil
	}); err != nil {
		return fmt.Errorf("adding witness: %w", err)
	}
	return nil
}

// Remove has the witness with this name or URL asked no more.
func (a *Asker) Remove(ctx context.Context, name string, quorum int) error {
	if err := a.change(ctx, quorum, func(list []Address) ([]Address, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(w Address) bool { return w.Name() == name || w.URL == name })
		if len(left) == len(list) {
			return nil, fmt.Errorf("there is none with the name or URL %q", name)
		}
		return left, nil
	}); err != nil {
		return fmt.Errorf("removing witness: %w", err)
	}
	return nil
}

// change stores the list that next makes of the present one, if a trust file can demand it and its witnesses can be asked.
func (a *Asker) change(ctx context.Context, quorum int, next func([]Address) ([]Address, error)) error {
	now, err := a.Settings(ctx)
	if err != nil {
		return err
	}
	settings := &Settings{Quorum: quorum}
	if settings.List, err = next(now.List); err != nil {
		return err
	}
	if quorum == 0 && len(settings.List) > 0 {
		settings.Quorum = len(settings.List)/2 + 1
	}
	if _, err := settings.remotes(); err != nil {
		return err
	}
	if err := a.Check(ctx, settings); err != nil {
		return err
	}
	text, err := json.Marshal(settings, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return a.Files.Replace(ctx, SettingsFile, append(text, '\n'))
}

func (w *Settings) keys() ([]*operator.Witness, error) {
	var keys []*operator.Witness
	for _, one := range w.List {
		key, err := operator.ParseWitness(one.Key)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func (w *Settings) remotes() ([]*Remote, error) {
	keys, err := w.keys()
	if err != nil {
		return nil, err
	}
	var remotes []*Remote
	for n, key := range keys {
		remote, err := NewRemote(w.List[n].URL, key, nil)
		if err != nil {
			return nil, err
		}
		remotes = append(remotes, remote)
	}
	return remotes, nil
}

// remote returns the one that was asked before, if there is one: it knows what the witness knows. The lock is held.
func (a *Asker) remote(w Address, fresh *Remote) *Remote {
	if known := a.remotes[w]; known != nil {
		return known
	}
	if a.remotes == nil {
		a.remotes = map[Address]*Remote{}
	}
	a.remotes[w] = fresh
	return fresh
}

// A Cosigning is what came of having witnesses cosign a checkpoint.
type Cosigning struct {
	Checkpoint string // with what they have said
	Size       int64  // of the tree that it covers
	Quorum     int
	Answers    []Answer // of all witnesses
}

// An Answer is what one witness has said.
type Answer struct {
	Address
	At  time.Time // when it has cosigned; zero: it has not
	Err error     // why not
}

// Cosigned is how many have.
func (c *Cosigning) Cosigned() int {
	n := 0
	for _, a := range c.Answers {
		if a.Err == nil {
			n++
		}
	}
	return n
}

// Met reports whether the checkpoint counts.
func (c *Cosigning) Met() bool { return c.Cosigned() >= c.Quorum }

// Cosign has those witnesses cosign a checkpoint over all that is in the log that have not, and keeps what they say. It takes no longer
// than a witness may, and nobody who seals waits for it. Without witnesses there is nothing to do, and it returns nil.
func (a *Asker) Cosign(ctx context.Context) (*Cosigning, error) {
	c, err := a.cosign(ctx)
	if err != nil {
		return nil, fmt.Errorf("having the checkpoint cosigned: %w", err)
	}
	return c, nil
}

func (a *Asker) cosign(ctx context.Context) (*Cosigning, error) {
	settings, err := a.Settings(ctx)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	c := &Cosigning{Quorum: settings.Quorum, Answers: make([]Answer, len(settings.List))}
	if c.Checkpoint, err = a.Ledger.Checkpoint(ctx); err != nil {
		return nil, err
	}
	head, err := operator.OpenCheckpoint(c.Checkpoint, a.Log)
	if err != nil {
		return nil, err
	}
	c.Size = head.Size
	before := c.Checkpoint
	if err := a.ask(ctx, c, settings); err != nil || c.Checkpoint == before {
		return c, err
	}
	return c, a.keep(ctx, c, settings)
}

// ask asks all at the same time who have not cosigned, and adds what they say.
func (a *Asker) ask(ctx context.Context, c *Cosigning, settings *Settings) error {
	keys, err := settings.keys()
	if err != nil {
		return err
	}
	remotes, err := settings.remotes()
	if err != nil {
		return err
	}
	said, err := operator.Cosignatures(c.Checkpoint, keys...)
	if err != nil {
		return err
	}
	lines := make([]string, len(remotes))
	var asking sync.WaitGroup
	for n, w := range settings.List {
		answer := &c.Answers[n]
		answer.Address = w
		if has := slices.IndexFunc(said, func(s operator.Cosignature) bool { return s.Witness.String() == w.Key }); has >= 0 {
			answer.At = said[has].At
			continue
		}
		remote := a.remote(w, remotes[n])
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			said, err := remote.Ask(ctx, c.Checkpoint, c.Size, a.Ledger.ProveConsistency)
			if err == nil {
				err = a.notAhead(said)
			}
			if answer.Err = err; err == nil {
				answer.At, lines[n] = said.At, said.Line
			}
		})
	}
	asking.Wait()
	for _, line := range lines {
		c.Checkpoint += line
	}
	return ctx.Err()
}

// MaxAhead is how far two clocks may be apart, a witness's, an actor's or an authority's and the installation's. Readers count nothing
// that says more.
const MaxAhead = 5 * time.Minute

func (a *Asker) notAhead(c operator.Cosignature) error {
	if now := a.Now(); c.IsAfter(now.Add(MaxAhead)) {
		return fmt.Errorf("%w: it has cosigned at %s, and here it is %s: one of the two clocks is wrong", ErrUnavailable, c.Stated(), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// ErrNotCosigned says that fewer witnesses have cosigned a checkpoint than the log's trust file demands.
var ErrNotCosigned = errors.New("too few witnesses have cosigned the checkpoint")

// Counts says why a checkpoint does not count for readers who demand the log's witnesses.
func (a *Asker) Counts(ctx context.Context, checkpoint string) error {
	settings, err := a.Settings(ctx)
	if err != nil {
		return err
	}
	keys, err := settings.keys()
	if err != nil {
		return err
	}
	said, err := operator.Cosignatures(checkpoint, keys...)
	if err != nil {
		return err
	}
	if len(said) < settings.Quorum {
		return fmt.Errorf("%w: %d of %d ('jurat log witness list')", ErrNotCosigned, len(said), settings.Quorum)
	}
	return nil
}

// keep keeps what witnesses have said, unless what is kept already counts and this does not, or is of a larger tree.
func (a *Asker) keep(ctx context.Context, c *Cosigning, settings *Settings) error {
	kept, err := a.LastCosigned(ctx)
	if err != nil {
		return err
	}
	if kept != nil && (kept.Size > c.Size || kept.Cosigned() > c.Cosigned() && !c.Met()) {
		return nil
	}
	return a.Ledger.KeepCosigned(ctx, c.Checkpoint)
}

// LastCosigned is the checkpoint that is given out, with what witnesses have said of it; nil: there are no witnesses, or they have
// never said anything.
func (a *Asker) LastCosigned(ctx context.Context) (*Cosigning, error) {
	settings, err := a.Settings(ctx)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	signed, err := a.Ledger.Cosigned(ctx)
	if err != nil || signed == "" {
		return nil, err
	}
	head, err := operator.OpenCheckpoint(signed, a.Log)
	if err != nil {
		return nil, err
	}
	keys, err := settings.keys()
	if err != nil {
		return nil, err
	}
	said, err := operator.Cosignatures(signed, keys...)
	if err != nil {
		return nil, err
	}
	c := &Cosigning{Checkpoint: signed, Size: head.Size, Quorum: settings.Quorum}
	for _, w := range settings.List {
		a := Answer{Address: w, Err: errNotCosigned}
		if has := slices.IndexFunc(said, func(s operator.Cosignature) bool { return s.Witness.String() == w.Key }); has >= 0 {
			a.At, a.Err = said[has].At, nil
		}
		c.Answers = append(c.Answers, a)
	}
	return c, nil
}

var errNotCosigned = errors.New("it has not cosigned this checkpoint")

// Published is the checkpoint that is given out: the last one that witnesses have cosigned, and where there is none one over all that
// is in the log. Where the log cannot be written, it is the last one that was given out.
func (a *Asker) Published(ctx context.Context) (string, error) {
	kept, err := a.LastCosigned(ctx)
	if err != nil || kept != nil {
		return kept.checkpoint(), err
	}
	signed, err := a.Ledger.Checkpoint(ctx)
	if !errors.Is(err, ledger.ErrDiskFull) && !errors.Is(err, ledger.ErrReadOnly) {
		return signed, err
	}
	last, failed := a.Ledger.LastPublished(ctx)
	if failed != nil || last == "" {
		return "", errors.Join(err, failed)
	}
	return last, nil
}

func (c *Cosigning) checkpoint() string {
	if c == nil {
		return ""
	}
	return c.Checkpoint
}
