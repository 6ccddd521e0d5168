package filestore_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jurat/internal/filestore"
)

const headOfEntry = 11 // bytes before a name

// packWith returns the pack of a folder that has some bytes, its content, and where in it the bytes are.
func packWith(t *testing.T, dir string, text []byte) (file string, content []byte, at int) {
	t.Helper()
	for _, file := range packsIn(t, dir, ".pack") {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if at := bytes.Index(content, text); at >= 0 {
			return file, content, at
		}
	}
	t.Fatalf("no pack has %q", text)
	return "", nil, 0
}

func change(t *testing.T, file string, content []byte) {
	t.Helper()
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantDamage checks that all pairs but one can be read, that the other is said to be damaged, and that the damage is named with its place.
func wantDamage(t *testing.T, f *filestore.Folder, file string, from, to int64, damaged int, whole ...int) {
	t.Helper()
	wantPairs(t, f, whole...)
	name := pair(damaged)[0].Name
	if got, err := f.Read(t.Context(), name); !errors.Is(err, filestore.ErrDamaged) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is damaged: %q, %v", got, err)
	}
	var listed []string
	err := f.List(t.Context(), "a", func(name string) error { listed = append(listed, name); return nil })
	var d *filestore.Damage
	if !errors.As(err, &d) || *d != (filestore.Damage{Pack: file, From: from, To: to}) {
		t.Errorf("listing says %v, want bytes %d to %d of %s", err, from, to, file)
	}
	if len(listed) != len(whole) || slices.Contains(listed, name) {
		t.Errorf("listed %v", listed)
	}
}

// TestDamagedEntry changes each byte before a content. What is behind it in the pack can be read, is not hidden by an index, and more can be added.
func TestDamagedEntry(t *testing.T) {
	for _, full := range []bool{false, true} { // then the pack has an index that was made before
		dir := t.TempDir()
		f := packed(t, dir)
		if full {
			f.SmallPacks(160)
		}
		create(t, f, 0, 1, 2, 3, 4)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		file, content, name := packWith(t, dir, []byte(pair(1)[0].Name))
		_, _, next := packWith(t, dir, []byte(pair(2)[0].Name))
		if _, err := os.Stat(file[:len(file)-len("pack")] + "index"); (err == nil) != full {
			t.Fatal(err)
		}
		from, to := name-headOfEntry, next-headOfEntry
		for at := from; at < name+len(pair(1)[0].Name); at++ {
			damaged := bytes.Clone(content)
			damaged[at] ^= 0x40
			change(t, file, damaged)
			if at == from+4 { // whether it was removed: eight bits say it
				wantPairs(t, packed(t, dir), 0, 1, 2, 3, 4)
				continue
			}
			wantDamage(t, packed(t, dir), file, int64(from), int64(to), 1, 0, 2, 3, 4)
		}
		damaged := bytes.Clone(content)
		clear(damaged[from:to]) // all of it
		change(t, file, damaged)
		wantDamage(t, packed(t, dir), file, int64(from), int64(to), 1, 0, 2, 3, 4)

		other := packed(t, dir)
		create(t, other, 5)
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		wantDamage(t, packed(t, dir), file, int64(from), int64(to), 1, 0, 2, 3, 4, 5)
	}
}

// TestDamagedPackGetsNoIndex: an index of what can be read would say that the rest never was.
func TestDamagedPackGetsNoIndex(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1, 2)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file, content, name := packWith(t, dir, []byte(pair(1)[0].Name))
	content[name]++
	change(t, file, content)
	other := packed(t, dir)
	create(t, other, 3) // it would continue the pack
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	for _, index := range packsIn(t, dir, ".index") {
		if filepath.Dir(index) == filepath.Dir(file) {
			t.Error(index)
		}
	}
	if got, _, _ := packWith(t, dir, []byte(pair(3)[0].Name)); got == file {
		t.Error("a damaged pack is continued")
	}
	if _, err := packed(t, dir).Read(t.Context(), pair(1)[0].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Error(err)
	}
}

