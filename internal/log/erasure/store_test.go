package erasure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/test/must"
	"jurat/internal/test/rig"
)

const secret = "the patient is in room 4"

// saying returns a record that seals the given members apart and discloses them.
func saying(members map[string]string) *evidence.Record {
	r := &evidence.Record{Digest: evidence.DigestOf([]byte(strings.Join(slices.Sorted(maps.Keys(members)), ",")))}
	for _, pointer := range slices.Sorted(maps.Keys(members)) {
		r.Payload.SealedApart = append(r.Payload.SealedApart, pointer)
		r.Disclosures = append(r.Disclosures, evidence.Disclosure{Pointer: pointer, Salt: bytes.Repeat([]byte{7}, 32),
			Value: jsontext.Value(`"` + members[pointer] + `"`)})
	}
	return r
}

// onBoth runs a test with the values of one machine, and with those of a file store that several machines share. vault opens a Store as another
// process would.
func onBoth(t *testing.T, test func(t *testing.T, vault func() *Store)) {
	t.Run("a table", func(t *testing.T) { test(t, inTable(t, filepath.Join(t.TempDir(), "data"))) })
	t.Run("files", func(t *testing.T) {
		files := filestore.NewFolder(filepath.Join(t.TempDir(), "data"))
		test(t, func() *Store { return NewStore(InFiles{together{files}}) })
	})
}

func inTable(t testing.TB, dir string) func() *Store {
	must.Do(t, os.MkdirAll(dir, 0o700))
	return func() *Store {
		values := sqlite.NewValues(dir)
		t.Cleanup(func() { must.Do(t, values.Close()) })
		return NewStore(values)
	}
}

type together struct{ *filestore.Folder }

func (f together) CreateAll(ctx context.Context, files []filestore.File) error {
	for _, file := range files {
		if err := f.Create(ctx, file.Name, file.Content); err != nil {
			return err
		}
	}
	return nil
}

func kept(t *testing.T, vault func() *Store, members map[string]string) (*Store, *evidence.Record) {
	t.Helper()
	v, r := vault(), saying(members)
	must.Do(t, v.Keep(t.Context(), r))
	return v, r
}

func listed(t *testing.T, v *Store) (names []string) {
	t.Helper()
	must.Do(t, v.values.Each(t.Context(), func(name string) error { names = append(names, name); return nil }))
	slices.Sort(names)
	return names
}

func wantOpen(t *testing.T, v *Store, r *evidence.Record, pointer string, want error) {
	t.Helper()
	d, err := v.Open(t.Context(), r.Digest, pointer)
	must.Need(t, errors.Is(err, want) && (want != nil || err == nil), "%s: %v, want %v", pointer, err, want)
	if want != nil {
		return
	}
	i := slices.IndexFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	must.Equal(t, cmp.Diff(r.Disclosures[i], d), "")
}

func TestKeepAndOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		v, r := kept(t, vault, map[string]string{"/prompt": secret, "/metadata/user_id": "u-1", "/context": ""})
		for _, d := range r.Disclosures {
			wantOpen(t, v, r, d.Pointer, nil)
		}
		wantOpen(t, v, r, "/response", ErrNone)
		wantOpen(t, v, saying(map[string]string{"/prompt": secret}), "/prompt", ErrNone)
		wantOpen(t, vault(), r, "/prompt", nil)
	})
}

// TestNothingReadable: a copy of the values without the keys is unreadable, only the owner of the files can read them, and each key is in one place.
func TestNothingReadable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	v, r := kept(t, inTable(t, dir), map[string]string{"/prompt": secret})
	key := must.Get(v.values.Read(t.Context(), Name(r.Digest, "/prompt")))(t).Key
	for name, mode := range rig.Tree(t, dir) {
		must.Hold(t, runtime.GOOS == "windows" || mode.Perm()&0o077 == 0, "%s has the mode %v", name, mode)
	}
	n := 0
	for name, text := range rig.Files(t, dir) {
		must.Hold(t, !bytes.Contains(text, []byte(secret)) && !bytes.Contains(text, r.Disclosures[0].Salt), "%s can be read", name)
		n += bytes.Count(text, key)
	}
	must.Equal(t, n, 1)
}

