package filestore_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"jurat/internal/filestore"
	"jurat/internal/must"
)

const headOfEntry = 11 // bytes before a name

// packWith returns the pack of a folder that has some bytes, its content, and where in it the bytes are.
func packWith(t *testing.T, dir string, text []byte) (file string, content []byte, at int) {
	t.Helper()
	for _, file := range packsIn(t, dir, ".pack") {
		content := must.Get(os.ReadFile(file))(t)
		if at := bytes.Index(content, text); at >= 0 {
			return file, content, at
		}
	}
	t.Fatalf("no pack has %q", text)
	return "", nil, 0
}

func change(t *testing.T, file string, content []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(file, content, 0o600))
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
		must.Do(t, f.Close())
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
		must.Do(t, other.Close())
		wantDamage(t, packed(t, dir), file, int64(from), int64(to), 1, 0, 2, 3, 4, 5)
	}
}

// TestDamagedPackGetsNoIndex: an index of what can be read would say that the rest never was.
func TestDamagedPackGetsNoIndex(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1, 2)
	must.Do(t, f.Close())
	file, content, name := packWith(t, dir, []byte(pair(1)[0].Name))
	content[name]++
	change(t, file, content)
	other := packed(t, dir)
	create(t, other, 3) // it would continue the pack
	must.Do(t, other.Close())
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
	must.Do(t, f.Close())
	file, content, _ := packWith(t, dir, []byte(pair(0)[0].Name))
	for at := range 32 {
		damaged := bytes.Clone(content)
		damaged[at] ^= 1
		change(t, file, damaged)
		wantDamage(t, packed(t, dir), file, 0, 32, 7, 0, 1)
	}
	change(t, file, content)
	renamed := filepath.Join(filepath.Dir(file), "copy.pack")
	must.Do(t, os.Rename(file, renamed))
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
	must.Do(t, f.CreateAll(t.Context(), []filestore.File{{Name: pair(1)[0].Name, Content: entries}}))
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
		must.Do(t, f.CreateAll(t.Context(), []filestore.File{long}))
		create(t, f, 2)
		file, content, name := packWith(t, dir, []byte("a/long"))
		content[name]++
		change(t, file, content)
		_, _, next := packWith(t, dir, []byte(pair(2)[0].Name))
		wantDamage(t, packed(t, dir), file, int64(name-headOfEntry), int64(next-headOfEntry), 1, 0, 2)
	}
}

