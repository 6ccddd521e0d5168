// Package keys knows which key belongs to which actor. A History reads the chain of key events in a log: whose key a public key is, since
// when, who holds it, and how it ended. A Ring keeps the private keys that the installation holds. It makes an actor's keys when the actor
// first signs.
//
// An actor has at most two keys that sign at a time: its first, and its second, of ML-DSA-65, which withstands quantum computers. Each
// private key is in a file of its own, which the installation's file store keeps as a secret. A key file is a line of JSON that names the
// key's actor, followed by the key as PKCS #8 in PEM. `openssl pkey -in FILE` reads it, too (ML-DSA-65 since OpenSSL 3.5).
//
// A key may be on a hardware token instead. Its file then holds a reference in place of the private key: the public key, its name on the
// token, and the helper that signs with it (see internal/log/token).
//
// # The log says what became of keys
//
// The log decides about keys, and the files follow it. Registering, rotating, retiring and revoking are acts of the operator. A new private
// key is in a file before its act is in the log, and an old one is destroyed after it; Tidy finishes that after a crash. The transaction that
// appends a record checks whether its keys may sign, so no record slips in after a revocation. A key that is made on first use is in no event
// until it is rotated, retired or revoked. Most keys never are.
//
// # Keys that sign only together end together
//
// Two keys that sign at the same time sign only together, and the end of one ends both. If only one were replaced, the other's partner would depend
// on a date, and second signatures protect against an adversary who can forge dates.
//
// # An old private key is destroyed, not kept
//
// A verifier needs only the public half, which is in the log. A private half that may sign nothing is useful only to a thief.
package keys

import (
	"cmp"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/names"
	"jurat/internal/log/token"
)

// Config says where a Ring keeps keys, and how it makes them.
type Config struct {
	Files       filestore.Store    // the installation's file store; keys are in the folder Folder
	Algorithm   evidence.Algorithm // the algorithm of first keys that are made on first use; not ML-DSA-65; "": ES256
	PostQuantum bool               // every actor signs twice: second keys are made on first use, too. false: only actors that have one do
	Now         func() time.Time   // nil: time.Now
	Reach       func(time.Time)    // makes Now continue from the time at which a key begins, if it is behind; nil: nothing does

	// History returns what the log says about keys now. nil: the history is always empty.
	History func(ctx context.Context) (*History, error)
	// Known returns what the log said about keys when this process last read it. nil: as History.
	Known func(ctx context.Context) (*History, error)

	// Change calls plan with the log's history of keys, and logs the events that plan returns. It may call plan more than once. Without it, keys
	// cannot be registered, replaced and ended.
	Change func(ctx context.Context, plan func(*History) ([]operator.KeyEventBody, error)) error
	After  func(step string) // called once a change is in the log; tests crash there. nil: nothing is called

	// Helper signs with keys on tokens. nil: the Ring starts it as needed, and never closes it.
	Helper *token.Helper
}

// Folder is the folder of key files in the file store.
const Folder = "keys"

// A Ring finds and makes keys. It is safe for concurrent use, even by several processes on one file store.
type Ring struct {
	config Config
	mu     sync.Mutex // held while a key is looked up or made
	loaded map[place]*Held
	listed map[string]*Held // the keys that Keys has read, by file
}

// A place identifies one of an actor's keys. An actor has at most two: its first key, and its second, of ML-DSA-65.
type place struct {
	role   evidence.Role
	name   string
	second bool
}

func placeOf(role evidence.Role, name string, algorithm evidence.Algorithm) place {
	return place{role, name, algorithm.PostQuantum()}
}

// rank is 0 for the algorithms of first keys, and 1 for that of second ones.
func rank(algorithm evidence.Algorithm) int {
	if algorithm.PostQuantum() {
		return 1
	}
	return 0
}

// A Held key is a key pair that the installation keeps for an actor.
type Held struct {
	header
	Algorithm evidence.Algorithm
	KeyID     evidence.KeyID
	PublicKey []byte // DER SubjectPublicKeyInfo
	File      string
	Token     string // the key's URI, if it is on a token; "": the private key is in File

	Protection *operator.Protection // of a key on a token: what its helper said of it; nil: nothing
	signer     evidence.Signer
}

