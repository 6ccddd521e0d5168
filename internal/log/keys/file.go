package keys

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/token"
)

const (
	extension = ".key"
	secondKey = ".second" // before the extension; a base name never contains a point
	nextKey   = ".next-"  // before the algorithm; the key replaces another one as soon as the log says so
)

// header is the first line of a key file, above the PEM block.
type header struct {
	Name    string         `json:"name"`
	Role    evidence.Role  `json:"role"`
	Created time.Time      `json:"created"`
	With    evidence.KeyID `json:"with,omitzero"` // of a first key: the second key that existed before it. The first key then never signs alone
}

// file returns the path of a key. It is readable, and differs for names that a file system may treat as equal.
func (r *Ring) file(at place) string {
	const readable = 60 // the bytes of the name that the path contains; every file system accepts this length
	safe := strings.Map(func(c rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", c) {
			return c
		}
		return '_'
	}, at.name)
	sum := sha256.Sum256([]byte(at.name))
	base := safe[:min(len(safe), readable)] + "-" + hex.EncodeToString(sum[:4])
	if at.second {
		base += secondKey
	}
	return path.Join(Folder, string(at.role), base+extension)
}

// nextFile returns the path of a new key until the log says that it replaces another.
func (r *Ring) nextFile(at place, algorithm evidence.Algorithm) string {
	return strings.TrimSuffix(r.file(at), extension) + nextKey + string(algorithm) + extension
}

// rotatedFile returns the path of a key that replaced another.
func (r *Ring) rotatedFile(at place, id evidence.KeyID) string {
	return strings.TrimSuffix(r.file(at), extension) + "." + hex.EncodeToString(id[:8]) + extension
}

// load reads a key file.
func (r *Ring) load(ctx context.Context, file string) (*Held, error) {
	text, err := r.config.Files.Read(ctx, file)
	if err != nil {
		return nil, err
	}
	key, err := r.parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", r.config.Files.Where(file), err)
	}
	key.File = r.config.Files.Where(file)
	return key, nil
}

func (r *Ring) parse(text []byte) (*Held, error) {
	line, rest, _ := bytes.Cut(text, []byte("\n"))
	key := &Held{}
	if err := json.Unmarshal(line, &key.header, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("first line: %w", err)
	}
	private, on, after, err := r.config.Helper.ParseKey(rest)
	if err == nil && strings.TrimSpace(after) != "" {
		err = errors.New("there is more after the PEM block")
	}
	if err != nil {
		return nil, err
	}
	signer, err := evidence.NewSigner(private, nil)
	if err != nil {
		return nil, err
	}
	if key.PublicKey, err = evidence.MarshalPublicKey(private.Public()); err != nil {
		return nil, err
	}
	key.Algorithm, key.KeyID, key.signer = signer.Info().Algorithm, signer.Info().KeyID, signer
	if on != nil {
		key.Token, key.Protection = on.URI, on.Protection
	}
	return key, nil
}

// Unrecorded returns the keys that an actor got when it first signed and that the log does not name, in the order in which they were made.
func (r *Ring) Unrecorded(ctx context.Context, role evidence.Role, name string) ([]*Held, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	history, err := r.config.History(ctx)
	if err != nil {
		return nil, err
	}
	var keys []*Held
	for _, algorithm := range []evidence.Algorithm{r.config.Algorithm, evidence.MLDSA65} {
		if history.Current(role, name, algorithm) != nil {
			continue
		}
		key, err := r.find(ctx, history, placeOf(role, name, algorithm))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
		}
		keys = append(keys, key)
	}
	if len(keys) == 2 && keys[0].With == keys[1].KeyID {
		keys[0], keys[1] = keys[1], keys[0]
	}
	return keys, nil
}

// Next makes the key that will replace an actor's present one, once the log says so. If an interrupted rotation has left such a key, Next
// returns that key, so that no unused private key stays behind. If on is not nil, the key is the one on a token that on names.
func (r *Ring) Next(ctx context.Context, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference) (key *Held, err error) {
	defer fault.While(&err, "key of %s %q", role, name)
	r.mu.Lock()
	defer r.mu.Unlock()
	file := r.nextFile(placeOf(role, name, algorithm), algorithm)
	if err := r.free(ctx, file); err != nil {
		return nil, err
	}
	if err := r.make(ctx, file, header{Name: name, Role: role}, algorithm, on); err != nil && !errors.Is(err, ErrExists) {
		return nil, err
	}
	if key, err = r.load(ctx, file); err != nil {
		return nil, err
	}
	if key.Role != role || key.Name != name || key.Algorithm != algorithm {
		return nil, fmt.Errorf("%s is the %s key of %s %q", key.File, key.Algorithm, key.Role, key.Name)
	}
	if on != nil && key.Token != on.URI || on == nil && key.Token != "" {
		return nil, fmt.Errorf("%s is left over from an interrupted rotation to another key: repeat that rotation, or remove the file", key.File)
	}
	return key, nil
}

// free makes room for the next key. If the log has named the key in the file meanwhile, free moves that key to its permanent file.
func (r *Ring) free(ctx context.Context, next string) error {
	key, err := r.load(ctx, next)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	history, err := r.config.History(ctx)
	if err != nil {
		return err
	}
	if known := history.Key(key.KeyID); known != nil {
		return r.follow(ctx, known)
	}
	return nil
}

// Tidy updates the key files to match the log. It renames the files of keys that replaced others, and destroys the private halves of keys that
// have ended. Several callers may call Tidy at any time.
func (r *Ring) Tidy(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	history, err := r.config.History(ctx)
	if err != nil {
		return err
	}
	for _, k := range history.Keys() {
		if k.Custody != operator.CustodyOperator {
			continue
		}
		if err := r.follow(ctx, k); err != nil {
			return fmt.Errorf("bringing the key %s of %s %q up to date: %w", k.KeyID, k.Role, k.Name, err)
		}
	}
	return nil
}

func (r *Ring) follow(ctx context.Context, k *Key) error {
	at := placeOf(k.Role, k.Name, k.Algorithm)
	named, next := r.rotatedFile(at, k.KeyID), r.nextFile(at, k.Algorithm)
	if r.holds(ctx, next, k.KeyID) {
		// A crash before the rename is harmless: find looks for the key under its old name, too.
		if err := r.config.Files.Rename(ctx, next, named); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !k.Ended(r.config.Now()) {
		return nil
	}
	for _, file := range []string{named, r.file(at)} {
		if !r.holds(ctx, file, k.KeyID) {
			continue
		}
		if err := r.config.Files.Remove(ctx, file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if key := r.loaded[at]; key != nil && key.KeyID == k.KeyID {
		delete(r.loaded, at)
	}
	return nil
}

// holds reports whether a file holds this key. It reports false for an unreadable file, so that Tidy does not destroy it; who needs it gets the error.
func (r *Ring) holds(ctx context.Context, file string, id evidence.KeyID) bool {
	key, err := r.load(ctx, file)
	return err == nil && key.KeyID == id
}
