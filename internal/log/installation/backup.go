package installation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/erasure"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/postgres"
	"jurat/internal/log/stamping"
	"jurat/internal/log/witness"
)

// BackupFormat is the format and version of backups.
const BackupFormat = sqlite.BackupFormat

// A BackupManifest describes a backup, and is in it.
type BackupManifest struct {
	Format    string `json:"format"`
	Made      string `json:"made"`       // RFC 3339, UTC
	Log       string `json:"log"`        // the log's origin
	ApartKeys bool   `json:"apart_keys"` // whether the backup has the keys to values that are sealed apart

	Size int64  `json:"size"` // the number of records
	Root string `json:"root"` // the RFC 6962 root hash of the records, base64
}

// A BackupOrder says where to make a backup, and whether to include the keys to values that are sealed apart.
type BackupOrder struct {
	To        string // a file that does not exist
	ApartKeys bool   // copy these keys, too: with them, a reader of the copy can read values that were erased since
	Progress  func(done, total int64)
}

// standing lists the parts that are copied after the log, so that the copy has every key that it names, and must be the same as before it. Keys
// that were added meanwhile do no harm. Settings are among the parts, as they decide what is sealed.
var standing = []string{LogKeyFile, keys.Folder, AuthorityFolder, stamping.Folder, witness.SettingsFile, erasure.SettingsFolder}

// growing lists the parts that only grow. They are copied after the log, since their files exist before the record that needs them.
var growing = []string{CasesFolder, erasure.IntentsFolder}

// maxBackups is how often a copy is tried if keys change meanwhile, which is rare.
const maxBackups = 5

var errChanged = errors.New("keys or settings were changed while the log was copied")

// MakeBackup copies an installation that may be in use, whole or not at all, into one file. It refuses a file that exists, and keys that keep
// changing. The file has the same form for a data folder and for a database, so one of a database can be restored to a folder, and the other way round.
func MakeBackup(ctx context.Context, c Config, o BackupOrder) (m *BackupManifest, err error) {
	defer fault.While(&err, "backing up %s", c.Dir)
	at, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.leave()) }()
	log, err := LogVerifier(ctx, at.Files)
	if err != nil {
		return nil, err
	}
	if o.To, err = filepath.Abs(o.To); err != nil {
		return nil, err
	}
	for range maxBackups {
		m = &BackupManifest{Format: BackupFormat, Log: log.Name(), ApartKeys: o.ApartKeys}
		if err = at.backup(ctx, c, m, o); !errors.Is(err, errChanged) {
			break
		}
	}
	return m, err
}

func (p *place) backup(ctx context.Context, c Config, m *BackupManifest, o BackupOrder) (err error) {
	if err := absent(o.To); err != nil {
		return err
	}
	folder := filepath.Dir(o.To)
	top := folder // what is there already
	for absent(top) == nil {
		top = filepath.Dir(top)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(folder, filepath.Base(o.To)+".unfinished-*") // mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	stop := p.watch(draft, o.Progress)
	err = p.pack(ctx, c, draft, m)
	stop()
	if err = errors.Join(err, ctx.Err()); err != nil {
		return err
	}
	// A crash before the next line leaves the draft, which has private keys and which people see; a crash after it, the whole backup. Link, unlike
	// Rename, fails if the file exists.
	if err := os.Link(filepath.Join(draft, DatabaseFile), o.To); err != nil {
		return err
	}
	return atomicfile.SyncFolders(folder, top)
}

// absent returns fs.ErrExist, wrapped, for a file that may exist.
func absent(file string) error {
	if _, err := os.Lstat(file); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(fmt.Errorf("%w: %s: name another file for the backup", fs.ErrExist, file), err)
	}
	return nil
}

// watch reports every second how large the backup in a draft is, until the caller calls stop.
func (p *place) watch(draft string, progress func(done, total int64)) (stop func()) {
	size := func(dir, name string) int64 {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
			return info.Size()
		}
		return 0 // it does not exist yet, or is in a database
	}
	total := size(p.Dir, DatabaseFile) + size(p.Dir, sqlite.ValuesFile)
	ctx, cancel := context.WithCancel(context.Background())
	var told sync.WaitGroup
	told.Go(func() {
		for ctx.Err() == nil && progress != nil {
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
			}
			done := size(draft, DatabaseFile)
			progress(done, max(total, done))
		}
	})
	return func() { cancel(); told.Wait() }
}

