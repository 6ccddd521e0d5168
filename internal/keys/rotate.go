package keys

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/token"
)

// Unrecorded returns an actor's keys of which the log says nothing, in the order in which they were made: they are those
// that the actor got when it first signed.
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

// Next makes the key that is to take the place of an actor's present one, as soon as the log says so. One that was made
// for this before, and of which the log has never been told, is returned again: a rotation that was broken off is gone
// on with, and leaves no private key behind. If on is not nil, the key is the one on a token that on names.
func (r *Ring) Next(ctx context.Context, role evidence.Role, name string, algorithm evidence.Algorithm, on *token.Reference) (*Held, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	file := r.nextFile(placeOf(role, name, algorithm), algorithm)
	if err := r.free(ctx, file); err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	err := r.make(ctx, file, header{Name: name, Role: role}, algorithm, on)
	if err != nil && !errors.Is(err, ErrExists) {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	key, err := r.load(ctx, file)
	if err != nil {
		return nil, fmt.Errorf("key of %s %q: %w", role, name, err)
	}
	if key.Role != role || key.Name != name || key.Algorithm != algorithm {
		return nil, fmt.Errorf("%s is the %s key of %s %q", key.File, key.Algorithm, key.Role, key.Name)
	}
	if on != nil && key.Token != on.URI || on == nil && key.Token != "" {
		return nil, fmt.Errorf("%s is left of a rotation to another key that was broken off: go on with that one, or remove the file", key.File)
	}
	return key, nil
}

// free makes room for the next key: one that the log has been told of since gets the name of one that has taken its place.
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

// Tidy makes the files follow the log: keys that took the place of others get their names, and the private halves of
// keys that have ended are destroyed. To verify what they signed needs the public halves, which are in the log; a private
// half that may sign nothing could serve nobody but a thief. It can be called at any time, and by several at once.
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
		// A crash before this leaves the key under the name by which it is found, too.
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

// holds reports whether a file is there and holds this key. One that cannot be read is nobody's to destroy: whoever needs
// it is told.
func (r *Ring) holds(ctx context.Context, file string, id evidence.KeyID) bool {
	key, err := r.load(ctx, file)
	return err == nil && key.KeyID == id
}
