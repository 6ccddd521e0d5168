package installation

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/atomicfile"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/vault"
)

// BackupFormat is the version of the manifest that backups have.
const BackupFormat = "jurat/backup/v1"

const manifestFile = "backup.json"

// A Manifest says what a backup holds.
type Manifest struct {
	Format    string            `json:"format"`
	Made      string            `json:"made"`       // RFC 3339, UTC
	Log       string            `json:"log"`        // its origin
	Size      int64             `json:"size"`       // how many records
	Root      string            `json:"root"`       // RFC 6962 hash over them, base64
	ApartKeys bool              `json:"apart_keys"` // whether what opens texts sealed apart is there, too
	Files     map[string]string `json:"files"`      // path, with slashes → SHA-256, hexadecimal
}

// A BackupOrder says what is copied where.
type BackupOrder struct {
	To        string // a folder that does not exist or is empty
	ApartKeys bool   // copy the keys to what is sealed apart, too: whoever has the copy can read what was erased since
	Progress  func(done, total int64)
}

// ofOneMoment are copied with the database so that they are of one moment with it: a log that names keys which the copy
// does not have, or the reverse, is one that no crash would leave. Settings are among them, as they decide on what is sealed.
var ofOneMoment = []string{logKeyFile, keysFolder, clockFolder, outsideFolder, apartSettingsFolder}

// growing are copied after the database: what is in them is there before the record that needs it.
var growing = []string{casesFolder, vault.ValuesFolder, erasingFolder}

// maxBackups is how often a copy is begun anew because keys were changed meanwhile, which people do rarely.
const maxBackups = 5

var errChanged = errors.New("keys or settings were changed while they were copied")

// Backup copies an installation that may be in use. The copy appears whole or not at all.
func Backup(ctx context.Context, c Config, o BackupOrder) (*Manifest, error) {
	m, err := backup(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("backing up %s: %w", c.Dir, err)
	}
	return m, nil
}

func backup(ctx context.Context, c Config, o BackupOrder) (*Manifest, error) {
	if err := checkParts(c.Dir); err != nil {
		return nil, err
	}
	if err := checkVacant(o.To); err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		m, err := backupOnce(ctx, c, o)
		if !errors.Is(err, errChanged) || n == maxBackups {
			return m, err
		}
	}
}

func backupOnce(ctx context.Context, c Config, o BackupOrder) (m *Manifest, err error) {
	to := filepath.Clean(o.To)
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return nil, err
	}
	draft, err := os.MkdirTemp(filepath.Dir(to), ".jurat-backup-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }() // nothing, once it has been renamed

	p := &copying{ctx: ctx, from: c.Dir, to: draft, files: map[string]string{}, progress: o.Progress}
	if err := p.installation(o.ApartKeys); err != nil {
		return nil, err
	}
	if m, err = describe(ctx, c, draft); err != nil {
		return nil, err
	}
	database := &copying{ctx: ctx, from: draft, files: p.files} // as it is after it was opened
	if err := database.file(databaseFile); err != nil {
		return nil, err
	}
	m.ApartKeys, m.Files = o.ApartKeys, p.files
	text, err := json.Marshal(m, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return nil, err
	}
	if err := atomicfile.Create(filepath.Join(draft, manifestFile), append(text, '\n'), 0o600); err != nil {
		return nil, err
	}
	return m, install(draft, to)
}

// installation copies everything, in the order that makes it of one moment.
func (p *copying) installation(withApartKeys bool) error {
	later := growing
	if withApartKeys {
		later = append(slices.Clone(later), vault.KeysFolder)
	}
	if err := p.measure(slices.Concat(ofOneMoment, []string{databaseFile}, later)); err != nil {
		return err
	}
	if err := p.all(ofOneMoment); err != nil {
		return err
	}
	keys := maps.Clone(p.files)
	if err := p.database(); err != nil {
		return err
	}
	if err := p.all(later); err != nil {
		return err
	}
	again := &copying{ctx: p.ctx, from: p.from, files: map[string]string{}}
	if err := again.all(ofOneMoment); err != nil {
		return err
	}
	if !maps.Equal(keys, again.files) {
		return errChanged
	}
	return nil
}

