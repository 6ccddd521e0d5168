package erasure

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/disktest"
	"jurat/internal/filestore"
	"jurat/internal/must"
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

func newVault(dir string) *Store { return NewStore(filestore.NewFolder(dir)) }

func (v *Store) dir() string { return v.files.Where(".") }

// place is a stored member, with the paths of its files.
func (v *Store) place(record evidence.Digest, pointer string) place {
	at := placeOf(record, pointer)
	at.value, at.key = v.files.Where(at.value), v.files.Where(at.key)
	return at
}

func kept(t *testing.T, members map[string]string) (*Store, *evidence.Record) {
	t.Helper()
	v, r := newVault(filepath.Join(t.TempDir(), "data")), saying(members)
	must.Do(t, v.Keep(t.Context(), r))
	return v, r
}

func wantOpen(t *testing.T, v *Store, r *evidence.Record, pointer string, want error) {
	t.Helper()
	d, err := v.Open(t.Context(), r.Digest, pointer)
	if !errors.Is(err, want) || want == nil && err != nil {
		t.Fatalf("%s: %v, want %v", pointer, err, want)
	}
	if want != nil {
		return
	}
	i := slices.IndexFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == pointer })
	if diff := cmp.Diff(r.Disclosures[i], d); diff != "" {
		t.Errorf("(-kept +opened):\n%s", diff)
	}
}

func TestKeepAndOpen(t *testing.T) {
	v, r := kept(t, map[string]string{"/prompt": secret, "/metadata/user_id": "u-1", "/context": ""})
	for _, d := range r.Disclosures {
		wantOpen(t, v, r, d.Pointer, nil)
	}
	wantOpen(t, v, r, "/response", ErrNone)
	wantOpen(t, v, saying(map[string]string{"/prompt": secret}), "/prompt", ErrNone)
	wantOpen(t, newVault(v.dir()), r, "/prompt", nil) // as in another process
}

// TestNothingReadable: a copy of the values without the keys is unreadable, and only the owner of the files can read
// them.
func TestNothingReadable(t *testing.T) {
	v, r := kept(t, map[string]string{"/prompt": secret})
	base := Name(r.Digest, "/prompt")
	want := map[string]fs.FileMode{".": fs.ModeDir | 0o700, "apart": fs.ModeDir | 0o700, "apart/values": fs.ModeDir | 0o700,
		"apart/values/" + base[:2]: fs.ModeDir | 0o700, "apart/values/" + base[:2] + "/" + base + ".json": 0o600,
		"apart-keys": fs.ModeDir | 0o700, "apart-keys/" + base[:2]: fs.ModeDir | 0o700, "apart-keys/" + base[:2] + "/" + base + ".key": 0o600}
	got := disktest.Tree(t, v.dir())
	if runtime.GOOS != "windows" {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	for name, mode := range got {
		if mode.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(v.dir(), name))
		if err != nil || bytes.Contains(text, []byte(secret)) || bytes.Contains(text, r.Disclosures[0].Salt) {
			t.Errorf("%s can be read: %v", name, err)
		}
	}
}

// TestOneKeyEach: every value has a key of its own, so destroying one key destroys one value.
func TestOneKeyEach(t *testing.T) {
	v, r := kept(t, map[string]string{"/prompt": secret, "/context": secret})
	other := saying(map[string]string{"/prompt": secret})
	must.Do(t, v.Keep(t.Context(), other))
	keys := map[string]bool{}
	for _, at := range []place{v.place(r.Digest, "/prompt"), v.place(r.Digest, "/context"), v.place(other.Digest, "/prompt")} {
		key, err := os.ReadFile(at.key)
		if err != nil || len(key) != keySize || keys[string(key)] {
			t.Errorf("%s: %x, %v", at.key, key, err)
		}
		keys[string(key)] = true
	}
	must.Do(t, v.Destroy(t.Context(), r.Digest, "/prompt"))
	wantOpen(t, v, r, "/prompt", ErrNone)
	wantOpen(t, v, r, "/context", nil)
	wantOpen(t, v, other, "/prompt", nil)
}

