package aep_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io/fs"
	"strings"
	"testing"

	"jurat/aep"
	"jurat/internal/aeptest"
	"jurat/timestamp"
)

// craft writes an archive with archive/zip.
func craft(t *testing.T, write func(w *zip.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	if err := write(w); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func member(w *zip.Writer, h zip.FileHeader, content []byte) error {
	f, err := w.CreateHeader(&h)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return err
}

// rawMember writes a member with these packed bytes and the sizes in h.
func rawMember(w *zip.Writer, h zip.FileHeader, packed []byte) error {
	h.CompressedSize64 = uint64(len(packed))
	f, err := w.CreateRaw(&h)
	if err != nil {
		return err
	}
	_, err = f.Write(packed)
	return err
}

func deflated(t *testing.T, content []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(content); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestArchivesRefused: Open refuses archives that two programs would read differently, that write outside their folder,
// or that exceed a limit. The error names the reason.
func TestArchivesRefused(t *testing.T) {
	plain := zip.FileHeader{Name: "a.txt", Method: zip.Store}
	one := craft(t, func(w *zip.Writer) error { return member(w, plain, []byte("content")) })
	named := func(names ...string) []byte {
		return craft(t, func(w *zip.Writer) error {
			for _, name := range names {
				if err := member(w, zip.FileHeader{Name: name}, nil); err != nil {
					return err
				}
			}
			return nil
		})
	}
	with := func(change func(h *zip.FileHeader)) []byte {
		h := plain
		change(&h)
		return craft(t, func(w *zip.Writer) error { return rawMember(w, h, nil) })
	}
	zeros := make([]byte, 8<<20+1)
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"a folder above", named("../a.txt"), "no folder"},
		{"a folder above, the other way", named(`..\a.txt`), "no folder"},
		{"from the root", named("/etc/passwd"), "no folder"},
		{"a drive", named("C:a.txt"), "no folder"},
		{"a folder", named("folder/"), "no folder"},
		{"in a folder", named("folder/a.txt"), "no folder"},
		{"a hidden file", named(".a"), "want a plain file name"},
		{"no name", named(""), "want a plain file name"},
		{"a name with a line feed", named("a.txt\n"), "want a plain file name"},
		{"a name that turns the line round", named("a\u202etxt"), "want a plain file name"},
		{"a long name", named(strings.Repeat("a", 101)), "want a plain file name"},
		{"twice", named("a.txt", "a.txt"), "it is there twice"},
		{"twice on some machines", named("a.txt", "A.TXT"), "it is there twice"},
		{"too many", named(strings.Split("a"+strings.Join(make([]string, 33), " a"), " ")...), "33 members: at most 32"},
		{"a symbolic link", with(func(h *zip.FileHeader) { h.SetMode(fs.ModeSymlink | 0o777) }), "want a plain file"},
		{"a device", with(func(h *zip.FileHeader) { h.SetMode(fs.ModeDevice | 0o666) }), "want a plain file"},
		{"encrypted", with(func(h *zip.FileHeader) { h.Flags |= 0x1 }), "it is encrypted"},
		{"strongly encrypted", with(func(h *zip.FileHeader) { h.Flags |= 0x40 }), "the flags"},
		{"another compression", with(func(h *zip.FileHeader) { h.Method = 12 }), "compression method 12"},
		{"another name for some", with(func(h *zip.FileHeader) { h.Extra = []byte("\x75\x70\x00\x00") }), "extra field 0x7075"},
		{"another size for some", with(func(h *zip.FileHeader) { h.Extra = []byte("\x01\x00\x00\x00") }), "extra field 0x0001"},
		{"a cut extra field", with(func(h *zip.FileHeader) { h.Extra = []byte("\x55\x54\x05\x00") }), "extra field is cut"},
		{"too large a member", craft(t, func(w *zip.Writer) error { return member(w, zip.FileHeader{Name: "a", Method: zip.Deflate}, zeros) }), "more than 8388608 bytes"},
		{"a member that unpacks to more than its stated size", craft(t, func(w *zip.Writer) error {
			return rawMember(w, zip.FileHeader{Name: "a", Method: zip.Deflate, UncompressedSize64: 7, CRC32: 7}, deflated(t, zeros))
		}), "more than 8388608 bytes"},
		{"too much together", craft(t, func(w *zip.Writer) error {
			for _, name := range []string{"a", "b", "c"} {
				if err := member(w, zip.FileHeader{Name: name, Method: zip.Deflate}, zeros[:6<<20]); err != nil {
					return err
				}
			}
			return nil
		}), "more than 16777216 bytes together"},
		{"too large an archive", append(bytes.Clone(one), make([]byte, 16<<20)...), "at most 16777216 are read"},
		{"too large a directory", craft(t, func(w *zip.Writer) error {
			for _, name := range []string{"a", "b"} {
				if err := member(w, zip.FileHeader{Name: name, Comment: strings.Repeat("c", 40000)}, nil); err != nil {
					return err
				}
			}
			return nil
		}), "a directory of"},
		{"a comment at the end", craft(t, func(w *zip.Writer) error { return w.SetComment("comment") }), "has more data after it"},
		{"something after it", append(bytes.Clone(one), 0), "has more data after it"},
		{"cut", one[:len(one)-1], "it is cut"},
		{"the second of two files", patched(one, len(one)-18, 1), "part of an archive in several files"},
		{"more entries than there are", patched(patched(one, len(one)-14, 2), len(one)-12, 2), "not one entry after the other"},
		{"fewer entries than there are", patched(patched(one, len(one)-14, 0), len(one)-12, 0), "not one entry after the other"},
		{"a long name in the directory", patched(one, bytes.LastIndex(one, []byte("PK\x01\x02"))+29, 1), "not one entry after the other"},
		{"no entry in the directory", patched(one, bytes.LastIndex(one, []byte("PK\x01\x02")), 0), "not one entry after the other"},
		{"a folder by its attributes", patched(one, bytes.LastIndex(one, []byte("PK\x01\x02"))+38, 0x10), "want a plain file"},
		{"nothing", nil, "it is cut"},
		{"something before it", append([]byte("MZ"), one...), "data before, between or after"},
		{"something before it that the offsets allow for", append([]byte("MZ"), craft(t, func(w *zip.Writer) error {
			w.SetOffset(2)
			return member(w, plain, []byte("content"))
		})...), "does not begin where the one before it ends"},
		{"a hidden member at the front", hidden(t, plain), "does not begin where the one before it ends"},
		{"bytes between members and directory", between(one), "4 bytes between"},
		{"two members on one place", overlapping(t), "does not begin where"},
		{"another name in front of the content", bytes.Replace(one, []byte("a.txt"), []byte("b.txt"), 1), "another name there"},
		{"other flags in front of the content", patched(one, 6, 0x2), "contradicts the directory"},
		{"another method in front of the content", patched(one, 8, 0x8), "contradicts the directory"},
		{"another size after the content", patched(one, 30+5+7+8, 6), "contradicts the directory"},
		{"no sizes after the content", patched(one, 30+5+7, 0), "contradicts the directory"},
		{"changed content", bytes.Replace(one, []byte("content"), []byte("CONTENT"), 1), "checksum"},
		{"a length that is wrong throughout", craft(t, func(w *zip.Writer) error {
			return rawMember(w, zip.FileHeader{Name: "a", CRC32: crc32.ChecksumIEEE([]byte("ab")), UncompressedSize64: 1}, []byte("ab"))
		}), "length or checksum"},
		{"something after the compressed bytes", craft(t, func(w *zip.Writer) error {
			return rawMember(w, zip.FileHeader{Name: "a", Method: zip.Deflate, CRC32: crc32.ChecksumIEEE([]byte("ab")), UncompressedSize64: 2},
				append(deflated(t, []byte("ab")), 0))
		}), "after the end of its compressed bytes"},
		{"no compressed bytes", craft(t, func(w *zip.Writer) error {
			return rawMember(w, zip.FileHeader{Name: "a", Method: zip.Deflate}, []byte{0xff})
		}), "flate"},
	}
	for _, tt := range tests {
		if _, err := aep.Open(tt.file); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
}

func patched(file []byte, at int, value byte) []byte {
	file = bytes.Clone(file)
	file[at] = value
	return file
}

// hidden returns an archive whose directory leaves out the first member. A program that reads from the front finds it.
func hidden(t *testing.T, h zip.FileHeader) []byte {
	front := craft(t, func(w *zip.Writer) error { return member(w, h, []byte("what the stream says")) })
	front = front[:bytes.Index(front, []byte("PK\x01\x02"))]
	back := craft(t, func(w *zip.Writer) error {
		w.SetOffset(int64(len(front)))
		return member(w, h, []byte("what the directory says"))
	})
	return append(front, back...)
}

// between puts bytes before the directory, and corrects the offset of the directory.
func between(file []byte) []byte {
	directory := bytes.Index(file, []byte("PK\x01\x02"))
	file = append(append(bytes.Clone(file[:directory]), "data"...), file[directory:]...)
	binary.LittleEndian.PutUint32(file[len(file)-6:], uint32(directory+4))
	return file
}

// overlapping returns an archive with two names for one member.
func overlapping(t *testing.T) []byte {
	file := craft(t, func(w *zip.Writer) error {
		if err := member(w, zip.FileHeader{Name: "a"}, []byte("1")); err != nil {
			return err
		}
		return member(w, zip.FileHeader{Name: "b"}, []byte("1"))
	})
	second := bytes.LastIndex(file, []byte("PK\x01\x02"))
	binary.LittleEndian.PutUint32(file[second+42:], 0) // the offset of its local header
	return file
}

// TestOtherWriters: members may be stored or compressed, with their sizes before or after the data.
func TestOtherWriters(t *testing.T) {
	m := aeptest.New(t, timestamp.NewMock())
	stored := craft(t, func(w *zip.Writer) error {
		for name, content := range m {
			h := zip.FileHeader{Name: name, CRC32: crc32.ChecksumIEEE(content), UncompressedSize64: uint64(len(content)), Extra: []byte("\x55\x54\x05\x00\x01abcd")}
			h.SetMode(0o644)
			if err := rawMember(w, h, content); err != nil {
				return err
			}
		}
		return nil
	})
	p, err := aep.Open(stored)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CheckSignature(); err != nil {
		t.Error(err)
	}
}

// sameAsZip compares what Open found with what package archive/zip finds: an archive that Open accepts has one content.
func sameAsZip(t *testing.T, file []byte, p *aep.Package) {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatalf("Open accepts an archive that package zip refuses: %v", err)
	}
	for name, got := range map[string][]byte{"response.txt": p.Response, "canonical.bin": p.Canonical, "metadata.json": p.Metadata} {
		content, err := fs.ReadFile(r, name)
		if errors.Is(err, fs.ErrNotExist) && len(got) == 0 {
			continue
		}
		if err != nil || !bytes.Equal(content, got) {
			t.Errorf("%s is %q, and %q by package zip: %v", name, got, content, err)
		}
	}
	for _, f := range r.File {
		if !f.Mode().IsRegular() {
			t.Errorf("%s is no plain file by package zip: %v", f.Name, f.Mode())
		}
	}
}

// FuzzOpen: Open never panics and never reads more than its limits, and what it accepts other readers read alike. A valid signature has a key and bytes.
func FuzzOpen(f *testing.F) {
	m := aeptest.New(f, timestamp.NewMock())
	f.Add(m.Zip(f))
	m.SignSecond(f, []byte(aeptest.Canonical))
	m["further.txt"] = []byte("text")
	f.Add(m.Zip(f))
	f.Fuzz(func(t *testing.T, file []byte) {
		p, err := aep.Open(file)
		if err != nil {
			return
		}
		sameAsZip(t, file, p)
		if !aep.Is(file) {
			t.Error("Open accepts it, but Is does not recognise it")
		}
		if total := len(p.Response) + len(p.Canonical) + len(p.Metadata); total > 16<<20 {
			t.Errorf("%d bytes", total)
		}
		_, err = p.CheckSignature()
		if err == nil && (len(p.Signature) == 0 || p.PublicKey == nil) {
			t.Error("CheckSignature accepted a package without a key or a signature")
		}
		p.Binding()
		if p.CheckSecond() == nil && (p.Second == nil || p.Second.Readable() != nil) {
			t.Error("CheckSecond accepted a second signature that is missing or unreadable")
		}
	})
}

// FuzzMembers writes a correct archive and fuzzes the contents of its members.
func FuzzMembers(f *testing.F) {
	m := aeptest.New(f, timestamp.NewMock())
	m.SignSecond(f, []byte(aeptest.Canonical))
	f.Add(m["response.txt"], m["canonical.bin"], m["metadata.json"], m["signature.sig"], m["public_key.pem"], m["pqc_public_key.pem"])
	f.Fuzz(func(t *testing.T, response, canonical, metadata, signature, key, second []byte) {
		m := aeptest.Members{"response.txt": response, "canonical.bin": canonical, "metadata.json": metadata, "signature.sig": signature,
			"public_key.pem": key, "timestamp.tsr": signature, "hash.sha256": m["hash.sha256"], "signature_pqc.sig": signature, "pqc_public_key.pem": second}
		p, err := aep.Open(m.Zip(t))
		if err != nil {
			return
		}
		if _, err := p.CheckSignature(); err == nil && string(canonical) != aeptest.Canonical {
			t.Errorf("the key signed another text, but %q is accepted", canonical)
		}
		if p.Binding() == aep.BindsText && len(bytes.TrimSpace(canonical)) > len(bytes.TrimSpace(response)) {
			t.Errorf("%q is more than %q", canonical, response)
		}
		if p.CheckSecond() == nil && string(canonical) != aeptest.Canonical {
			t.Error("CheckSecond accepted a text that the key did not sign")
		}
	})
}