// describe says what the log in a copy is.
func describe(ctx context.Context, c Config, dir string) (*Manifest, error) {
	log, err := openLogKey(filepath.Join(dir, logKeyFile))
	if err != nil {
		return nil, err
	}
	head, _, err := stateIn(ctx, dir)
	return &Manifest{Format: BackupFormat, Made: clock(c)().UTC().Format(time.RFC3339), Log: log.verifier.Name(), Size: head.Size,
		Root: base64.StdEncoding.EncodeToString(head.Root[:])}, err
}

// stateIn is the head of the log in a folder, and its last signed checkpoint.
func stateIn(ctx context.Context, dir string) (head ledger.Head, signed string, err error) {
	err = inStore(ctx, dir, func(store ledger.Store) (err error) {
		if signed, err = store.Checkpoint(ctx); err == nil {
			head, err = store.Head(ctx)
		}
		return err
	})
	return head, signed, err
}

// rootIn is the root of the log in a folder over its first records.
func rootIn(ctx context.Context, dir string, size int64) (root tlog.Hash, err error) {
	err = inStore(ctx, dir, func(store ledger.Store) (err error) {
		root, err = tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return store.Hashes(ctx, indexes) }))
		return err
	})
	return root, err
}

func inStore(ctx context.Context, dir string, do func(ledger.Store) error) error {
	store, err := sqlite.Open(ctx, filepath.Join(dir, databaseFile))
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// A copying copies regular files, durably, and notes what was in them.
type copying struct {
	ctx         context.Context
	from, to    string            // to "": what is there is only noted
	files       map[string]string // path, with slashes → SHA-256, hexadecimal
	done, total int64             // bytes
	progress    func(done, total int64)
}

// each calls f for every file in parts of the folder; a part need not be there.
func (p *copying) each(parts []string, f func(name string, d fs.DirEntry) error) error {
	for _, part := range parts {
		err := filepath.WalkDir(filepath.Join(p.from, part), func(path string, d fs.DirEntry, err error) error {
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return nil
			case err != nil:
				return err
			case d.IsDir() || isDraft(d.Name()):
				return p.ctx.Err()
			case !d.Type().IsRegular():
				return fmt.Errorf("%s is no regular file", path)
			}
			name, err := filepath.Rel(p.from, path)
			if err != nil {
				return err
			}
			return f(name, d)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// isDraft reports whether a file is one that a writer has not given its name yet.
func isDraft(name string) bool { return strings.HasPrefix(name, ".new-") }

func (p *copying) all(parts []string) error {
	return p.each(parts, func(name string, _ fs.DirEntry) error { return p.file(name) })
}

// measure adds up how much there is to be copied.
func (p *copying) measure(parts []string) error {
	return p.each(parts, func(_ string, d fs.DirEntry) error {
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil {
			p.total += info.Size()
		}
		return err
	})
}

func (p *copying) file(name string) error {
	source, err := os.Open(filepath.Join(p.from, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // removed since its folder was read
	}
	if err != nil {
		return err
	}
	defer source.Close() // was only read
	sum := sha256.New()
	read := io.TeeReader(source, sum)
	if p.to == "" {
		_, err = io.Copy(io.Discard, read)
	} else {
		err = p.write(name, read)
	}
	p.files[filepath.ToSlash(name)] = hex.EncodeToString(sum.Sum(nil))
	return err
}

func (p *copying) write(name string, content io.Reader) error {
	to := filepath.Join(p.to, name)
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

// tell adds to what is done.
func (p *copying) tell(n int64) {
	p.done += n
	if p.progress != nil {
		p.progress(p.done, max(p.total, p.done)) // it may have grown since it was measured
	}
}

// database copies one committed state, and tells how far that is.
func (p *copying) database() error {
	to := filepath.Join(p.to, databaseFile)
	done := make(chan error, 1)
	go func() { done <- sqlite.Backup(p.ctx, filepath.Join(p.from, databaseFile), to) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	told := int64(0)
	size := func() {
		if info, err := os.Stat(to); err == nil { // it may not be there yet
			p.tell(info.Size() - told)
			told = info.Size()
		}
	}
	for {
		select {
		case <-tick.C:
			size()
		case err := <-done:
			size()
			return err
		}
	}
}
