package importing

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"jurat/evidence"
)

// Limits. Files may be hostile, and of any length: one value at a time is in memory.
const (
	maxValue   = 64 << 20 // bytes of one conversation, one line, or one value that is passed over
	maxEntries = 100_000  // files in an archive
)

// A File is a file that is imported. It is opened again when it is read after Close, so that many can be at hand.
type File struct {
	Name   string // without its folder
	Format Format
	Size   int64
	SHA256 evidence.Digest

	path   string
	file   *os.File // nil: closed
	header header
	label  string // the name of conversations without a name of their own
	given  string // the same, if the caller gave it
}

// Open opens a file, reads it once for its digest, and finds its format, unless one is given. The errors of a file that no format
// is certain of are ErrUnknown.
func Open(path string, format Format) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &File{Name: filepath.Base(path), Format: format, path: path, file: file}
	if err := f.prepare(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return f, nil
}

func (f *File) prepare() (err error) {
	info, err := f.file.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		return fmt.Errorf("%s: a folder: name the files in it", f.Name)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: not a regular file: it is read more than once; save it first", f.Name)
	}
	f.Size = info.Size()
	f.label = strings.TrimSuffix(f.Name, filepath.Ext(f.Name))
	if f.label == "" {
		f.label = f.Name
	}
	if f.SHA256, err = f.digest(); err != nil {
		return err
	}
	return f.recognise()
}

// Close closes the file, if it is open.
func (f *File) Close() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	return err
}

// open opens the file again, if it is closed, and makes sure that it is the same.
func (f *File) open() (err error) {
	if f.file != nil {
		return nil
	}
	if f.file, err = os.Open(f.path); err != nil {
		return err
	}
	now, err := f.digest()
	if err == nil && now != f.SHA256 {
		err = fmt.Errorf("%s: it was changed since it was looked at: import it again", f.Name)
	}
	if err != nil {
		err = errors.Join(err, f.Close())
	}
	return err
}

// whole reads the file as it was when it was opened. What is appended meanwhile is not of it.
func (f *File) whole() *io.SectionReader { return io.NewSectionReader(f.file, 0, f.Size) }

// text reads the file without a byte order mark.
func (f *File) text() io.Reader {
	head := make([]byte, 3)
	n, _ := io.ReadFull(f.whole(), head)
	if bytes.Equal(head[:n], []byte("\xef\xbb\xbf")) {
		return io.NewSectionReader(f.file, 3, f.Size-3)
	}
	return f.whole()
}

func (f *File) digest() (evidence.Digest, error) {
	h := sha256.New()
	n, err := io.Copy(h, f.whole())
	if err == nil && n != f.Size {
		err = fmt.Errorf("%s: it became shorter while it was read", f.Name)
	}
	return evidence.Digest(h.Sum(nil)), err
}

// unchanged returns an error if the file is no longer what it was.
func (f *File) unchanged() error {
	now, err := f.digest()
	if err == nil && now != f.SHA256 {
		err = fmt.Errorf("%s: it was changed while it was read: what was sealed names a file that had the digest %s", f.Name, f.SHA256)
	}
	return err
}

// A Fault is something wrong in one place of a file. What follows can be read.
type Fault struct {
	File  string
	Place string // a JSON pointer, or a line
	Err   error
}

func (f *Fault) Error() string {
	text := f.Err.Error()
	if strings.HasPrefix(text, f.File+":") {
		return text // the reader names the place itself
	}
	return fmt.Sprintf("%s: %s: %v", f.File, f.Place, f.Err)
}

func (f *Fault) Unwrap() error { return f.Err }

func (f *File) fault(place string, err error) error { return &Fault{f.Name, place, err} }

// broken is an error after which nothing more can be read.
func (f *File) broken(place string, err error) error {
	return fmt.Errorf("%s: %s: %w", f.Name, place, err)
}