// pack makes the backup in a folder, in an order that makes it consistent. What is a link is refused before the log is copied.
func (p *place) pack(ctx context.Context, c Config, draft string, m *BackupManifest) error {
	for _, name := range []string{DatabaseFile, sqlite.ValuesFile} {
		if err := regular(p.Dir, name); p.Database == nil && err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	before, after := digests{}, digests{}
	if err := p.each(ctx, standing, before.of(func(_ string, content io.Reader) error {
		_, err := io.Copy(io.Discard, content)
		return err
	})); err != nil {
		return err
	}
	file := filepath.Join(draft, DatabaseFile)
	if err := p.copyLog(ctx, file); err != nil {
		return err
	}
	if err := sqlite.MakeBackup(ctx, file, func(d *sqlite.Draft, head storage.Head) (string, error) {
		m.Made = clock(c)().UTC().Format(time.RFC3339) // no record is newer
		m.Size, m.Root = head.Size, base64.StdEncoding.EncodeToString(head.Root[:])
		about, err := json.Marshal(m)
		if err != nil {
			return "", err
		}
		put := func(name string, content io.Reader) error {
			return errors.Join(checkName(name), d.Put(ctx, name, content))
		}
		if err := p.each(ctx, slices.Concat(standing, growing), after.of(put)); err != nil {
			return "", err
		}
		for name, sum := range before {
			if after[name] != sum {
				return "", errChanged
			}
		}
		return string(about), p.packApart(ctx, draft, m.ApartKeys, d, put)
	}); err != nil {
		return err
	}
	made, _, err := openBackup(ctx, file) // it is read once before it has its name
	if err != nil {
		return err
	}
	return made.Close()
}

// Digests are the SHA-256 of files by their names.
type digests map[string][sha256.Size]byte

// of returns a function that does what put does, and notes digests.
func (d digests) of(put func(name string, content io.Reader) error) func(string, io.Reader) error {
	return func(name string, content io.Reader) error {
		sum := sha256.New()
		err := put(name, io.TeeReader(content, sum))
		d[name] = [sha256.Size]byte(sum.Sum(nil))
		return err
	}
}

// packApart copies what is sealed apart, after the log, which said so later, and its keys if they are wanted, last: a row that was copied has one.
func (p *place) packApart(ctx context.Context, draft string, keys bool, d *sqlite.Draft, put func(string, io.Reader) error) error {
	from := p.Dir
	if p.Database != nil {
		from = draft
		copied := sqlite.NewValues(from)
		if err := errors.Join(copyValues(ctx, p.values, copied, keys), copied.Close()); err != nil {
			return err
		}
	}
	if err := d.PutValues(ctx, from); err != nil || !keys {
		return err
	}
	return (&place{Dir: from}).each(ctx, []string{sqlite.KeysFolder}, put)
}

// each calls f for every file in the parts. Parts are folders or files, and may be missing. Secrets in a database are read unwrapped: a backup is
// complete without the wrapping key.
func (p *place) each(ctx context.Context, parts []string, f func(name string, content io.Reader) error) (err error) {
	for _, part := range parts {
		files, own := p.Files, p.Database == nil || part == CasesFolder // in this machine's folder
		if own {
			files = filestore.NewFolder(p.Dir)
		}
		found := func(name string) error {
			if strings.HasPrefix(path.Base(name), ".new-") { // the draft of a writer that has not finished
				return ctx.Err()
			}
			content, err := p.open(ctx, name, own)
			if errors.Is(err, fs.ErrNotExist) {
				return ctx.Err() // the file was removed since it was listed
			}
			if err != nil {
				return err
			}
			defer content.Close() // closing a file that was only read loses nothing
			return errors.Join(ctx.Err(), f(name, content))
		}
		if path.Ext(part) == "" {
			err = files.List(ctx, part, found)
		} else {
			err = found(part)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *place) open(ctx context.Context, name string, own bool) (io.ReadCloser, error) {
	if !own {
		content, err := p.Files.Read(ctx, name)
		return io.NopCloser(bytes.NewReader(content)), err
	}
	if err := regular(p.Dir, name); err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(p.Dir, filepath.FromSlash(name)))
}

// regular returns an error unless a file is a regular file inside a folder. A link, even in place of a folder above it, leads outside.
func regular(dir, name string) error {
	for part := name; part != "."; part = path.Dir(part) {
		info, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(part)))
		if err != nil || part == name && !info.Mode().IsRegular() || part != name && !info.IsDir() {
			return errors.Join(fmt.Errorf("%s: it is missing in %s, or not a regular file there", name, dir), err)
		}
	}
	return nil
}

// copyLog writes one committed state of the log into a new SQLite file.
func (p *place) copyLog(ctx context.Context, to string) (err error) {
	if p.Database == nil {
		return sqlite.CopyFile(ctx, filepath.Join(p.Dir, DatabaseFile), to)
	}
	shared, err := postgres.Open(ctx, p.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	return shared.Snapshot(ctx, func(log storage.Store) error {
		file, err := sqlite.Create(ctx, to)
		if err != nil {
			return err
		}
		return errors.Join(copyAll(ctx, log, file, nil, nil), file.Close())
	})
}

// put creates a file in a file store. A file that exists there must be the same.
func put(ctx context.Context, files filestore.Store, name string, content []byte) error {
	err := files.Create(ctx, name, content)
	if errors.Is(err, fs.ErrExist) {
		var there []byte
		if there, err = files.Read(ctx, name); err == nil && !slices.Equal(there, content) {
			err = fmt.Errorf("%s exists already with other content", files.Where(name))
		}
	}
	return err
}

// copyValues copies what is sealed apart, with or without its keys. What is there already must be the same.
func copyValues(ctx context.Context, from, to storage.Values, withKeys bool) error {
	var values []storage.Value
	held := 0
	add := func() (err error) {
		if err = to.Add(ctx, values); errors.Is(err, fs.ErrExist) { // none of them was added
			for err = nil; err == nil && len(values) > 0; values = values[1:] {
				err = addSame(ctx, to, values[0])
			}
		}
		values, held = nil, 0
		return err
	}
	err := from.Each(ctx, func(name string) error {
		value, err := from.Read(ctx, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was erased since it was listed
		}
		if err != nil {
			return err
		}
		if !withKeys {
			value.Key = nil
		}
		values = append(values, value)
		if held += len(value.Sealed); held < 1<<20 && len(values) < 256 {
			return ctx.Err()
		}
		return add()
	})
	return errors.Join(err, add())
}

// addSame adds a value, unless the same is there.
func addSame(ctx context.Context, to storage.Values, value storage.Value) error {
	there, err := to.Read(ctx, value.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return to.Add(ctx, []storage.Value{value})
	}
	if err == nil && !(bytes.Equal(there.Sealed, value.Sealed) && bytes.Equal(there.Key, value.Key)) {
		err = fmt.Errorf("%s exists already with other content", to.Where(value.Name))
	}
	return err
}