// TestRemovedBesideDamage: what is found is removed, and the damage of another file does not stand in the way. What may be in the damaged bytes
// a second time is not said to be removed.
func TestRemovedBesideDamage(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1, 2, 1)
	file, content, name := packWith(t, dir, []byte(pair(1)[1].Name))
	content[name-1]++ // a length
	change(t, file, content)
	for _, n := range []int{0, 2} {
		key := pair(n)[1].Name
		if err := packed(t, dir).Remove(t.Context(), key); err != nil {
			t.Error(err)
		}
		if _, err := packed(t, dir).Read(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	wantPairs(t, packed(t, dir), 1)
	if err := packed(t, dir).Remove(t.Context(), pair(1)[1].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("a key is said to be removed that stands in the damaged bytes, too: %v", err)
	}
	if _, err := packed(t, dir).Read(t.Context(), pair(7)[1].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("what is nowhere may be what is damaged: %v", err)
	}
}

// TestDamagedPackHead changes each byte of what is before the first file: the id stands in the file's name, too.
func TestDamagedPackHead(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1)
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	file, content, _ := packWith(t, dir, []byte(pair(0)[0].Name))
	for at := range 32 {
		damaged := bytes.Clone(content)
		damaged[at] ^= 1
		change(t, file, damaged)
		wantDamage(t, packed(t, dir), file, 0, 32, 7, 0, 1)
	}
	change(t, file, content)
	renamed := filepath.Join(filepath.Dir(file), "copy.pack")
	if err := os.Rename(file, renamed); err != nil {
		t.Fatal(err)
	}
	wantPairs(t, packed(t, dir), 0, 1)
	if got := names(t, packed(t, dir)); len(got) != 4 {
		t.Error(got)
	}
}

// TestContentIsNoEntry: a content that has whole entries of other packs in it is not read as one, even if the head before it is damaged.
func TestContentIsNoEntry(t *testing.T) {
	foreign := t.TempDir()
	create(t, packed(t, foreign), 8, 9)
	_, entries, _ := packWith(t, foreign, []byte(pair(8)[0].Name))
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0)
	if err := f.CreateAll(t.Context(), []filestore.File{{Name: pair(1)[0].Name, Content: entries}}); err != nil {
		t.Fatal(err)
	}
	create(t, f, 2)
	file, content, name := packWith(t, dir, []byte(pair(1)[0].Name))
	_, _, next := packWith(t, dir, []byte(pair(2)[0].Name))
	content[name-headOfEntry]++
	change(t, file, content)
	wantDamage(t, packed(t, dir), file, int64(name-headOfEntry), int64(next-headOfEntry), 1, 0, 2)
	if got, err := packed(t, dir).Read(t.Context(), pair(8)[0].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("what stands in a content: %q, %v", got, err)
	}
}

// TestDamageFarAway finds what follows a damage that is longer than what is read at once, wherever it begins.
func TestDamageFarAway(t *testing.T) {
	for _, more := range []int{0, 1, 2, 3, 5, 11, 12, 13, 14, 300} {
		dir := t.TempDir()
		f := packed(t, dir)
		create(t, f, 0)
		long := filestore.File{Name: "a/long", Content: bytes.Repeat([]byte("a"), 256<<10+more-len("a/long")-headOfEntry)}
		if err := f.CreateAll(t.Context(), []filestore.File{long}); err != nil {
			t.Fatal(err)
		}
		create(t, f, 2)
		file, content, name := packWith(t, dir, []byte("a/long"))
		content[name]++
		change(t, file, content)
		_, _, next := packWith(t, dir, []byte(pair(2)[0].Name))
		wantDamage(t, packed(t, dir), file, int64(name-headOfEntry), int64(next-headOfEntry), 1, 0, 2)
	}
}
