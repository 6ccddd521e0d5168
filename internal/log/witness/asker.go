package witness

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
)

// SettingsFile is the file of the settings in the file store.
const SettingsFile = "witnesses.json"

const cosignedFile = "cosigned"

// A CosignedFile stores the last checkpoint that witnesses have cosigned. Machines that share a log share the file.
type CosignedFile struct{ Files filestore.Store }

// Load implements ledger.Published. It returns "" if there is no file. Its other errors are those of the file store.
func (n CosignedFile) Load(ctx context.Context) (string, error) {
	text, err := n.Files.Read(ctx, cosignedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(text), err
}

// Store implements ledger.Published. Its errors are those of the file store.
func (n CosignedFile) Store(ctx context.Context, checkpoint string) error {
	return n.Files.Replace(ctx, cosignedFile, []byte(checkpoint))
}

// askTime is how long a witness may take to answer. Sealing never waits for it.
const askTime = 5 * time.Second

// Settings are the witnesses that are asked to cosign a log's checkpoints.
type Settings struct {
	Quorum int       `json:"quorum"` // how many of them must cosign a checkpoint; copied into the trust file
	List   []Address `json:"witnesses"`
}

// An Address is a witness's URL and key.
type Address struct {
	URL string `json:"url"` // the submission prefix
	Key string `json:"key"` // the verifier key, in the form of C2SP tlog-cosignature
}

// Name returns the witness's name from its key.
func (w *Address) Name() string {
	key, err := operator.ParseWitness(w.Key)
	if err != nil {
		return w.URL
	}
	return key.Name()
}

// ReadSettings returns the witnesses that are asked: none if there is no file. It refuses a file that is not in the form of Settings.
func ReadSettings(ctx context.Context, files filestore.Store) (*Settings, error) {
	w := new(Settings)
	if err := filestore.ReadJSON(ctx, files, SettingsFile, w); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return w, nil
}

// An Asker asks the witnesses of a log to cosign its checkpoints. All its exported fields are required. It is safe for concurrent use.
type Asker struct {
	Files  filestore.Store
	Ledger *ledger.Ledger
	Log    note.Verifier // verifies the log's checkpoints
	Now    func() time.Time
	Check  func(context.Context, *Settings) error // returns an error for witnesses that a trust file cannot demand

	mu sync.Mutex // held while witnesses are asked, so that this process asks once at a time
}

// Add adds a witness, which is asked from now on. With quorum 0, more than half of all must cosign. It refuses a URL or key that is taken or not valid.
func (a *Asker) Add(ctx context.Context, w Address, quorum int) (err error) {
	defer fault.While(&err, "adding witness")
	return a.change(ctx, quorum, func(list []Address) ([]Address, error) {
		for _, other := range list {
			if other.URL == w.URL || other.Key == w.Key {
				return nil, fmt.Errorf("another witness has this URL or key: %s, %s", other.Name(), other.URL)
			}
		}
		return append(list, w), nil
	})
}

// Remove removes the witness with this name or URL. It returns an error if there is none.
func (a *Asker) Remove(ctx context.Context, name string, quorum int) (err error) {
	defer fault.While(&err, "removing witness")
	return a.change(ctx, quorum, func(list []Address) ([]Address, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(w Address) bool { return w.Name() == name || w.URL == name })
		if len(left) == len(list) {
			return nil, fmt.Errorf("no witness has the name or URL %q", name)
		}
		return left, nil
	})
}

