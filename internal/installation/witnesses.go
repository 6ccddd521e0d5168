package installation

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

	"jurat/evidence/operator"
	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/internal/witness"
)

const (
	witnessesFile = "witnesses.json"
	cosignedFile  = "cosigned"
)

// cosignedNote is where the last checkpoint is kept that witnesses have cosigned: where many machines share a log, for all of them.
type cosignedNote struct{ files filestore.Store }

// Load implements ledger.Published.
func (n cosignedNote) Load(ctx context.Context) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", err
	}
	text, err := n.files.Read(ctx, cosignedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Store implements ledger.Published.
func (n cosignedNote) Store(ctx context.Context, checkpoint string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return n.files.Replace(ctx, cosignedFile, []byte(checkpoint))
}

// askTime is how long a witness may take to answer. Nobody who seals waits for one.
const askTime = 5 * time.Second

// Witnesses are those who are asked to cosign the log's checkpoints.
type Witnesses struct {
	Quorum int          `json:"quorum"` // how many of them make a checkpoint count; goes into the trust file
	List   []LogWitness `json:"witnesses"`
}

// A LogWitness is one of them.
type LogWitness struct {
	URL string `json:"url"` // its submission prefix
	Key string `json:"key"` // its verifier key, as C2SP tlog-cosignature has it
}

// Name is the witness's, as its key has it.
func (w *LogWitness) Name() string {
	key, err := operator.ParseWitness(w.Key)
	if err != nil {
		return w.URL
	}
	return key.Name()
}

// Witnesses returns who is asked to cosign. None: nobody.
func (i *Installation) Witnesses(ctx context.Context) (*Witnesses, error) {
	w := new(Witnesses)
	text, err := i.files.Read(ctx, witnessesFile)
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(text, w, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("reading %s: %w", i.files.Where(witnessesFile), err)
	}
	return w, nil
}

// AddWitness has a witness asked from now on. With a quorum of 0 more than half of all are demanded.
func (i *Installation) AddWitness(ctx context.Context, w LogWitness, quorum int) error {
	if err := i.changeWitnesses(ctx, quorum, func(list []LogWitness) ([]LogWitness, error) {
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

// RemoveWitness has the witness with this name or URL asked no more.
func (i *Installation) RemoveWitness(ctx context.Context, name string, quorum int) error {
	if err := i.changeWitnesses(ctx, quorum, func(list []LogWitness) ([]LogWitness, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(w LogWitness) bool { return w.Name() == name || w.URL == name })
		if len(left) == len(list) {
			return nil, fmt.Errorf("there is none with the name or URL %q", name)
		}
		return left, nil
	}); err != nil {
		return fmt.Errorf("removing witness: %w", err)
	}
	return nil
}

// changeWitnesses stores another list, if a trust file can demand it and its witnesses can be asked.
func (i *Installation) changeWitnesses(ctx context.Context, quorum int, change func([]LogWitness) ([]LogWitness, error)) error {
	now, err := i.Witnesses(ctx)
	if err != nil {
		return err
	}
	next := &Witnesses{Quorum: quorum}
	if next.List, err = change(now.List); err != nil {
		return err
	}
	if quorum == 0 && len(next.List) > 0 {
		next.Quorum = len(next.List)/2 + 1
	}
	if _, err := next.remotes(); err != nil {
		return err
	}
	history, err := i.history(ctx)
	if err != nil {
		return err
	}
	if _, err := i.trustWith(ctx, history, next); err != nil {
		return err
	}
	text, err := json.Marshal(next, jsontext.WithIndent("  "))
	if err != nil {
		return err
	}
	return i.files.Replace(ctx, witnessesFile, append(text, '\n'))
}

func (w *Witnesses) keys() ([]*operator.Witness, error) {
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

func (w *Witnesses) remotes() ([]*witness.Remote, error) {
	keys, err := w.keys()
	if err != nil {
		return nil, err
	}
	var remotes []*witness.Remote
	for n, key := range keys {
		remote, err := witness.NewRemote(w.List[n].URL, key, nil)
		if err != nil {
			return nil, err
		}
		remotes = append(remotes, remote)
	}
	return remotes, nil
}

// asked remembers, of the witnesses that this process has asked, what they know.
type asked struct {
	mu      sync.Mutex // while it is held, nobody else in this process asks witnesses
	remotes map[LogWitness]*witness.Remote
}

// remote returns the one that was asked before, if there is one: it knows what the witness knows.
func (a *asked) remote(w LogWitness, fresh *witness.Remote) *witness.Remote {
	if known := a.remotes[w]; known != nil {
		return known
	}
	if a.remotes == nil {
		a.remotes = map[LogWitness]*witness.Remote{}
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
	LogWitness
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
func (i *Installation) Cosign(ctx context.Context) (*Cosigning, error) {
	c, err := i.cosign(ctx)
	if err != nil {
		return nil, fmt.Errorf("having the checkpoint cosigned: %w", err)
	}
	return c, nil
}

func (i *Installation) cosign(ctx context.Context) (*Cosigning, error) {
	settings, err := i.Witnesses(ctx)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	i.asked.mu.Lock()
	defer i.asked.mu.Unlock()
	c := &Cosigning{Quorum: settings.Quorum, Answers: make([]Answer, len(settings.List))}
	if c.Checkpoint, err = i.Ledger.Checkpoint(ctx); err != nil {
		return nil, err
	}
	head, err := operator.OpenCheckpoint(c.Checkpoint, i.log.verifier)
	if err != nil {
		return nil, err
	}
	c.Size = head.Size
	before := c.Checkpoint
	if err := i.ask(ctx, c, settings); err != nil || c.Checkpoint == before {
		return c, err
	}
	return c, i.keep(ctx, c, settings)
}

// ask asks all at the same time who have not cosigned, and adds what they say.
func (i *Installation) ask(ctx context.Context, c *Cosigning, settings *Witnesses) error {
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
		a := &c.Answers[n]
		a.LogWitness = w
		if has := slices.IndexFunc(said, func(s operator.Cosignature) bool { return s.Witness.String() == w.Key }); has >= 0 {
			a.At = said[has].At
			continue
		}
		remote := i.asked.remote(w, remotes[n])
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			answer, err := remote.Ask(ctx, c.Checkpoint, c.Size, i.Ledger.ProveConsistency)
			if err == nil {
				err = i.notAhead(answer)
			}
			if a.Err = err; err == nil {
				a.At, lines[n] = answer.At, answer.Line
			}
		})
	}
	asking.Wait()
	for _, line := range lines {
		c.Checkpoint += line
	}
	return ctx.Err()
}

// maxAhead is how far two clocks may be apart, a witness's, an actor's or an authority's and the installation's. Readers count nothing
// that says more.
const maxAhead = 5 * time.Minute

func (i *Installation) notAhead(c operator.Cosignature) error {
	if now := i.now(); c.IsAfter(now.Add(maxAhead)) {
		return fmt.Errorf("%w: it has cosigned at %s, and here it is %s: one of the two clocks is wrong", witness.ErrUnavailable, c.Stated(), now.UTC().Format(time.RFC3339))
	}
	return nil
}

// ErrNotCosigned says that fewer witnesses have cosigned a checkpoint than the log's trust file demands.
var ErrNotCosigned = errors.New("too few witnesses have cosigned the checkpoint")

// counts says why a checkpoint does not count for readers who demand the log's witnesses.
func (i *Installation) counts(ctx context.Context, checkpoint string) error {
	settings, err := i.Witnesses(ctx)
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
func (i *Installation) keep(ctx context.Context, c *Cosigning, settings *Witnesses) error {
	kept, err := i.LastCosigned(ctx)
	if err != nil {
		return err
	}
	if kept != nil && (kept.Size > c.Size || kept.Cosigned() > c.Cosigned() && !c.Met()) {
		return nil
	}
	return i.Ledger.KeepCosigned(ctx, c.Checkpoint)
}

// LastCosigned is the checkpoint that is given out, with what witnesses have said of it; nil: there are no witnesses, or they have
// never said anything.
func (i *Installation) LastCosigned(ctx context.Context) (*Cosigning, error) {
	settings, err := i.Witnesses(ctx)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	signed, err := i.Ledger.Cosigned(ctx)
	if err != nil || signed == "" {
		return nil, err
	}
	head, err := operator.OpenCheckpoint(signed, i.log.verifier)
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
		a := Answer{LogWitness: w, Err: errNotCosigned}
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
func (i *Installation) Published(ctx context.Context) (string, error) {
	kept, err := i.LastCosigned(ctx)
	if err != nil || kept != nil {
		return kept.checkpoint(), err
	}
	signed, err := i.Ledger.Checkpoint(ctx)
	if !errors.Is(err, ledger.ErrDiskFull) && !errors.Is(err, ledger.ErrReadOnly) {
		return signed, err
	}
	last, failed := i.Ledger.LastPublished(ctx)
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
