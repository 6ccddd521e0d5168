package archive

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/evidence"
	"jurat/internal/ledger"
	"jurat/internal/ledger/storage"
)

// maxOpen is how many files a Folder keeps open. Each keeps its dictionary in memory.
const maxOpen = 16

// A Folder holds a log's archives. It is a storage.Archive, and safe for concurrent use.
type Folder struct {
	dir string

	mu   sync.Mutex // guards open, and members of its elements
	open []*shared  // the most recently used file is last
}

var _ storage.Archive = (*Folder)(nil)

// NewFolder returns the archives in a folder. The folder need not exist.
func NewFolder(dir string) *Folder { return &Folder{dir: dir} }

// Path returns the path of a file in the folder.
func (d *Folder) Path(file string) string { return filepath.Join(d.dir, file) }

// Name returns the name of a file: it tells the range, and differs for different contents.
func Name(from, to int64, digest evidence.Digest) string {
	return fmt.Sprintf("%012d-%012d-%x%s", from, to, digest[:6], Extension)
}

var named = regexp.MustCompile(`^[0-9]{12,19}-[0-9]{12,19}-[0-9a-f]{12}\` + Extension + `$`)

// List returns the names of all files that have names of archives, in log order. It returns an error if the folder
// cannot be read. A missing folder is an empty one.
func (d *Folder) List() ([]string, error) {
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if named.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// draft is the prefix of the names of unfinished files.
const draft = ".new-"

// Drafts returns the names of unfinished files that were last written before a time: the run that wrote them was
// interrupted.
func (d *Folder) Drafts(before time.Time) (names []string, err error) {
	entries, err := os.ReadDir(d.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && e.Type().IsRegular() && strings.HasPrefix(e.Name(), draft) && info.ModTime().Before(before) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// shared is an open file that several goroutines may be reading.
type shared struct {
	*File
	name  string
	disk  *os.File
	users int  // guarded by Folder.mu
	gone  bool // guarded by Folder.mu: not in the list any more; its last user closes it
}

func (s *shared) close() {
	s.Close()
	s.disk.Close() // it was only read
}

// use calls f with the file that the log's database names. Errors of a missing or changed file wrap
// ledger.ErrArchive.
func (d *Folder) use(in storage.Archived, f func(*File) error) error {
	s, err := d.acquire(in)
	if err != nil {
		return fmt.Errorf("archive %s: %w", d.Path(in.File), err)
	}
	defer d.release(s)
	if err := f(s.File); err != nil {
		return fmt.Errorf("archive %s: %w", d.Path(in.File), err)
	}
	return nil
}

func (d *Folder) acquire(in storage.Archived) (*shared, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	i := slices.IndexFunc(d.open, func(s *shared) bool { return s.name == in.File && s.digest == in.Digest })
	if i >= 0 {
		s := d.open[i]
		d.open = append(slices.Delete(d.open, i, i+1), s)
		s.users++
		return s, nil
	}
	disk, file, err := openFile(d.Path(in.File))
	if err == nil {
		err = file.is(in)
		if err != nil {
			file.Close()
			disk.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w (it holds the records %d to %d; restore it from a copy)", err, in.From, in.To-1)
	}
	if i := slices.IndexFunc(d.open, func(s *shared) bool { return s.table.From == in.From }); i >= 0 { // an earlier file of this range
		d.drop(i)
	}
	s := &shared{File: file, name: in.File, disk: disk, users: 1}
	if d.open = append(d.open, s); len(d.open) > maxOpen {
		d.drop(0)
	}
	return s, nil
}

// drop removes a file from the list. The caller holds d.mu.
func (d *Folder) drop(i int) {
	s := d.open[i]
	d.open = slices.Delete(d.open, i, i+1)
	if s.gone = true; s.users == 0 {
		s.close()
	}
}

func (d *Folder) release(s *shared) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if s.users--; s.gone && s.users == 0 {
		s.close()
	}
}

// Close closes all open files. A later read opens them again.
func (d *Folder) Close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.open) > 0 {
		d.drop(0)
	}
}

// openFile opens a file by its path. The caller closes both results.
func openFile(path string) (*os.File, *File, error) {
	disk, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = fs.ErrNotExist // the caller's error contains the path
		}
		return nil, nil, fmt.Errorf("%w: %w", ledger.ErrArchive, err)
	}
	info, err := disk.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = damage(errors.New("it is not a regular file"), "file")
	}
	var file *File
	if err == nil {
		file, err = Open(disk, info.Size())
	}
	if err != nil {
		return nil, nil, errors.Join(err, disk.Close())
	}
	return disk, file, nil
}

// is returns an error unless the file is the one that the log's database names.
func (f *File) is(in storage.Archived) error {
	if f.digest != in.Digest {
		return damage(fmt.Errorf("its digest is %v, but the log's database says %v: it is another file", f.digest, in.Digest), "file")
	}
	if f.table.From != in.From || f.table.To != in.To {
		return damage(fmt.Errorf("it holds the records %d to %d, but the log's database says %d to %d", f.table.From, f.table.To-1, in.From, in.To-1), "file")
	}
	return nil
}

// Fill implements storage.Archive. It returns ledger.ErrArchive, wrapped, if the file is missing, was changed or does
// not hold the rows.
func (d *Folder) Fill(ctx context.Context, in storage.Archived, rows []*storage.Row) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return d.use(in, func(f *File) error {
		for _, row := range rows {
			if err := f.fill(row); err != nil {
				return fmt.Errorf("record %s: %w", row.RecordID, err)
			}
		}
		return nil
	})
}

func (f *File) fill(row *storage.Row) error {
	had, _, err := f.Row(row.Index)
	if err != nil {
		return err
	}
	if had.Entry != nil {
		row.Entry, row.ExpiredBy = slices.Clone(had.Entry), had.ExpiredBy
		return nil
	}
	row.Payload = slices.Clone(had.Payload)
	for _, s := range had.Signatures {
		row.Signatures = append(row.Signatures, slices.Clone(s))
	}
	row.Timestamps = storage.MergeTimestamps(had.Timestamps, row.Timestamps)
	for i := range row.Timestamps {
		row.Timestamps[i].Token = slices.Clone(row.Timestamps[i].Token)
	}
	return nil
}

// With opens the file that the log's database names, and calls f with it. Errors of a missing or changed file wrap
// ledger.ErrArchive.
func (d *Folder) With(in storage.Archived, f func(*File) error) error { return d.use(in, f) }

// OpenPath opens a file at any path, and calls f with it. It returns ledger.ErrArchive, wrapped, if the file cannot
// be opened, a *Damage if it is wrong, and the errors of f.
func OpenPath(path string, f func(*File) error) (err error) {
	disk, file, err := openFile(path)
	if err != nil {
		return fmt.Errorf("archive %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, disk.Close()) }()
	defer file.Close()
	return f(file)
}

// Is reports whether a file claims to be an archive, by its name or by its first bytes. It does not read from pipes:
// their bytes can be read only once, and an archive must be a regular file. Its errors are those of reading the file.
func Is(path string) (bool, error) {
	if filepath.Ext(path) == Extension {
		return true, nil
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	begin := make([]byte, len(magic))
	n, err := f.ReadAt(begin, 0) // keeps the file offset, which /dev/stdin may share with the next reader
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return bytes.Equal(begin[:n], magic), nil
}

// Create writes a file into the folder, durably, and reads all of it back. When it returns, the file is complete and
// holds what the log holds. It overwrites a file with the same content that a crash left. It returns an error if the
// file cannot be written, if the source cannot be read, and if what was read back differs.
func (d *Folder) Create(ctx context.Context, s Source) (storage.Archived, error) {
	none := storage.Archived{}
	if err := os.MkdirAll(d.dir, 0o700); err != nil {
		return none, err
	}
	file, err := os.CreateTemp(d.dir, draft+"*") // mode 0600
	if err != nil {
		return none, err
	}
	defer os.Remove(file.Name()) // fails once the file has been renamed
	w := bufio.NewWriterSize(file, 1<<20)
	digest, err := Write(ctx, w, s)
	// A crash until here leaves a hidden unfinished file.
	if err = errors.Join(err, w.Flush(), file.Sync(), file.Close()); err != nil {
		return none, err
	}
	in := storage.Archived{From: s.From, To: s.To, File: Name(s.From, s.To, digest), Digest: digest}
	if err := s.compare(ctx, file.Name(), in); err != nil {
		return none, fmt.Errorf("reading the written file back: %w", err)
	}
	// A crash after this leaves a file that no database names. The next run makes it again, byte for byte.
	if err := os.Rename(file.Name(), d.Path(in.File)); err != nil {
		return none, err
	}
	return in, syncFolders(d.dir)
}

// compare opens a file as a reader would, and compares every record with the log's row.
func (s *Source) compare(ctx context.Context, path string, in storage.Archived) error {
	return OpenPath(path, func(f *File) error {
		if err := f.is(in); err != nil {
			return err
		}
		indexes, roots := f.Roots()
		stored, err := s.Hashes.ReadHashes(indexes)
		if err != nil {
			return err
		}
		if !slices.Equal(stored, roots) {
			return damage(errors.New("its roots differ from the log's"), "table of contents")
		}
		var first error
		_, err = f.Check(ctx, Examination{
			Each: func(row *storage.Row, _ *evidence.Record) error {
				logged, err := s.Rows(ctx, row.Index, 1)
				if err == nil && len(logged) != 1 {
					err = ledger.ErrNotFound
				}
				if err == nil && !sameRow(row, &logged[0]) {
					err = errors.New("it differs from the log's row")
				}
				return err
			},
			Found: func(d *Damage) {
				if first == nil {
					first = d
				}
			},
		})
		return errors.Join(err, first)
	})
}

// sameRow reports whether a row of a file equals the log's, which may have more time stamps by now.
func sameRow(file, log *storage.Row) bool {
	then := *log
	then.Timestamps = then.Timestamps[:min(len(file.Timestamps), len(then.Timestamps))]
	return bytes.Equal(appendRow(nil, file), appendRow(nil, &then))
}

// syncFolders syncs a folder and its parent, so that a new name in it is durable.
func syncFolders(dir string) error {
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		f, err := os.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Adopt finds a file that holds exactly this range and passes the comparison of Create: an interrupted run has left
// it.
func (d *Folder) Adopt(ctx context.Context, s Source) (storage.Archived, bool, error) {
	names, err := d.List()
	if err != nil {
		return storage.Archived{}, false, err
	}
	prefix := fmt.Sprintf("%012d-%012d-", s.From, s.To)
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		var in storage.Archived
		err := OpenPath(d.Path(name), func(f *File) error {
			in = storage.Archived{From: f.table.From, To: f.table.To, File: name, Digest: f.digest}
			return nil
		})
		if err == nil && in.From == s.From && in.To == s.To {
			if err = s.compare(ctx, d.Path(name), in); err == nil {
				return in, true, nil
			}
		}
		if ctx.Err() != nil {
			return in, false, ctx.Err()
		}
	}
	return storage.Archived{}, false, nil
}

// Remove removes a file, durably. If the file is missing, it returns nil. Its errors are those of the file system.
func (d *Folder) Remove(in storage.Archived) error {
	return d.takeAway(in.File, os.Remove)
}

// aside is the folder for files that the log does not seem to need.
const aside = "aside"

// Aside is the folder into which SetAside moves files.
func (d *Folder) Aside() string { return filepath.Join(d.dir, aside) }

// SetAside moves a file into the folder Aside, durably. jurat does not read that folder. If the file is missing, it
// returns nil. Its errors are those of the file system.
func (d *Folder) SetAside(name string) error {
	if err := os.MkdirAll(d.Aside(), 0o700); err != nil {
		return err
	}
	return d.takeAway(name, func(path string) error {
		if err := os.Rename(path, filepath.Join(d.Aside(), name)); err != nil {
			return err
		}
		return syncFolders(d.Aside())
	})
}

func (d *Folder) takeAway(name string, take func(path string) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if i := slices.IndexFunc(d.open, func(s *shared) bool { return s.name == name }); i >= 0 {
		d.drop(i)
	}
	if err := take(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return syncFolders(d.dir)
}
