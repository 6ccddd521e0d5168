package installation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/atomicfile"
	"jurat/internal/erasure"
	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
	"jurat/internal/postgres"
	"jurat/internal/stamping"
	"jurat/internal/witness"
)

// BackupFormat is the format and version that manifests of backups state.
const BackupFormat = "jurat/backup/v1"

// A BackupManifest describes the content of a backup.
type BackupManifest struct {
	Format    string            `json:"format"`
	Made      string            `json:"made"`       // RFC 3339, UTC
	Log       string            `json:"log"`        // the log's origin
	Size      int64             `json:"size"`       // the number of records
	Root      string            `json:"root"`       // the RFC 6962 root hash of the records, base64
	ApartKeys bool              `json:"apart_keys"` // whether the backup has the keys to values that are sealed apart
	Files     map[string]string `json:"files"`      // path, with slashes → SHA-256, hexadecimal
}

// A BackupOrder says where to make a backup, and whether to include the keys to values that are sealed apart.
type BackupOrder struct {
	To        string // a folder that does not exist or is empty
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

// MakeBackup copies an installation that may be in use, whole or not at all. It refuses a target folder that is not empty, and keys that keep changing.
func MakeBackup(ctx context.Context, c Config, o BackupOrder) (m *BackupManifest, err error) {
	defer fault.While(&err, "backing up %s", c.Dir)
	at, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.leave()) }()
	if err := CheckVacant(o.To); err != nil {
		return nil, err
	}
	for range maxBackups {
		if m, err = backupOnce(ctx, c, at, o); !errors.Is(err, errChanged) {
			break
		}
	}
	return m, err
}

func backupOnce(ctx context.Context, c Config, from *place, o BackupOrder) (m *BackupManifest, err error) {
	err = Settle(ctx, o.To, func(draft string) error {
		p := &copying{from: from, to: draft, files: map[string]string{}, progress: o.Progress}
		if err := p.installation(ctx, o.ApartKeys); err != nil {
			return err
		}
		log, err := LogVerifier(ctx, filestore.NewFolder(draft))
		if err != nil {
			return err
		}
		head, _, err := stateIn(ctx, draft)
		if err != nil {
			return err
		}
		databases := &copying{from: inFolder(draft), files: p.files} // their digests are taken after they were opened
		if err := databases.all(ctx, []string{DatabaseFile, sqlite.ValuesFile, sqlite.KeysFolder}); err != nil {
			return err
		}
		m = &BackupManifest{Format: BackupFormat, Made: clock(c)().UTC().Format(time.RFC3339), Log: log.Name(), Size: head.Size,
			Root: base64.StdEncoding.EncodeToString(head.Root[:]), ApartKeys: o.ApartKeys, Files: p.files}
		text, err := json.Marshal(m, jsontext.WithIndent("  "), json.Deterministic(true))
		if err != nil {
			return err
		}
		return atomicfile.Create(filepath.Join(draft, ManifestFile), append(text, '\n'), 0o600)
	})
	return m, err
}

// installation copies all parts, in an order that makes the copy consistent.
func (p *copying) installation(ctx context.Context, withApartKeys bool) error {
	parts := slices.Concat(standing, growing)
	if err := p.measure(ctx, append(slices.Clone(parts), DatabaseFile, sqlite.ValuesFile)); err != nil {
		return err
	}
	before := &copying{from: p.from, files: map[string]string{}}
	if err := before.all(ctx, standing); err != nil {
		return err
	}
	if err := p.from.copyLog(ctx, filepath.Join(p.to, DatabaseFile), p.tell); err != nil {
		return err
	}
	if err := p.all(ctx, parts); err != nil {
		return err
	}
	if err := p.from.copyApart(ctx, p.to, withApartKeys, p.tell); err != nil {
		return err
	}
	for name, sum := range before.files {
		if p.files[name] != sum {
			return errChanged
		}
	}
	return nil
}

// stateIn returns the head of the log in a folder, and its last signed checkpoint.
func stateIn(ctx context.Context, dir string) (head storage.Head, signed string, err error) {
	err = inStore(ctx, dir, func(store storage.Store) (err error) {
		if signed, err = store.Checkpoint(ctx); err == nil {
			head, err = store.Head(ctx)
		}
		return err
	})
	return head, signed, err
}