// TestOneKeyEach: every value has a key of its own, so destroying one key destroys one value.
func TestOneKeyEach(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		v, r := kept(t, vault, map[string]string{"/prompt": secret, "/context": secret})
		_, other := kept(t, vault, map[string]string{"/prompt": secret})
		keys := map[string]bool{}
		for _, name := range listed(t, v) {
			value, err := v.values.Read(t.Context(), name)
			must.Hold(t, err == nil && len(value.Key) == keySize && !keys[string(value.Key)], "%s: %x, %v", name, value.Key, err)
			keys[string(value.Key)] = true
		}
		must.Do(t, v.Destroy(t.Context(), r.Digest, "/prompt"))
		wantOpen(t, v, r, "/prompt", ErrNone)
		wantOpen(t, v, r, "/context", nil)
		wantOpen(t, v, other, "/prompt", nil)
	})
}

// TestDestroyed crashes a destruction at each step while another process keeps what it wrote. From the first step on, no copy of the key is anywhere.
func TestDestroyed(t *testing.T) {
	for n, step := range []string{"key destroyed", "value removed"} {
		dir := filepath.Join(t.TempDir(), "data")
		vault := inTable(t, dir)
		recorder, r := kept(t, vault, map[string]string{"/prompt": secret, "/response": "I see"})
		key := must.Get(recorder.values.Read(t.Context(), Name(r.Digest, "/prompt")))(t).Key
		eraser := vault()
		eraser.After = func(string) {
			if n--; n < 0 {
				panic(step)
			}
		}
		func() {
			defer func() { _ = recover() }()
			must.Do(t, eraser.Destroy(t.Context(), r.Digest, "/prompt"))
		}()
		for file, content := range rig.Files(t, dir) {
			must.Hold(t, !bytes.Contains(content, key), "after %q: %s has the key", step, file)
		}
		wantOpen(t, recorder, r, "/prompt", ErrNone)
		wantOpen(t, recorder, r, "/response", nil)
		must.Do(t, vault().Destroy(t.Context(), r.Digest, "/prompt"))
		names := listed(t, recorder)
		must.Hold(t, len(names) == 1 && names[0] == Name(r.Digest, "/response"), "after %q: %v", step, names)
	}
}

// TestHostileNames: values stay where they belong, whatever the members' names are.
func TestHostileNames(t *testing.T) {
	members := map[string]string{}
	for _, name := range []string{"..~1..~1..~1etc~1passwd", "..", "a\x00b", strings.Repeat("é", 5000), "CON", "a~0b", "\u202e"} {
		members["/metadata/"+name] = "v"
	}
	onBoth(t, func(t *testing.T, vault func() *Store) {
		v, r := kept(t, vault, members)
		for _, name := range listed(t, v) {
			must.Hold(t, regexp.MustCompile(`^[0-9a-f]{64}-[0-9a-f]{16}$`).MatchString(name), "a value is called %q", name)
		}
		for pointer := range members {
			wantOpen(t, v, r, pointer, nil)
			must.Do(t, v.Destroy(t.Context(), r.Digest, pointer))
			wantOpen(t, v, r, pointer, ErrNone)
		}
	})
}

func TestElsewhere(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		v, r := vault(), saying(map[string]string{"/prompt": secret, "/context": "c"})
		r.Disclosures = slices.DeleteFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == "/prompt" })
		must.Do(t, v.Keep(t.Context(), r))
		wantOpen(t, v, r, "/prompt", ErrElsewhere)
		wantOpen(t, v, r, "/context", nil)
		must.Do(t, v.Forget(t.Context(), r))
		wantOpen(t, v, r, "/prompt", ErrElsewhere) // the same record may be in the log
		wantOpen(t, v, r, "/context", ErrNone)
		must.Do(t, v.Destroy(t.Context(), r.Digest, "/prompt"))
		note := new(*r)
		note.Payload.SealedApart, note.Disclosures = []string{"/prompt"}, nil
		for range 2 { // as two processes that accept it
			must.Do(t, v.Keep(t.Context(), note))
		}
		wantOpen(t, v, r, "/prompt", ErrElsewhere)
	})
}