// change stores the list that next returns for the present one, if a trust file can demand it and its witnesses can be asked.
func (a *Asker) change(ctx context.Context, quorum int, next func([]Address) ([]Address, error)) error {
	now, err := ReadSettings(ctx, a.Files)
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
	for _, w := range settings.List {
		if _, _, err := w.parse(); err != nil {
			return err
		}
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

// A Cosigning is the result of asking witnesses to cosign a checkpoint.
type Cosigning struct {
	Checkpoint string // with the witnesses' lines
	Size       int64  // the size of its tree
	Quorum     int
	Answers    []Answer // one for each witness
}

// An Answer is one witness's answer.
type Answer struct {
	Address
	At  time.Time // when the witness cosigned; zero: it did not
	Err error     // why it did not
}

// Cosigned returns the number of witnesses that cosigned.
func (c *Cosigning) Cosigned() int {
	return len(slices.DeleteFunc(slices.Clone(c.Answers), func(a Answer) bool { return a.Err != nil }))
}

// Met reports whether enough witnesses cosigned.
func (c *Cosigning) Met() bool { return c.Cosigned() >= c.Quorum }

// Cosign asks the witnesses to cosign a checkpoint over the whole log, unless they have, and stores their answers. It takes at most as long as one
// witness may take, and sealing does not wait for it. It returns nil if no witnesses are configured. That one does not answer is not an error: see
// Cosigning.Answers.
func (a *Asker) Cosign(ctx context.Context) (c *Cosigning, err error) {
	defer fault.While(&err, "asking witnesses to cosign the checkpoint")
	settings, err := ReadSettings(ctx, a.Files)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	signed, err := a.Ledger.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	if c, err = a.cosigned(signed, settings); err != nil {
		return nil, err
	}
	kept, err := a.LastCosigned(ctx)
	if err != nil {
		return nil, err
	}
	if err := a.ask(ctx, c, kept); err != nil || c.Checkpoint == signed {
		return c, err
	}
	return c, a.keep(ctx, c)
}

// cosigned returns which of the witnesses have cosigned a checkpoint. It refuses one that the log's key did not sign.
func (a *Asker) cosigned(signed string, settings *Settings) (*Cosigning, error) {
	head, err := operator.OpenCheckpoint(signed, a.Log)
	if err != nil {
		return nil, err
	}
	keys := make([]*operator.Witness, len(settings.List))
	for n, w := range settings.List {
		if keys[n], err = operator.ParseWitness(w.Key); err != nil {
			return nil, err
		}
	}
	said, err := operator.Cosignatures(signed, keys...)
	if err != nil {
		return nil, err
	}
	c := &Cosigning{Checkpoint: signed, Size: head.Size, Quorum: settings.Quorum}
	for _, w := range settings.List {
		answer := Answer{Address: w, Err: errNotCosigned}
		if has := slices.IndexFunc(said, func(s operator.Cosignature) bool { return s.Witness.String() == w.Key }); has >= 0 {
			answer.At, answer.Err = said[has].At, nil
		}
		c.Answers = append(c.Answers, answer)
	}
	return c, nil
}

// ask asks all witnesses that have not cosigned, at the same time, and adds their lines. kept says which size each of them knows, or is nil.
func (a *Asker) ask(ctx context.Context, c, kept *Cosigning) error {
	lines := make([]string, len(c.Answers))
	var asking sync.WaitGroup
	for n := range c.Answers {
		answer := &c.Answers[n]
		if answer.Err == nil {
			continue
		}
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, askTime)
			defer cancel()
			said, err := answer.Ask(ctx, kept.known(answer.Address), c.Checkpoint, c.Size, a.Ledger.ProveConsistency)
			if now := a.Now(); err == nil && said.IsAfter(now.Add(MaxAhead)) {
				err = fmt.Errorf("%w: it cosigned at %s, but it is %s here: one of the two clocks is wrong", ErrUnavailable, said.Stated(), now.UTC().Format(time.RFC3339))
			}
			if answer.Err = err; err == nil {
				answer.At, lines[n] = said.At, said.Line
			}
		})
	}
	asking.Wait()
	c.Checkpoint += strings.Join(lines, "")
	return ctx.Err()
}

// known returns the size of the tree that a witness cosigned; 0: it did not.
func (c *Cosigning) known(w Address) int64 {
	if c != nil && slices.ContainsFunc(c.Answers, func(a Answer) bool { return a.Address == w && a.Err == nil }) {
		return c.Size
	}
	return 0
}