func inStore(ctx context.Context, dir string, do func(storage.Store) error) error {
	store, err := sqlite.Open(ctx, filepath.Join(dir, DatabaseFile))
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// A copying copies files durably, and notes their digests.
type copying struct {
	from        *place
	to          string            // the target folder; "": files are only digested
	files       map[string]string // path, with slashes → SHA-256, hexadecimal
	done, total int64             // bytes
	progress    func(done, total int64)
}

func (p *copying) all(ctx context.Context, parts []string) error {
	return p.from.each(ctx, parts, func(name string) error { return p.file(ctx, name) })
}

// measure adds up the bytes to copy from this machine's folder, and refuses what is a link there before anything is copied.
func (p *copying) measure(ctx context.Context, parts []string) error {
	return p.from.each(ctx, parts, func(name string) error {
		if p.from.own(name) {
			if err := regular(p.from.Dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
		if info, err := os.Lstat(filepath.Join(p.from.Dir, filepath.FromSlash(name))); err == nil {
			p.total += info.Size()
		}
		return nil
	})
}

func (p *copying) file(ctx context.Context, name string) error {
	content, err := p.from.open(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the file was removed since it was listed
	}
	if err != nil {
		return err
	}
	defer content.Close() // closing a file that was only read loses nothing
	sum := sha256.New()
	read := io.TeeReader(content, sum)
	if p.to == "" {
		_, err = io.Copy(io.Discard, read)
	} else {
		err = p.write(name, read)
	}
	p.files[name] = hex.EncodeToString(sum.Sum(nil))
	return err
}

func (p *copying) write(name string, content io.Reader) error {
	to := filepath.Join(p.to, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, content)
	p.tell(n)
	return errors.Join(err, file.Sync(), file.Close(), atomicfile.SyncFolders(filepath.Dir(to), p.to))
}

// tell adds n bytes to the progress, and reports it.
func (p *copying) tell(n int64) {
	p.done += n
	if p.progress != nil {
		p.progress(p.done, max(p.total, p.done)) // the files may have grown since they were measured
	}
}

// A backup copies an installation, with this machine's own files in a folder. It has the same form for a data folder and for a database, so
// one of a database can be restored to a folder, and the other way round.

// inFolder is what copies the files in a folder.
func inFolder(dir string) *place { return &place{Dir: dir, Files: filestore.NewFolder(dir)} }

// own reports whether a file is in this machine's folder.
func (p *place) own(name string) bool {
	return p.Database == nil || name == CasesFolder || path.Dir(name) == CasesFolder
}

// each calls f for every file in the parts. Parts are folders or files, and may be missing. Names have slashes.
func (p *place) each(ctx context.Context, parts []string, f func(name string) error) error {
	found := func(name string) error {
		if strings.HasPrefix(path.Base(name), ".new-") { // the draft of a writer that has not finished
			return ctx.Err()
		}
		return errors.Join(ctx.Err(), f(name))
	}
	for _, part := range parts {
		var err error
		switch {
		case p.own(part):
			err = filestore.NewFolder(p.Dir).List(ctx, part, found)
		case path.Ext(part) == "":
			err = p.Files.List(ctx, part, found)
		default: // a file of the database
			if _, err = p.Files.Read(ctx, part); err == nil {
				err = found(part)
			} else if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// open opens a file, or returns fs.ErrNotExist, wrapped. Secrets in a database are read unwrapped: a backup is complete without the wrapping key.
func (p *place) open(ctx context.Context, name string) (io.ReadCloser, error) {
	if !p.own(name) {
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

// copyLog writes one committed state of the log into a new SQLite file, and reports from time to time how many bytes were added.
func (p *place) copyLog(ctx context.Context, to string, tell func(more int64)) (err error) {
	if p.Database == nil {
		return p.copyDatabase(ctx, DatabaseFile, to, tell)
	}
	shared, err := postgres.Open(ctx, p.Database)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, shared.Close()) }()
	file, err := sqlite.Create(ctx, to)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	grown := growth(to, tell)
	return shared.Snapshot(ctx, func(log storage.Store) error {
		if _, err := storage.Copy(ctx, log, file, func(_, _ int64) { grown() }); err != nil {
			return err
		}
		return storage.FinishCopy(ctx, log, file)
	})
}

// copyApart copies what is sealed apart, after the log, which said so later, and its keys if they are wanted, last: a row that was copied has one.
func (p *place) copyApart(ctx context.Context, to string, withKeys bool, tell func(more int64)) error {
	if p.Database != nil {
		copied := sqlite.NewValues(to)
		return errors.Join(copyValues(ctx, p.values, copied, withKeys), copied.Close())
	}
	copied := filepath.Join(to, filepath.FromSlash(sqlite.ValuesFile))
	if _, err := os.Stat(filepath.Join(p.Dir, filepath.FromSlash(sqlite.ValuesFile))); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(copied), 0o700); err != nil {
		return err
	}
	if err := p.copyDatabase(ctx, sqlite.ValuesFile, copied, tell); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(filepath.Dir(copied), to); err != nil || !withKeys {
		return err
	}
	return (&copying{from: p, to: to, files: map[string]string{}}).all(ctx, []string{sqlite.KeysFolder})
}

// copyDatabase makes SQLite copy one of its files, and watches the copy grow.
func (p *place) copyDatabase(ctx context.Context, name, to string, tell func(more int64)) error {
	done := make(chan error, 1)
	go func() { done <- sqlite.Backup(ctx, filepath.Join(p.Dir, filepath.FromSlash(name)), to) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	grown := growth(to, tell)
	for {
		select {
		case <-tick.C:
			grown()
		case err := <-done:
			grown()
			return err
		}
	}
}

// growth returns a function that reports by how much a file has grown since its last call.
func growth(file string, tell func(more int64)) func() {
	told := int64(0)
	return func() {
		if info, err := os.Stat(file); err == nil { // the file may not exist yet
			tell(info.Size() - told)
			told = info.Size()
		}
	}
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
	add := func() error {
		err := to.Add(ctx, values)
		for n := 0; errors.Is(err, fs.ErrExist) && n < len(values); n++ {
			if err := addSame(ctx, to, values[n]); err != nil {
				return err
			}
		}
		if values, held = nil, 0; errors.Is(err, fs.ErrExist) {
			return nil
		}
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

func addSame(ctx context.Context, to storage.Values, value storage.Value) error {
	there, err := to.Read(ctx, value.Name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return to.Add(ctx, []storage.Value{value})
	case err == nil && !(bytes.Equal(there.Sealed, value.Sealed) && bytes.Equal(there.Key, value.Key)):
		err = fmt.Errorf("%s exists already with other content", to.Where(value.Name))
	}
	return err
}
