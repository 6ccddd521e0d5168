package keys

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/log/filestore"
	"jurat/internal/test/must"
)

func newRing(t *testing.T, dir string) *Ring {
	t.Helper()
	return must.Get(NewRing(Config{Files: filestore.NewFolder(dir), Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC) }}))(t)
}

// only returns the signer of an actor that signs once.
func only(t *testing.T, r *Ring, role evidence.Role, name string) evidence.Signer {
	t.Helper()
	signers, err := r.Signers(t.Context(), role, name)
	must.Need(t, err == nil, "%s %q: %v", role, name, err)
	must.Need(t, len(signers) == 1, "%s %q signs %d times", role, name, len(signers))
	return signers[0]
}

func TestKeyIsMadeOnceAndFoundAgain(t *testing.T) {
	dir := t.TempDir()
	for _, algorithm := range slices.DeleteFunc(evidence.Algorithms(), evidence.Algorithm.PostQuantum) {
		name := "agent " + string(algorithm)
		made := must.Get(newRing(t, dir).Create(t.Context(), evidence.RoleAgent, name, algorithm, nil))(t)
		signer := only(t, newRing(t, dir), evidence.RoleAgent, name)
		got := signer.Info()
		must.Hold(t, got.KeyID == made.KeyID && got.Algorithm == algorithm, "found key %v, made %s %s", got, algorithm, made.KeyID)
		public := must.Get(evidence.ParsePublicKey(made.PublicKey))(t)
		signature := must.Get(signer.Sign([]byte("{}")))(t)
		err := evidence.CheckSignature(public, signer.Info(), []byte("{}"), signature)
		must.Hold(t, err == nil, "%s: %v", algorithm, err)
		must.Fail(t, ErrExists)(newRing(t, dir).Create(t.Context(), evidence.RoleAgent, name, algorithm, nil))
	}
}

func TestNamesAndRolesDoNotShareKeys(t *testing.T) {
	r := newRing(t, t.TempDir())
	names := []string{"juror-gpt", "juror-gpt-2", "../../etc/passwd", "..a", "日本", "日木", "a/b", "a_b", strings.Repeat("x", 200), strings.Repeat("x", 199) + "y"}
	seen := map[evidence.KeyID]string{}
	for _, name := range names {
		for _, role := range evidence.Roles() {
			id := only(t, r, role, name).Info().KeyID
			other, ok := seen[id]
			must.Hold(t, !ok, "%s %q has the key of %s", role, name, other)
			seen[id] = string(role) + " " + name
		}
	}
	keys := must.Get(r.Keys(t.Context()))(t)
	must.Equal(t, len(keys), len(seen))
}

func TestOneKeyHoweverManyMeetTheActorFirst(t *testing.T) {
	dir := t.TempDir()
	ids := make([]evidence.KeyID, 16)
	var wg sync.WaitGroup
	for i := range ids {
		r := newRing(t, dir) // as in another process
		wg.Go(func() {
			signers, err := r.Signers(t.Context(), evidence.RoleJuror, "juror-gpt")
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = signers[0].Info().KeyID
		})
	}
	wg.Wait()
	for _, id := range ids[1:] {
		must.Need(t, id == ids[0], "one actor has two keys: %s and %s", ids[0], id)
	}
}

func TestKeyFilesArePrivate(t *testing.T) {
	r := newRing(t, t.TempDir())
	key := must.Get(r.Create(t.Context(), evidence.RoleClerk, "clerk", evidence.ES256, nil))(t)
	info := must.Get(os.Stat(key.File))(t)
	must.Equal(t, info.Mode().Perm(), 0o600)
	must.Do(t, os.Chmod(key.File, 0o640))
	_, err := newRing(t, r.config.Files.Where(".")).Signers(t.Context(), evidence.RoleClerk, "clerk")
	must.Hold(t, err != nil && strings.Contains(err.Error(), "mode 0640"), "Signers used a key file that other users can read: %v", err)
}

func TestDamagedKeyFileIsNeverReplaced(t *testing.T) {
	r := newRing(t, t.TempDir())
	key := must.Get(r.Create(t.Context(), evidence.RoleJudge, "judge", evidence.Ed25519, nil))(t)
	whole := must.Get(os.ReadFile(key.File))(t)
	for _, damage := range []string{"", "x\n", string(whole[:len(whole)/2]), strings.Replace(string(whole), `"judge"`, `"clerk"`, 1), string(whole) + string(whole)} {
		must.Do(t, os.WriteFile(key.File, []byte(damage), 0o600))
		_, err := newRing(t, r.config.Files.Where(".")).Signers(t.Context(), evidence.RoleJudge, "judge")
		must.Hold(t, err != nil, "Signers used a damaged key file: %q", damage)
		now, _ := os.ReadFile(key.File)
		must.Hold(t, string(now) == damage, "a damaged key file was overwritten")
	}
	leftovers, _ := filepath.Glob(filepath.Join(filepath.Dir(key.File), ".new-*"))
	must.Hold(t, len(leftovers) <= 0, "left behind: %v", leftovers)
}