// MaxAhead is the largest accepted difference between this clock and a witness's, an actor's or an authority's. Readers count no time further ahead.
const MaxAhead = 5 * time.Minute

// keep stores a cosigned checkpoint. It does not replace one of a larger tree, nor one with more cosignatures by one with too few.
func (a *Asker) keep(ctx context.Context, c *Cosigning) error {
	kept, err := a.LastCosigned(ctx)
	if err != nil {
		return err
	}
	if kept != nil && (kept.Size > c.Size || kept.Cosigned() > c.Cosigned() && !c.Met()) {
		return nil
	}
	return a.Ledger.KeepCosigned(ctx, c.Checkpoint)
}

// LastCosigned returns the checkpoint that is published, with the witnesses' answers; nil if no witnesses are configured, or they never answered. It
// refuses a checkpoint that the log's key did not sign.
func (a *Asker) LastCosigned(ctx context.Context) (*Cosigning, error) {
	settings, err := ReadSettings(ctx, a.Files)
	if err != nil || len(settings.List) == 0 {
		return nil, err
	}
	signed, err := a.Ledger.Cosigned(ctx)
	if err != nil || signed == "" {
		return nil, err
	}
	return a.cosigned(signed, settings)
}

var errNotCosigned = errors.New("it has not cosigned this checkpoint")