var (
	// ErrExists says that the actor has a key already, or that the key on a token belongs to an actor already.
	ErrExists = errors.New("there is a key already")
	// ErrOwner says that an actor holds its keys itself, so this installation does not sign for it.
	ErrOwner = errors.New("the owner holds the key")
	// ErrNoKey says that all keys of an actor were retired or revoked.
	ErrNoKey = errors.New("all its keys were retired or revoked")
	// ErrNotYet says that a key begins later than a clock says it is. What it signed now would be refuted for ever.
	ErrNotYet = errors.New("the key has not begun yet")
	// ErrLost says that no file holds the private key that the log names as the actor's.
	ErrLost = errors.New("the private key is missing")
	// ErrSecondKey says that an actor's second key is missing, or is not the one that its first key was made to sign with.
	ErrSecondKey = errors.New("the first key signs only together with its second key, which is missing or was replaced")
)

func notYet(id evidence.KeyID, from, now time.Time) error {
	return fmt.Errorf("%w: %s begins at %s, and the clock says %s; correct the clock that is wrong, or wait until then", ErrNotYet, id, evidence.FormatTime(from), evidence.FormatTime(now))
}

// NewRing makes a Ring. It does not read any key yet. It returns an error if Files is nil or the algorithm is not one of a first key.
func NewRing(config Config) (*Ring, error) {
	if config.Files == nil {
		return nil, errors.New("opening keyring: no file store")
	}
	config.Algorithm = cmp.Or(config.Algorithm, evidence.ES256)
	if first := slices.DeleteFunc(evidence.Algorithms(), evidence.Algorithm.PostQuantum); !slices.Contains(first, config.Algorithm) {
		return nil, fmt.Errorf("opening keyring: algorithm %q cannot be a first key's, want one of %v", config.Algorithm, first)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.After == nil {
		config.After = func(string) {}
	}
	if config.Helper == nil {
		config.Helper = &token.Helper{}
	}
	if config.History == nil {
		config.History = func(context.Context) (*History, error) { return NewHistory(), nil }
	}
	if config.Known == nil {
		config.Known = config.History
	}
	return &Ring{config: config, loaded: map[place]*Held{}, listed: map[string]*Held{}}, nil
}

func randomKey(algorithm evidence.Algorithm) (crypto.Signer, error) {
	switch algorithm {
	case evidence.RS256:
		const bits = 3072 // 128-bit strength, as P-256 and Ed25519 have
		return rsa.GenerateKey(rand.Reader, bits)
	case evidence.Ed25519:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	case evidence.MLDSA65:
		var seed [32]byte
		rand.Read(seed[:]) // never fails
		return evidence.NewMLDSA65(&seed), nil
	}
	return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
}

// Signers returns an actor's signers. It makes the first key if there is none. The second signer is there if the actor has a second key or
// Config.PostQuantum is set. The errors include ErrOwner, ErrNoKey, ErrEnded, ErrLost and ErrSecondKey.
func (r *Ring) Signers(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error) {
	return r.signers(ctx, role, name, r.config.History)
}

// ToSeal is Signers with the keys as the log was when this process last read it, for a record that the log compares with its keys as it stores it.
// If it refuses that with ErrEnded, ErrForeign or ErrIncomplete, Signers says whether the keys have changed.
func (r *Ring) ToSeal(ctx context.Context, role evidence.Role, name string) ([]evidence.Signer, error) {
	if !r.isLoaded(place{role, name, false}) { // a key may have to be made
		return r.Signers(ctx, role, name)
	}
	return r.signers(ctx, role, name, r.config.Known)
}

func (r *Ring) signers(ctx context.Context, role evidence.Role, name string, read func(context.Context) (*History, error)) (list []evidence.Signer, err error) {
	defer fault.While(&err, "key of %s %q", role, name)
	history, err := read(ctx) // the log may be on another machine, so the lock is not held here
	if err != nil {
		return nil, err
	}
	first, err := r.first(ctx, history, role, name)
	if err != nil {
		return nil, err
	}
	// The second key is looked up last: another process may have made it, and a second key that the first one names exists by now.
	second, err := r.second(ctx, history, place{role, name, true})
	switch {
	case errors.Is(err, fs.ErrNotExist) && first.With.IsZero():
		return []evidence.Signer{first.signer}, r.begun(history, first)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s", ErrSecondKey, first.With)
	case err != nil:
		return nil, err
	case !first.With.IsZero() && first.With != second.KeyID:
		return nil, fmt.Errorf("%w: it is %s instead of %s", ErrSecondKey, second.KeyID, first.With)
	}
	return []evidence.Signer{first.signer, second.signer}, r.begun(history, first, second)
}

// begun makes the clock continue from the time at which keys begin, which another clock may have given. It returns ErrNotYet if it is still behind.
func (r *Ring) begun(history *History, list ...*Held) error {
	for _, k := range list {
		from := k.since(history)
		if r.config.Reach != nil {
			r.config.Reach(from)
		}
		if now := r.config.Now(); now.Before(from.Add(-Skew)) {
			return notYet(k.KeyID, from, now)
		}
	}
	return nil
}

// since returns when a key begins: as the log says, or as it was made.
func (k *Held) since(history *History) time.Time {
	if known := history.Key(k.KeyID); known != nil {
		return known.From
	}
	return k.Created
}

// Began returns since when the signers of a payload have their keys: the latest of these times, of keys that the log names or that were used here.
func (r *Ring) Began(ctx context.Context, p *evidence.Payload) (latest time.Time, err error) {
	history, err := r.config.Known(ctx)
	if err != nil {
		return latest, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range p.Signers {
		from := time.Time{}
		if known := history.Key(s.KeyID); known != nil {
			from = known.From
		} else if held := r.loaded[placeOf(p.Role(), p.Actor(), s.Algorithm)]; held != nil && held.KeyID == s.KeyID {
			from = held.Created
		}
		latest = later(latest, from)
	}
	return latest, nil
}

// first returns an actor's first key. It makes the key if there is none.
func (r *Ring) first(ctx context.Context, history *History, role evidence.Role, name string) (*Held, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.maySign(history, role, name); err != nil {
		return nil, err
	}
	if r.config.PostQuantum { // made before the first key, so that the first names it and never signs alone
		if _, err := r.findOrCreate(ctx, history, role, name, evidence.MLDSA65); err != nil {
			return nil, err
		}
	}
	return r.findOrCreate(ctx, history, role, name, r.config.Algorithm)
}

// second returns the key that signs beside the first, or fs.ErrNotExist, wrapped. Most actors have none, which every signature finds without the lock.
func (r *Ring) second(ctx context.Context, history *History, at place) (*Held, error) {
	if history.latest[at] == nil && !r.isLoaded(at) {
		if _, err := r.config.Files.Read(ctx, r.file(at)); errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.find(ctx, history, at)
}

func (r *Ring) isLoaded(at place) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.loaded[at] != nil
}

// maySign returns ErrOwner or ErrNoKey if this installation may not sign for an actor.
func (r *Ring) maySign(history *History, role evidence.Role, name string) error {
	latest := history.Latest(role, name)
	if len(latest) == 0 {
		return nil
	}
	// If all have ended and one was the owner's, the actor's next key is the owner's, too.
	if slices.ContainsFunc(latest, func(k *Key) bool { return k.Custody == operator.CustodyOwner }) {
		return ErrOwner
	}
	if len(history.Active(role, name, r.config.Now())) == 0 {
		return ErrNoKey
	}
	return nil
}

// findOrCreate returns the actor's key of an algorithm's kind. It makes the key if there is none. The caller holds the lock.
func (r *Ring) findOrCreate(ctx context.Context, history *History, role evidence.Role, name string, algorithm evidence.Algorithm) (*Held, error) {
	key, err := r.find(ctx, history, placeOf(role, name, algorithm))
	if errors.Is(err, fs.ErrNotExist) {
		key, err = r.create(ctx, history, role, name, algorithm, nil)
		if errors.Is(err, ErrExists) { // another process made the key first, and that key is the actor's
			key, err = r.find(ctx, history, placeOf(role, name, algorithm))
		}
	}
	return key, err
}

// Create makes an actor's key; one of ML-DSA-65 is its second. If on is not nil, the key is the one on a token that on names. The errors
// include ErrExists, ErrOwner, ErrNoKey, and an *evidence.FieldError for a name that is refused.
func (r *Ring) Create(ctx context.Context, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference) (key *Held, err error) {
	defer fault.While(&err, "key of %s %q", role, name)
	history, err := r.config.History(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.unused(ctx, history, on); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.maySign(history, role, name); err != nil {
		return nil, err
	}
	return r.create(ctx, history, role, name, algorithm, on)
}

// unused returns ErrExists if a key on a token belongs, or once belonged, to an actor.
func (r *Ring) unused(ctx context.Context, history *History, on *token.Reference) error {
	if on == nil {
		return nil
	}
	id, err := evidence.KeyIDOf(on.Public)
	if err != nil {
		return err
	}
	files, err := r.Keys(ctx)
	if err != nil {
		return err
	}
	if history.Key(id) != nil || slices.ContainsFunc(files, func(k *Held) bool { return k.KeyID == id }) {
		return fmt.Errorf("%w: %s is in use, or was: each actor has a key of its own", ErrExists, on.URI)
	}
	return nil
}

// Keys returns every key, sorted by role and name, an actor's first key before its second. It refuses a key file that it cannot read.
func (r *Ring) Keys(ctx context.Context) ([]*Held, error) {
	r.mu.Lock()
	before := r.listed
	r.mu.Unlock()
	listed, keys, err := r.list(ctx, before)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.listed = listed
	r.mu.Unlock()
	slices.SortFunc(keys, func(a, b *Held) int {
		return cmp.Or(cmp.Compare(a.Role, b.Role), cmp.Compare(a.Name, b.Name), rank(a.Algorithm)-rank(b.Algorithm))
	})
	return keys, nil
}

// list reads the key files that are not among those read before, and returns all of them, by file and in a list.
func (r *Ring) list(ctx context.Context, before map[string]*Held) (listed map[string]*Held, keys []*Held, err error) {
	listed = map[string]*Held{}
	err = r.config.Files.List(ctx, Folder, func(file string) error {
		if path.Ext(file) != extension || strings.Contains(path.Base(file), nextKey) {
			return nil // a next key belongs to no actor yet
		}
		key := before[file] // a key file never changes
		if key == nil {
			var err error
			if key, err = r.load(ctx, file); errors.Is(err, fs.ErrNotExist) {
				return nil // another process has just destroyed it
			} else if err != nil {
				return err
			}
		}
		listed[file], keys = key, append(keys, key)
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("listing keys: %w", err)
	}
	return listed, keys, nil
}

// find returns the key in a place, or an error with fs.ErrNotExist in its chain if there is none. The caller holds the lock.
func (r *Ring) find(ctx context.Context, history *History, at place) (*Held, error) {
	if current := history.latest[at]; current != nil {
		return r.private(ctx, at, current)
	}
	if key := r.loaded[at]; key != nil {
		return key, nil
	}
	return r.take(ctx, at, r.file(at))
}

// private returns the private key of the key that the log names in a place.
func (r *Ring) private(ctx context.Context, at place, current *Key) (*Held, error) {
	if current.Ended(r.config.Now()) {
		return nil, fmt.Errorf("%w: %s is %s", ErrEnded, current.KeyID, current.State(r.config.Now()))
	}
	if key := r.loaded[at]; key != nil && key.KeyID == current.KeyID {
		return key, nil
	}
	for _, file := range []string{r.rotatedFile(at, current.KeyID), r.file(at), r.nextFile(at, current.Algorithm)} {
		key, err := r.take(ctx, at, file)
		if err == nil && key.KeyID == current.KeyID {
			return key, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %s", ErrLost, current.KeyID)
}

// take loads a key from a file. It returns an error if the key does not belong in the place.
func (r *Ring) take(ctx context.Context, at place, file string) (*Held, error) {
	key, err := r.load(ctx, file)
	if err != nil {
		return nil, err
	}
	if is := placeOf(key.Role, key.Name, key.Algorithm); is != at {
		return nil, fmt.Errorf("%s is the %s key of %s %q", key.File, key.Algorithm, key.Role, key.Name)
	}
	r.loaded[at] = key
	return key, nil
}

// CheckName returns an *evidence.FieldError, wrapped, if no actor may begin to act under a name. An actor that has a key may keep any name.
func (r *Ring) CheckName(ctx context.Context, role evidence.Role, name string) error {
	history, err := r.config.History(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.checkName(ctx, history, role, name)
}

// checkName is CheckName. The caller holds the lock.
func (r *Ring) checkName(ctx context.Context, history *History, role evidence.Role, name string) error {
	if len(history.Latest(role, name)) > 0 {
		return nil
	}
	refused := names.Check(name)
	if refused == nil {
		listed, held, err := r.list(ctx, r.listed)
		if err != nil {
			return err
		}
		r.listed = listed
		var taken []string // of all actors that have, or had, a key: by the log, or in a file here
		for _, k := range history.keys {
			taken = append(taken, k.Name)
		}
		for _, k := range held {
			taken = append(taken, k.Name)
		}
		refused = names.CheckNew(name, slices.Values(taken))
	}
	if refused == nil {
		return nil
	}
	for _, second := range []bool{false, true} {
		if _, err := r.find(ctx, history, place{role, name, second}); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	field := "agent_id"
	if role == evidence.RoleReviewer {
		field = "reviewer_id"
	}
	return &evidence.FieldError{Field: field, Reason: refused.Error()}
}

// create makes a key in a place, and its file. The caller holds the lock.
func (r *Ring) create(ctx context.Context, history *History, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference) (*Held, error) {
	if err := r.checkName(ctx, history, role, name); err != nil {
		return nil, err
	}
	at := placeOf(role, name, algorithm)
	var with evidence.KeyID
	if !at.second {
		second, err := r.find(ctx, history, place{role, name, true})
		if err == nil {
			with = second.KeyID
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if history.Current(role, name, algorithm) != nil {
		return nil, ErrExists
	}
	if err := r.make(ctx, r.file(at), header{Name: name, Role: role, With: with}, algorithm, on); err != nil {
		return nil, err
	}
	delete(r.loaded, at)
	return r.find(ctx, history, at) // reading it back makes sure that the file holds the key that is used
}

// make makes a key in a new file, or writes a reference to a key on a token there. It never changes an existing file: then it returns ErrExists.
func (r *Ring) make(ctx context.Context, file string, head header, algorithm evidence.Algorithm, on *token.Reference) error {
	if !slices.Contains(evidence.Roles(), head.Role) {
		return fmt.Errorf("unknown role %q, want one of %v", head.Role, evidence.Roles())
	}
	if err := evidence.CheckName(head.Name); err != nil {
		return fmt.Errorf("name: %w", err)
	}
	if !slices.Contains(evidence.Algorithms(), algorithm) {
		return fmt.Errorf("unknown algorithm %q, want one of %v", algorithm, evidence.Algorithms())
	}
	head.Created = r.config.Now().UTC().Truncate(time.Second)
	line, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encoding key: %w", err)
	}
	key, err := Text(algorithm, on)
	if err != nil {
		return err
	}
	err = r.config.Files.Create(ctx, file, slices.Concat(line, []byte("\n"), key))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w: %s", ErrExists, r.config.Files.Where(file))
	}
	return err
}

// Text returns the PEM block of a key's file: a new private key, or a reference to the key on a token, which must be of the algorithm.
func Text(algorithm evidence.Algorithm, on *token.Reference) ([]byte, error) {
	if on != nil {
		if is, err := evidence.AlgorithmOf(on.Public); err != nil || is != algorithm {
			return nil, fmt.Errorf("%s is a key for %s, want one for %s", on.URI, is, algorithm)
		}
		return on.PEM()
	}
	private, err := randomKey(algorithm)
	if err != nil {
		return nil, fmt.Errorf("making a key: %w", err)
	}
	return token.PrivatePEM(private)
}
