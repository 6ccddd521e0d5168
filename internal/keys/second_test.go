package keys

import (
	"errors"
	"os"
	"sync"
	"testing"

	"jurat/evidence"
	"jurat/internal/filestore"
	"jurat/internal/must"
)

// twice returns a ring in which every actor signs twice.
func twice(t *testing.T, dir string) *Ring {
	t.Helper()
	return must.Get(NewRing(Config{Files: filestore.NewFolder(dir), PostQuantum: true, Now: newRing(t, dir).config.Now}))(t)
}

// algorithms lists the algorithms that an actor signs with, in order.
func algorithms(t *testing.T, r *Ring, name string) []evidence.Algorithm {
	t.Helper()
	signers := must.Get(r.Signers(t.Context(), evidence.RoleAgent, name))(t)
	var list []evidence.Algorithm
	for _, s := range signers {
		list = append(list, s.Info().Algorithm)
	}
	return list
}

func wantTwice(t *testing.T, r *Ring, name string) {
	t.Helper()
	if got := algorithms(t, r, name); len(got) != 2 || got[0] != evidence.ES256 || got[1] != evidence.MLDSA65 {
		t.Errorf("%q signs with %v", name, got)
	}
}

// TestSecondKey gives actors a second key in three ways: both on first use, the second later, and the second first.
func TestSecondKey(t *testing.T) {
	dir := t.TempDir()
	wantTwice(t, twice(t, dir), "both")
	wantTwice(t, newRing(t, dir), "both") // a ring without the setting finds both keys
	r := newRing(t, dir)
	only(t, r, evidence.RoleAgent, "later")
	must.Get(newRing(t, dir).Create(t.Context(), evidence.RoleAgent, "later", evidence.MLDSA65, nil))(t)
	wantTwice(t, r, "later") // also a ring that has already read the first key
	if _, err := r.Create(t.Context(), evidence.RoleAgent, "later", evidence.MLDSA65, nil); !errors.Is(err, ErrExists) {
		t.Errorf("another second key: %v", err)
	}
	must.Get(r.Create(t.Context(), evidence.RoleAgent, "first", evidence.MLDSA65, nil))(t)
	wantTwice(t, r, "first")
	keys, err := newRing(t, dir).Keys(t.Context())
	if err != nil || len(keys) != 6 {
		t.Fatalf("%d keys, %v", len(keys), err)
	}
	for i := 0; i < len(keys); i += 2 {
		first, second := keys[i], keys[i+1]
		if first.Name != second.Name || first.Algorithm != evidence.ES256 || second.Algorithm != evidence.MLDSA65 || !second.With.IsZero() {
			t.Errorf("keys %+v and %+v", first, second)
		}
		if alone := first.With.IsZero(); alone != (first.Name == "later") || !alone && first.With != second.KeyID {
			t.Errorf("%q: Create made the first key with %v", first.Name, first.With)
		}
	}
}

// TestSecondKeyIsMissed: after the second key of a pair is lost, damaged or replaced, the first key must not sign alone.
func TestSecondKeyIsMissed(t *testing.T) {
	dir := t.TempDir()
	wantTwice(t, twice(t, dir), "a")
	wantTwice(t, twice(t, dir), "b")
	r := newRing(t, dir)
	path := func(at place) string { return r.config.Files.Where(r.file(at)) }
	file, other := path(place{evidence.RoleAgent, "a", true}), path(place{evidence.RoleAgent, "b", true})
	refused := func(what string, want error) {
		t.Helper()
		if signers, err := newRing(t, dir).Signers(t.Context(), evidence.RoleAgent, "a"); err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %d signers, %v", what, len(signers), err)
		}
	}
	must.Do(t, os.Rename(file, file+".away"))
	refused("lost", ErrSecondKey)
	must.Get(newRing(t, dir).Create(t.Context(), evidence.RoleAgent, "a", evidence.MLDSA65, nil))(t)
	refused("replaced", ErrSecondKey)
	for what, from := range map[string]string{"another actor's": other, "its own first": path(place{evidence.RoleAgent, "a", false})} {
		text := must.Get(os.ReadFile(from))(t)
		must.Do(t, os.WriteFile(file, text, 0o600))
		refused(what, nil)
	}
	must.Do(t, os.WriteFile(file, []byte("damaged"), 0o600))
	refused("damaged", nil)
	must.Do(t, os.Rename(file+".away", file))
	wantTwice(t, newRing(t, dir), "a")
}

func TestOneSecondKeyHoweverManyMeetTheActorFirst(t *testing.T) {
	dir := t.TempDir()
	ids := make([]evidence.KeyID, 16)
	var wg sync.WaitGroup
	for i := range ids {
		r := twice(t, dir) // as in another process
		wg.Go(func() {
			signers, err := r.Signers(t.Context(), evidence.RoleAgent, "a")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = signers[1].Info().KeyID
		})
	}
	wg.Wait()
	for _, id := range ids[1:] {
		if id != ids[0] {
			t.Fatalf("one actor has two second keys: %s and %s", ids[0], id)
		}
	}
}

func TestSecondAlgorithmIsNoFirst(t *testing.T) {
	if _, err := NewRing(Config{Files: filestore.NewFolder(t.TempDir()), Algorithm: evidence.MLDSA65}); err == nil {
		t.Error("first keys of ML-DSA-65")
	}
}