// Published returns the checkpoint that the log publishes: the last one that witnesses cosigned, or else one over the whole log. If the log cannot be
// written, it returns the last one that was published, or, without one, why it cannot be written.
func (a *Asker) Published(ctx context.Context) (string, error) {
	kept, err := a.LastCosigned(ctx)
	if err != nil {
		return "", err
	}
	if kept != nil {
		return kept.Checkpoint, nil
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

// ErrUnavailable says that a witness did not answer, or not as the protocol demands.
var ErrUnavailable = errors.New("the witness gave no valid answer")

// parse returns the witness's key, and the URL at which it is asked: https, or http in a private network.
func (w *Address) parse() (key *operator.Witness, at string, err error) {
	if key, err = operator.ParseWitness(w.Key); err != nil {
		return nil, "", err
	}
	u, err := url.Parse(w.URL)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.RawQuery != "" || u.Fragment != "" {
		return nil, "", fmt.Errorf("witness: %q: want https://, a host and optionally a path", w.URL)
	}
	if ip := net.ParseIP(u.Hostname()); u.Scheme == "http" && u.Hostname() != "localhost" && (ip == nil || !ip.IsLoopback() && !ip.IsPrivate()) {
		return nil, "", fmt.Errorf("witness: %q: want https; http is only for witnesses in a private network", w.URL)
	}
	return key, strings.TrimRight(w.URL, "/") + "/add-checkpoint", nil
}

// Ask asks the witness to cosign a checkpoint of this size. It is believed to know the size old; prove makes a proof from there. A *ConflictError says
// that it knows more, or another history. Other errors include ErrUnavailable, ErrUnknownLog, ErrSignature and ErrProof.
func (w *Address) Ask(ctx context.Context, old int64, signed string, size int64, prove func(ctx context.Context, old, size int64) ([]tlog.Hash, error)) (operator.Cosignature, error) {
	key, at, err := w.parse()
	if err != nil {
		return operator.Cosignature{}, err
	}
	if old > size {
		old = 0
	}
	for attempt := 0; ; attempt++ {
		proof, err := prove(ctx, old, size)
		if err != nil {
			return operator.Cosignature{}, err
		}
		line, err := post(ctx, at, Request{Old: old, Proof: proof, Signed: signed})
		if conflict, is := errors.AsType[*ConflictError](err); is && conflict.Size <= size && conflict.Size != old && attempt < 2 {
			old = conflict.Size // now the size is known, unless another node asks at the same time
			continue
		}
		if err != nil {
			return operator.Cosignature{}, err
		}
		return checkLines(signed, line, key)
	}
}

// checkLines verifies a witness's answer against its key. It drops lines of other signers.
func checkLines(signed, lines string, key *operator.Witness) (operator.Cosignature, error) {
	text, _, _ := strings.Cut(signed, "\n\n")
	found, err := operator.Cosignatures(text+"\n\n"+lines, key)
	if err != nil {
		return operator.Cosignature{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if len(found) == 0 {
		return operator.Cosignature{}, fmt.Errorf("%w: it has not signed with the key of %s", ErrUnavailable, key.Name())
	}
	return found[0], nil
}

func post(ctx context.Context, url string, request Request) (string, error) {
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(FormatRequest(request)))
	if err != nil {
		return "", err
	}
	post.Header.Set("Content-Type", "text/plain; charset=utf-8")
	answer, err := http.DefaultClient.Do(post)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxRequest))
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	switch answer.StatusCode {
	case http.StatusOK:
		return string(body), nil
	case http.StatusConflict:
		size, err := parseSize(strings.TrimSuffix(string(body), "\n"))
		if err != nil || answer.Header.Get("Content-Type") != sizeMedia {
			return "", fmt.Errorf("%w: status 409 without a size", ErrUnavailable)
		}
		return "", says(&ConflictError{Size: size, Forked: size == request.Old})
	case http.StatusNotFound:
		return "", says(fmt.Errorf("%w: the witness does not know this log", ErrUnknownLog))
	case http.StatusForbidden:
		return "", says(fmt.Errorf("%w: the witness knows another key of this log", ErrSignature))
	case http.StatusUnprocessableEntity:
		return "", says(fmt.Errorf("%w: the witness has seen another history", ErrProof))
	}
	return "", fmt.Errorf("%w: status %d", ErrUnavailable, answer.StatusCode)
}

// says marks an error that rests on the witness's word alone: a witness does not sign its refusals.
func says(err error) error { return fmt.Errorf("the witness says, without proof: %w", err) }

const (
	maxProof   = 63        // the largest number of lines of a proof
	maxRequest = 128 << 10 // bytes; enough for a proof and a checkpoint with many signatures
	sizeMedia  = "text/x.tlog.size"
)

// FormatRequest returns the body of add-checkpoint.
func FormatRequest(r Request) string {
	var b strings.Builder
	fmt.Fprintf(&b, "old %d\n", r.Old)
	for _, node := range r.Proof {
		b.WriteString(base64.StdEncoding.EncodeToString(node[:]) + "\n")
	}
	return b.String() + "\n" + r.Signed
}

// ParseRequest parses the body of add-checkpoint strictly. It does not parse the checkpoint. Its errors have ErrMalformed in their chain.
func ParseRequest(body string) (Request, error) {
	var r Request
	head, signed, found := strings.Cut(body, "\n\n")
	if !found || signed == "" {
		return r, fmt.Errorf("%w: want an old size, a proof, an empty line and a checkpoint", ErrMalformed)
	}
	lines := strings.Split(head, "\n")
	size, isOld := strings.CutPrefix(lines[0], "old ")
	var err error
	if r.Old, err = parseSize(size); err != nil || !isOld {
		return r, fmt.Errorf("%w: line 1: want \"old \" and a size in decimal", ErrMalformed)
	}
	if len(lines)-1 > maxProof {
		return r, fmt.Errorf("%w: the proof has %d lines, want at most %d", ErrMalformed, len(lines)-1, maxProof)
	}
	for i, line := range lines[1:] {
		node, err := base64.StdEncoding.Strict().DecodeString(line)
		if err != nil || len(node) != tlog.HashSize || strings.Contains(line, "\r") {
			return r, fmt.Errorf("%w: line %d: want base64 of %d bytes", ErrMalformed, i+2, tlog.HashSize)
		}
		r.Proof = append(r.Proof, tlog.Hash(node))
	}
	r.Signed = signed
	return r, nil
}

// parseSize parses a size that is written in canonical decimal form.
func parseSize(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && (n < 0 || strconv.FormatInt(n, 10) != text) {
		err = fmt.Errorf("%q is not a size", text)
	}
	return n, err
}