// TestDamagedIndex changes each byte of an index, cuts it off at each length, empties it, puts another's and one of the earlier form in its place. No file is said not to be
// there: the pack is read, and who adds next writes the index anew.
func TestDamagedIndex(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	f.SmallPacks(1)
	create(t, f, 0, 1, 2)
	must.Do(t, f.Close())
	list := packsIn(t, dir, ".index")
	if len(list) < 4 {
		t.Fatal(list)
	}
	whole := map[string][]byte{}
	for _, file := range list {
		content := must.Get(os.ReadFile(file))(t)
		whole[file] = content
	}
	damages := map[string]func(b []byte) []byte{
		"earlier form": func(b []byte) []byte { return b[36 : len(b)-4] },
		"longer":       func(b []byte) []byte { return append(bytes.Clone(b), 0) },
		"another's": func(b []byte) []byte {
			for _, other := range whole {
				if len(other) == len(b) && !bytes.Equal(other, b) {
					return other
				}
			}
			t.Fatal("no other index of this length")
			return nil
		},
	}
	for n := range whole[list[0]] {
		damages[fmt.Sprint("byte ", n)] = func(b []byte) []byte { b = bytes.Clone(b); b[n] ^= 1; return b }
		if n%5 == 0 {
			damages[fmt.Sprint("cut at ", n)] = func(b []byte) []byte { return b[:n] }
		}
	}
	for how, damage := range damages {
		for file, content := range whole {
			change(t, file, damage(content))
		}
		g := packed(t, dir)
		wantPairs(t, g, 0, 1, 2)
		if t.Failed() {
			t.Fatal(how)
		}
	}
	for file, content := range whole {
		change(t, file, damages["byte 50"](content)) // in a block: who meets it has the index written anew
	}
	g := packed(t, dir)
	for _, name := range []string{"a/missing", "keys/missing"} {
		if _, err := g.Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	name := pair(2)[1].Name
	if err := g.Remove(t.Context(), name); err != nil {
		t.Error(err)
	}
	if _, err := packed(t, dir).Read(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	create(t, g, 6)
	for file, content := range whole {
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s is not written anew: %v", file, err)
		}
	}
}

// TestChangedBlockOfAnIndex changes one byte in the middle of an index of several blocks: this process has it written anew when it begins a pack next, as it has found out.
func TestChangedBlockOfAnIndex(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	f.SmallPacks(1)
	var files []filestore.File
	for n := range 1000 {
		files = append(files, filestore.File{Name: fmt.Sprintf("a/%d", n), Content: fmt.Append(nil, n)})
	}
	must.Do(t, f.CreateAll(t.Context(), files))
	must.Do(t, f.Close())
	index := packsIn(t, dir, ".index")[0]
	content := must.Get(os.ReadFile(index))(t)
	wantAll := func(f *filestore.Folder) {
		t.Helper()
		for _, file := range files {
			if got, err := f.Read(t.Context(), file.Name); err != nil || !bytes.Equal(got, file.Content) {
				t.Fatalf("%s: %q, %v", file.Name, got, err)
			}
		}
		if _, err := f.Read(t.Context(), "a/1000"); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
	wantAll(packed(t, dir))
	damaged := bytes.Clone(content)
	damaged[len(damaged)/2] ^= 0x10
	change(t, index, damaged)
	g := packed(t, dir)
	wantAll(g)
	create(t, g, 0)
	if got, err := os.ReadFile(index); err != nil || !bytes.Equal(got, content) {
		t.Errorf("it is not written anew: %v", err)
	}
	wantAll(g)
}

// TestPackCutBehindItsIndex: the index knows what a pack has lost.
func TestPackCutBehindItsIndex(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	f.SmallPacks(160)
	create(t, f, 0, 1, 2, 3, 4)
	must.Do(t, f.Close())
	file, _, name := packWith(t, dir, []byte(pair(1)[0].Name))
	must.Do(t, os.Truncate(file, int64(name)))
	if _, err := packed(t, dir).Read(t.Context(), pair(1)[0].Name); !errors.Is(err, filestore.ErrDamaged) {
		t.Errorf("%v, want ErrDamaged", err)
	}
}

// TestDamagedLastEntry changes each byte before the last content of a pack without an index. Its file is said to be damaged, and neither an index nor more files hide it. If
// nobody can tell it from what a crash left, there is at least no index.
func TestDamagedLastEntry(t *testing.T) {
	dir := t.TempDir()
	f := packed(t, dir)
	create(t, f, 0, 1)
	secret := bytes.Repeat([]byte{0x80, 0xff, 7}, 11) // as what is encrypted
	last := filestore.File{Name: pair(2)[0].Name, Content: secret}
	must.Do(t, f.CreateAll(t.Context(), []filestore.File{last}))
	must.Do(t, f.Close())
	file, content, name := packWith(t, dir, []byte(last.Name))
	from := name - headOfEntry
	index := file[:len(file)-len("pack")] + "index"
	check := func(how string, text []byte, clear bool) {
		t.Helper()
		to := copyOf(t, dir)
		in := func(file string) string {
			name := must.Get(filepath.Rel(dir, file))(t)
			return filepath.Join(to, name)
		}
		change(t, in(file), text)
		for range 2 {
			g := packed(t, to)
			if clear {
				wantDamage(t, g, in(file), int64(from), int64(len(text)), 2, 0, 1)
			} else if _, err := g.Read(t.Context(), last.Name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", how, err)
			}
			if _, err := os.Stat(in(index)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: a pack that may be damaged has an index: %v", how, err)
			}
			other := filestore.File{Name: "keys/other", Content: nil}
			must.Do(t, g.CreateAll(t.Context(), []filestore.File{other, {Name: "a/other", Content: nil}}))
			if err := g.Remove(t.Context(), "a/other"); err != nil {
				t.Errorf("%s: %v", how, err)
			}
			must.Do(t, g.Close())
		}
		if t.Failed() {
			t.Fatal(how)
		}
	}
	for at := from; at < name+len(last.Name); at++ {
		if at != from+4 { // whether it was removed: eight bits say it
			damaged := bytes.Clone(content)
			damaged[at] ^= 1 << (at % 8)
			check(fmt.Sprintf("byte %d", at-from), damaged, true)
		}
	}
	damaged := bytes.Clone(content)
	copy(damaged[from:name], bytes.Repeat([]byte{0xa5}, headOfEntry))
	check("all before the name", damaged, true)
	damaged = bytes.Clone(content)
	clear(damaged[from:])
	check("zeros", damaged, false)
	check("the name is cut off", content[:name+len(last.Name)-1], false)
}