// TestDamage: a changed value never opens as the stored value, and hides no other.
func TestDamage(t *testing.T) {
	tests := map[string]func(value, other *storage.Value){
		"the key of another":       func(value, other *storage.Value) { value.Key = other.Key },
		"the value of another":     func(value, other *storage.Value) { value.Sealed = other.Sealed },
		"value and key of another": func(value, other *storage.Value) { value.Sealed, value.Key = other.Sealed, other.Key },
		"half a key":               func(value, _ *storage.Value) { clear(value.Key[keySize/2:]) },
		"another bit in the key":   func(value, _ *storage.Value) { value.Key[3] ^= 1 },
		"half a value":             func(value, _ *storage.Value) { value.Sealed = value.Sealed[:len(value.Sealed)/2] },
		"an empty value":           func(value, _ *storage.Value) { value.Sealed = []byte{} },
		"another bit":              func(value, _ *storage.Value) { value.Sealed[0] ^= 1 },
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			onBoth(t, func(t *testing.T, vault func() *Store) {
				v, r := kept(t, vault, map[string]string{"/prompt": secret, "/context": "other"})
				value := must.Get(v.values.Read(t.Context(), Name(r.Digest, "/prompt")))(t)
				other := must.Get(v.values.Read(t.Context(), Name(r.Digest, "/context")))(t)
				damage(&value, &other)
				must.Do(t, errors.Join(v.values.DestroyKey(t.Context(), value.Name), v.values.Remove(t.Context(), value.Name)))
				must.Do(t, v.values.Add(t.Context(), []storage.Value{value}))
				wantOpen(t, v, r, "/prompt", ErrDamaged)
				_, err := v.Open(t.Context(), r.Digest, "/prompt")
				must.Hold(t, strings.Contains(err.Error(), v.values.Where(value.Name)), "%v does not name the value", err)
				wantOpen(t, v, r, "/context", nil)
				must.Do(t, v.Destroy(t.Context(), r.Digest, "/prompt")) // a damaged value can be erased, too
				wantOpen(t, v, r, "/prompt", ErrNone)
			})
		})
	}
}

func TestKeyThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	dir := filepath.Join(t.TempDir(), "data")
	v, r := kept(t, inTable(t, dir), map[string]string{"/prompt": secret})
	keys := must.Get(filepath.Glob(filepath.Join(dir, sqlite.KeysFolder, "*")))(t)
	must.Do(t, os.Chmod(keys[0], 0o644))
	_, err := v.Open(t.Context(), r.Digest, "/prompt")
	must.Hold(t, err != nil && strings.Contains(err.Error(), "0644"), "%v", err)
}

func TestDestroyWhatIsNotThere(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		must.Do(t, vault().Destroy(t.Context(), evidence.DigestOf(nil), "/prompt"))
		v, _ := kept(t, vault, map[string]string{"/prompt": secret})
		must.Do(t, v.Destroy(t.Context(), evidence.DigestOf(nil), "/prompt"))
	})
}

func TestKeepNeverReplaces(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		v, r := kept(t, vault, map[string]string{"/prompt": secret})
		must.Want(t, v.Keep(t.Context(), r), fs.ErrExist)
		wantOpen(t, v, r, "/prompt", nil)
	})
}

// TestTooMany: one record cannot fill the disk with values.
func TestTooMany(t *testing.T) {
	members := map[string]string{}
	for n := range maxMembers + 1 {
		members[fmt.Sprintf("/metadata/%d", n)] = "v"
	}
	v := inTable(t, filepath.Join(t.TempDir(), "data"))()
	err := v.Keep(t.Context(), saying(members))
	must.Hold(t, err != nil && strings.Contains(err.Error(), "257"), "%v", err)
	names := listed(t, v)
	must.Hold(t, len(names) <= 0, "%v", names)
}

func TestConcurrently(t *testing.T) {
	onBoth(t, func(t *testing.T, vault func() *Store) {
		vaults := []*Store{vault(), vault(), vault()}
		var wg sync.WaitGroup
		for i := range 30 {
			v := vaults[i%3]
			wg.Go(func() {
				r := saying(map[string]string{"/metadata/" + strings.Repeat("n", i+1): secret})
				if err := v.Keep(t.Context(), r); err != nil {
					t.Error(err)
					return
				}
				d, err := v.Open(t.Context(), r.Digest, r.Disclosures[0].Pointer)
				must.Hold(t, err == nil && string(d.Value) == `"`+secret+`"`, "%s, %v", d.Value, err)
				if i%2 == 1 {
					return
				}
				var both sync.WaitGroup
				for n := range 2 {
					both.Go(func() {
						must.Want(t, vaults[n].Destroy(t.Context(), r.Digest, r.Disclosures[0].Pointer), nil)
					})
				}
				both.Wait()
			})
		}
		wg.Wait()
		names := listed(t, vault())
		must.Hold(t, len(names) == 15, "%d values, want 15", len(names))
	})
}

// FuzzOpen: any content in place of a value opens only as the stored value.
func FuzzOpen(f *testing.F) {
	r := saying(map[string]string{"/prompt": secret})
	value := must.Get(sealed(r, "/prompt"))(f)
	f.Add(value.Sealed)
	f.Add(elsewhere)
	f.Add([]byte(`{"pointer":"/prompt"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		d, err := open(value.Key, bound(r.Digest, "/prompt"), text)
		d.Pointer = "/prompt"
		must.Hold(t, err != nil || cmp.Equal(d, r.Disclosures[0]), "%q opens as %v", text, d)
	})
}