// TestHostileNames: the files of a member stay in their folders, whatever the member's name is.
func TestHostileNames(t *testing.T) {
	members := map[string]string{}
	for _, name := range []string{"..~1..~1..~1etc~1passwd", "..", "a\x00b", strings.Repeat("é", 5000), "CON", "a~0b", "\u202e"} {
		members["/metadata/"+name] = "v"
	}
	v, r := kept(t, members)
	for name, mode := range disktest.Tree(t, filepath.Dir(v.dir())) {
		if !mode.IsDir() && !fileName.MatchString(strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".json"), ".key")) {
			t.Errorf("a file is called %q", name)
		}
	}
	for pointer := range members {
		wantOpen(t, v, r, pointer, nil)
		if err := v.Destroy(t.Context(), r.Digest, pointer); err != nil {
			t.Error(err)
		}
		wantOpen(t, v, r, pointer, ErrNone)
	}
}

func TestElsewhere(t *testing.T) {
	v := newVault(filepath.Join(t.TempDir(), "data"))
	r := saying(map[string]string{"/prompt": secret, "/context": "c"})
	r.Disclosures = slices.DeleteFunc(r.Disclosures, func(d evidence.Disclosure) bool { return d.Pointer == "/prompt" })
	must.Do(t, v.Keep(t.Context(), r))
	wantOpen(t, v, r, "/prompt", ErrElsewhere)
	wantOpen(t, v, r, "/context", nil)
	must.Do(t, v.Forget(t.Context(), r))
	wantOpen(t, v, r, "/prompt", ErrNone)
	wantOpen(t, v, r, "/context", ErrNone)
}

// TestDamage: a changed value never opens as the stored value.
func TestDamage(t *testing.T) {
	swap := func(t *testing.T, a, b string) {
		t.Helper()
		text, err := os.ReadFile(b)
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, os.WriteFile(a, text, 0o600))
	}
	change := func(t *testing.T, file string, f func([]byte) []byte) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		must.Do(t, os.WriteFile(file, f(text), 0o600))
	}
	cut := func(text []byte) []byte { return text[:len(text)/2] }
	tests := map[string]func(t *testing.T, at, other place){
		"the key of another":       func(t *testing.T, at, other place) { swap(t, at.key, other.key) },
		"the value of another":     func(t *testing.T, at, other place) { swap(t, at.value, other.value) },
		"value and key of another": func(t *testing.T, at, other place) { swap(t, at.value, other.value); swap(t, at.key, other.key) },
		"half a key":               func(t *testing.T, at, _ place) { change(t, at.key, cut) },
		"half a value":             func(t *testing.T, at, _ place) { change(t, at.value, cut) },
		"an empty value":           func(t *testing.T, at, _ place) { change(t, at.value, func([]byte) []byte { return nil }) },
		"a longer key":             func(t *testing.T, at, _ place) { change(t, at.key, func(k []byte) []byte { return append(k, 'x') }) },
		"another bit in the key":   func(t *testing.T, at, _ place) { change(t, at.key, func(k []byte) []byte { k[3] ^= 1; return k }) },
		"a member more in the value": func(t *testing.T, at, _ place) {
			change(t, at.value, func(v []byte) []byte { return append([]byte(`{"x":1,`), v[1:]...) })
		},
		"another's value under this name": func(t *testing.T, at, other place) {
			swap(t, at.key, other.key)
			change(t, at.value, func([]byte) []byte {
				text, err := os.ReadFile(other.value)
				if err != nil {
					t.Fatal(err)
				}
				return bytes.Replace(text, []byte(`"/context"`), []byte(`"/prompt"`), 1)
			})
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			v, r := kept(t, map[string]string{"/prompt": secret, "/context": "other"})
			at := v.place(r.Digest, "/prompt")
			damage(t, at, v.place(r.Digest, "/context"))
			wantOpen(t, v, r, "/prompt", ErrDamaged)
			if _, err := v.Open(t.Context(), r.Digest, "/prompt"); !strings.Contains(err.Error(), v.dir()) {
				t.Errorf("%v does not name the file", err)
			}
			wantOpen(t, v, r, "/context", nil)
			if err := v.Destroy(t.Context(), r.Digest, "/prompt"); err != nil { // a damaged value can be erased, too
				t.Error(err)
			}
			wantOpen(t, v, r, "/prompt", ErrNone)
		})
	}
}

func TestKeyThatOthersCanRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no modes there")
	}
	v, r := kept(t, map[string]string{"/prompt": secret})
	must.Do(t, os.Chmod(v.place(r.Digest, "/prompt").key, 0o644))
	if _, err := v.Open(t.Context(), r.Digest, "/prompt"); err == nil || !strings.Contains(err.Error(), "0644") {
		t.Errorf("%v", err)
	}
}