// TestNamesThatDeceive: no new actor gets a name that readers cannot distinguish from another. An actor who already has
// such a name keeps it.
func TestNamesThatDeceive(t *testing.T) {
	dir := t.TempDir()
	for role, field := range map[evidence.Role]string{evidence.RoleAgent: "agent_id", evidence.RoleReviewer: "reviewer_id"} {
		for name, character := range map[string]string{"mia\u200b": "U+200B", ".": "U+002E"} {
			r := newRing(t, dir)
			_, signing := r.Signers(t.Context(), role, name)
			_, creating := r.Create(t.Context(), role, name, evidence.MLDSA65, nil)
			for _, err := range []error{signing, creating, r.CheckName(t.Context(), role, name)} {
				var refused *evidence.FieldError
				must.Hold(t, errors.As(err, &refused) && refused.Field == field && strings.Contains(err.Error(), character), "%s %+q: %v", role, name, err)
			}
			keys, err := newRing(t, dir).Keys(t.Context())
			must.Need(t, err == nil && len(keys) == 0, "%d keys, %v", len(keys), err)
		}
	}
	const name = "mia\u200b"
	r := newRing(t, dir)
	must.Do(t, r.make(t.Context(), r.file(placeOf(evidence.RoleAgent, name, evidence.ES256)), header{Name: name, Role: evidence.RoleAgent}, evidence.ES256, nil))
	only(t, newRing(t, dir), evidence.RoleAgent, name)
	_, err := newRing(t, dir).Create(t.Context(), evidence.RoleAgent, name, evidence.MLDSA65, nil)
	must.Hold(t, err == nil, "the second key of an actor with an older name: %v", err)
}

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
	got := algorithms(t, r, name)
	must.Hold(t, len(got) == 2 && got[0] == evidence.ES256 && got[1] == evidence.MLDSA65, "%q signs with %v", name, got)
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
	must.Fail(t, ErrExists)(r.Create(t.Context(), evidence.RoleAgent, "later", evidence.MLDSA65, nil))
	must.Get(r.Create(t.Context(), evidence.RoleAgent, "first", evidence.MLDSA65, nil))(t)
	wantTwice(t, r, "first")
	keys, err := newRing(t, dir).Keys(t.Context())
	must.Need(t, err == nil && len(keys) == 6, "%d keys, %v", len(keys), err)
	for i := 0; i < len(keys); i += 2 {
		first, second := keys[i], keys[i+1]
		must.Hold(t, first.Name == second.Name && first.Algorithm == evidence.ES256 && second.Algorithm == evidence.MLDSA65 && second.With.IsZero(),
			"keys %+v and %+v", first, second)
		alone := first.With.IsZero()
		must.Hold(t, alone == (first.Name == "later") && (alone || first.With == second.KeyID), "%q: Create made the first key with %v", first.Name, first.With)
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
		signers, err := newRing(t, dir).Signers(t.Context(), evidence.RoleAgent, "a")
		must.Hold(t, err != nil && (want == nil || errors.Is(err, want)), "%s: %d signers, %v", what, len(signers), err)
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
		must.Need(t, id == ids[0], "one actor has two second keys: %s and %s", ids[0], id)
	}
}

func TestSecondAlgorithmIsNoFirst(t *testing.T) {
	_, err := NewRing(Config{Files: filestore.NewFolder(t.TempDir()), Algorithm: evidence.MLDSA65})
	must.Hold(t, err != nil, "first keys of ML-DSA-65")
}

// TestRingWithoutALog refuses to change keys.
func TestRingWithoutALog(t *testing.T) {
	r := newRing(t, t.TempDir())
	err := r.Retire(t.Context(), evidence.KeyID{}, Why{})
	must.Hold(t, err != nil && strings.HasSuffix(err.Error(), "this keyring has no log"), "error %v", err)
	r.config.Change = func(context.Context, func(*History) ([]operator.KeyEventBody, error)) error { return nil }
	must.Do(t, r.Retire(t.Context(), evidence.KeyID{}, Why{}))
}
