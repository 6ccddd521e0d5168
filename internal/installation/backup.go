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
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/internal/atomicfile"
	"jurat/internal/erasure"
	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
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

// standing lists the parts that are copied after the log and must be the same as before it. They are copied after it so that the copy has
// every key that the log names. A log without a key that it names could not come from a crash. Keys that were added meanwhile do no harm.
// Settings are among the parts, as they decide what is sealed.
var standing = []string{LogKeyFile, keys.Folder, AuthorityFolder, stamping.Folder, witness.SettingsFile, erasure.SettingsFolder}

// growing lists the parts that only grow. They are copied after the log, since their files exist before the record that needs them.
var growing = []string{CasesFolder, erasure.IntentsFolder}

// maxBackups is how often a copy is tried if keys change meanwhile, which is rare.
const maxBackups = 5

var errChanged = errors.New("keys or settings were changed while the log was copied")

// MakeBackup copies an installation that may be in use. The copy appears whole or not at all. If the target folder is not empty, or keys change
// during each attempt, Make returns an error.
func MakeBackup(ctx context.Context, c Config, o BackupOrder) (*BackupManifest, error) {
	m, err := backup(ctx, c, o)
	if err != nil {
		return nil, fmt.Errorf("backing up %s: %w", c.Dir, err)
	}
	return m, nil
}

func backup(ctx context.Context, c Config, o BackupOrder) (m *BackupManifest, err error) {
	at, err := find(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, at.leave()) }()
	if err := CheckVacant(o.To); err != nil {
		return nil, err
	}
	for range maxBackups {
		if m, err = backupOnce(ctx, c, origin{at, c.Dir}, o); !errors.Is(err, errChanged) {
			break
		}
	}
	return m, err
}

func backupOnce(ctx context.Context, c Config, from origin, o BackupOrder) (m *BackupManifest, err error) {
	err = Settle(ctx, o.To, func(draft string) error {
		p := &copying{from: from, to: draft, files: map[string]string{}, progress: o.Progress}
		if err := p.installation(ctx, o.ApartKeys); err != nil {
			return err
		}
		if m, err = describe(ctx, c, draft); err != nil {
			return err
		}
		databases := &copying{from: inFolder(draft), files: p.files} // their digests are taken after they were opened
		if err := databases.all(ctx, []string{DatabaseFile, sqlite.ValuesFile, sqlite.KeysFolder}); err != nil {
			return err
		}
		m.ApartKeys, m.Files = o.ApartKeys, p.files
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
	if err := p.from.log(ctx, filepath.Join(p.to, DatabaseFile), p.tell); err != nil {
		return err
	}
	if err := p.all(ctx, parts); err != nil {
		return err
	}
	if err := p.from.apart(ctx, p.to, withApartKeys, p.tell); err != nil {
		return err
	}
	for name, sum := range before.files {
		if p.files[name] != sum {
			return errChanged
		}
	}
	return nil
}

// describe returns a manifest of the log in a copy.
func describe(ctx context.Context, c Config, dir string) (*BackupManifest, error) {
	log, err := LogVerifier(ctx, filestore.NewFolder(dir))
	if err != nil {
		return nil, err
	}
	head, _, err := stateIn(ctx, dir)
	return &BackupManifest{Format: BackupFormat, Made: clock(c)().UTC().Format(time.RFC3339), Log: log.Name(), Size: head.Size,
		Root: base64.StdEncoding.EncodeToString(head.Root[:])}, err
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

// rootIn returns the root over the first size records of the log in a folder.
func rootIn(ctx context.Context, dir string, size int64) (root tlog.Hash, err error) {
	err = inStore(ctx, dir, func(store storage.Store) (err error) {
		root, err = tlog.TreeHash(size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return store.Hashes(ctx, indexes) }))
		return err
	})
	return root, err
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
	from        origin
	to          string            // the target folder; "": files are only digested
	files       map[string]string // path, with slashes → SHA-256, hexadecimal
	done, total int64             // bytes
	progress    func(done, total int64)
}

// isDraft reports whether a file is the draft of a writer that has not finished.
func isDraft(name string) bool { return strings.HasPrefix(path.Base(name), ".new-") }

func (p *copying) all(ctx context.Context, parts []string) error {
	return p.from.each(ctx, parts, func(name string) error { return p.file(ctx, name) })
}

// measure adds up the bytes to copy from this machine's folder.
func (p *copying) measure(ctx context.Context, parts []string) error {
	return p.from.each(ctx, parts, func(name string) error {
		if info, err := os.Lstat(filepath.Join(p.from.dir, filepath.FromSlash(name))); err == nil {
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