func TestDestroyWhatIsNotThere(t *testing.T) {
	v := newVault(filepath.Join(t.TempDir(), "data"))
	if err := v.Destroy(t.Context(), evidence.DigestOf(nil), "/prompt"); err != nil {
		t.Error(err)
	}
}

func TestKeepNeverReplaces(t *testing.T) {
	v, r := kept(t, map[string]string{"/prompt": secret})
	if err := v.Keep(t.Context(), r); !errors.Is(err, fs.ErrExist) {
		t.Errorf("%v, want that it is there", err)
	}
	wantOpen(t, v, r, "/prompt", nil)
}

// TestTooMany: one record cannot fill the disk with files.
func TestTooMany(t *testing.T) {
	members := map[string]string{}
	for n := range maxMembers + 1 {
		members[fmt.Sprintf("/metadata/%d", n)] = "v"
	}
	v := newVault(filepath.Join(t.TempDir(), "data"))
	if err := v.Keep(t.Context(), saying(members)); err == nil || !strings.Contains(err.Error(), "257") {
		t.Errorf("%v", err)
	}
	if err := v.List(t.Context(), func(file, _ string) error { t.Error(file); return nil }); err != nil {
		t.Error(err)
	}
}

func TestList(t *testing.T) {
	v, r := kept(t, map[string]string{"/prompt": secret})
	at := v.place(r.Digest, "/prompt")
	for _, stray := range []string{filepath.Join(filepath.Dir(at.key), ".new-123"), filepath.Join(v.dir(), ValuesFolder, "note.json"),
		filepath.Join(v.dir(), ValuesFolder, "zz", filepath.Base(at.value))} {
		must.Do(t, os.MkdirAll(filepath.Dir(stray), 0o700))
		must.Do(t, os.WriteFile(stray, nil, 0o600))
	}
	got := map[string]int{}
	must.Do(t, v.List(t.Context(), func(_, name string) error { got[name]++; return nil }))
	if diff := cmp.Diff(map[string]int{"": 3, Name(r.Digest, "/prompt"): 2}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := newVault(filepath.Join(t.TempDir(), "none")).List(t.Context(), func(file, _ string) error { t.Error(file); return nil }); err != nil {
		t.Error(err)
	}
}

func TestConcurrently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			v, r := newVault(dir), saying(map[string]string{"/metadata/" + strings.Repeat("n", i+1): secret})
			if err := v.Keep(t.Context(), r); err != nil {
				t.Error(err)
				return
			}
			d, err := v.Open(t.Context(), r.Digest, r.Disclosures[0].Pointer)
			if err != nil || string(d.Value) != `"`+secret+`"` {
				t.Errorf("%s, %v", d.Value, err)
			}
			if i%2 == 0 {
				var both sync.WaitGroup
				for range 2 {
					both.Go(func() {
						if err := newVault(dir).Destroy(t.Context(), r.Digest, r.Disclosures[0].Pointer); err != nil {
							t.Error(err)
						}
					})
				}
				both.Wait()
			}
		})
	}
	wg.Wait()
	n := 0
	if err := newVault(dir).List(t.Context(), func(string, string) error { n++; return nil }); err != nil || n != 20 {
		t.Errorf("%d files, %v; want 20", n, err)
	}
}

// FuzzOpen: any content in place of a value opens only as the stored value.
func FuzzOpen(f *testing.F) {
	r := saying(map[string]string{"/prompt": secret})
	v := newVault(filepath.Join(f.TempDir(), "data"))
	must.Do(f, v.Keep(f.Context(), r))
	at := v.place(r.Digest, "/prompt")
	kept, err := os.ReadFile(at.value)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(kept)
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"pointer":"/prompt","record":"` + r.Digest.String() + `"}`))
	f.Add(bytes.Replace(kept, []byte(`"ciphertext"`), []byte(`"CIPHERTEXT"`), 1))
	f.Fuzz(func(t *testing.T, text []byte) {
		must.Do(t, os.WriteFile(at.value, text, 0o600))
		d, err := v.Open(t.Context(), r.Digest, "/prompt")
		switch {
		case err == nil && cmp.Equal(d, r.Disclosures[0]), errors.Is(err, ErrDamaged), errors.Is(err, ErrElsewhere):
		default:
			t.Errorf("%q opens as %v, %v", text, d, err)
		}
	})
}
