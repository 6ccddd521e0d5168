package installation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/atomicfile"
	"jurat/internal/fault"
	"jurat/internal/filestore"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/ledger/storage"
)

// ErrLater says that the caller gave no later checkpoint of the log, and did not state that there is none.
var ErrLater = errors.New("it is not known what the log published after the backup was made")

// A RestoreOrder says what to restore, and what is known about the log from elsewhere.
type RestoreOrder struct {
	From string // the backup's folder

	// Checkpoint is the last signed checkpoint of the log that is known. The restored log accepts no records until it holds all that this
	// checkpoint covers. "": NoneLater must state that there is none later than the backup.
	Checkpoint string
	NoneLater  bool

	Consistency *operator.Consistency // proves that a log that is behind the checkpoint is its beginning; may be nil
	Progress    func(done, total int64)
}

// Restored describes a restored log.
type Restored struct {
	Manifest BackupManifest
	Damages  []fsck.Damage // harmless damage only: with other damage, Restore restores nothing
	Known    int64         // the number of records that the checkpoint covers; 0: no checkpoint was given
	Missing  int64         // how many of them the restored log lacks
	Prefix   bool          // the restored log is proved to be the checkpoint's, or its beginning
}

// A DamagedBackupError lists the damage in a backup's log.
type DamagedBackupError struct{ Damages []fsck.Damage }

func (e *DamagedBackupError) Error() string {
	return fmt.Sprintf("the log in the backup is damaged in %d places", len(e.Damages))
}

// Restore makes an installation from a backup. In a missing or empty folder, it appears whole or not at all. In a database that holds no
// installation, the last step makes it one; before that, an interrupted restore can be repeated. The errors include ErrLater,
// *DamagedError, ledger.ErrForked and fs.ErrExist.
func Restore(ctx context.Context, c Config, o RestoreOrder) (r *Restored, err error) {
	defer fault.While(&err, "restoring %s", o.From)
	if o.Checkpoint == "" && !o.NoneLater {
		return nil, ErrLater
	}
	m, err := readManifest(ctx, o.From)
	if err != nil {
		return nil, err
	}
	if c.DB != "" {
		return restoreToDatabase(ctx, c, o, m)
	}
	r = &Restored{Manifest: *m}
	return r, Settle(ctx, c.Dir, func(draft string) error {
		if err := unpack(ctx, m, o.From, draft); err != nil {
			return err
		}
		inDraft := c
		inDraft.Dir = draft
		return r.examine(ctx, inDraft, o)
	})
}

func readManifest(ctx context.Context, dir string) (*BackupManifest, error) {
	if err := Settled(ctx, dir); err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if err != nil {
		return nil, err
	}
	m := new(BackupManifest)
	if err := json.Unmarshal(text, m, json.RejectUnknownMembers(true)); err != nil {
		return nil, fmt.Errorf("%s: %w", ManifestFile, err)
	}
	if m.Format != BackupFormat {
		return nil, fmt.Errorf("%s: format is %q, want %q", ManifestFile, m.Format, BackupFormat)
	}
	for name := range m.Files {
		if !fs.ValidPath(name) || name == "." || !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("%s: files: %q is not a path within the backup", ManifestFile, name)
		}
	}
	return m, nil
}

// unpack copies the files that the manifest names, and checks their digests.
func unpack(ctx context.Context, m *BackupManifest, from, to string) error {
	if err := os.Mkdir(filepath.Join(to, keys.Folder), 0o700); err != nil { // this folder must exist even if it is empty
		return err
	}
	p := &copying{from: inFolder(from), to: to, files: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := p.file(ctx, name); err != nil {
			return err
		}
		if _, copied := p.files[name]; !copied {
			return fmt.Errorf("%s: the backup lacks it", name)
		}
		if p.files[name] != m.Files[name] {
			return fmt.Errorf("%s: its SHA-256 is %s, the manifest says %s", name, p.files[name], m.Files[name])
		}
	}
	return nil
}

// examine checks all of a restored log, and compares it with what is known about it.
func (r *Restored) examine(ctx context.Context, c Config, o RestoreOrder) error {
	head, signed, err := stateIn(ctx, c.Dir)
	if err != nil {
		return err
	}
	if root := base64.StdEncoding.EncodeToString(head.Root[:]); head.Size != r.Manifest.Size || root != r.Manifest.Root {
		return fmt.Errorf("the log has %d records and the root %s, but the manifest says %d and %s", head.Size, root, r.Manifest.Size, r.Manifest.Root)
	}
	published := o.Checkpoint
	if published == "" {
		published = signed
	} else if err := r.compare(ctx, c, o, head); err != nil {
		return err
	}
	if err := atomicfile.Create(filepath.Join(c.Dir, CheckpointFile), []byte(published), 0o644); err != nil {
		return err
	}
	damages, _, err := Fsck(ctx, c, o.Progress)
	if err != nil {
		return err
	}
	return r.judge(damages)
}

// judge separates harmless from harmful damage. The caller already knows that the log is behind the checkpoint, and values are unreadable
// without their keys: neither makes the copy bad. For harmful damage, judge returns a *DamagedError.
func (r *Restored) judge(damages []fsck.Damage) error {
	var harmful []fsck.Damage
	for _, d := range damages {
		expected := d.Kind == fsck.DamageBehind && r.Missing > 0 || d.Kind == fsck.DamageApartLost && !r.Manifest.ApartKeys
		if expected || d.Kind.Harmless() {
			r.Damages = append(r.Damages, d)
		} else {
			harmful = append(harmful, d)
		}
	}
	if len(harmful) > 0 {
		return &DamagedBackupError{harmful}
	}
	return nil
}

// compare checks the restored log against the checkpoint from elsewhere.
func (r *Restored) compare(ctx context.Context, c Config, o RestoreOrder, head storage.Head) error {
	log, err := LogVerifier(ctx, filestore.NewFolder(c.Dir))
	if err != nil {
		return err
	}
	known, err := operator.OpenCheckpoint(o.Checkpoint, log)
	if err != nil {
		return fmt.Errorf("the checkpoint from elsewhere: %w", err)
	}
	r.Known, r.Missing = known.Size, max(0, known.Size-head.Size)
	if r.Missing > 0 {
		if o.Consistency == nil {
			return nil // nothing proves that it is the beginning of the published log
		}
		if err := o.Consistency.Check(operator.Checkpoint{Origin: known.Origin, Size: head.Size, Root: head.Root}, known); err != nil {
			return fmt.Errorf("the consistency proof does not show that the backup's log is the beginning of the published one: %w", err)
		}
		r.Prefix = true
		return nil
	}
	var root tlog.Hash
	err = inStore(ctx, c.Dir, func(store storage.Store) (err error) {
		root, err = tlog.TreeHash(known.Size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return store.Hashes(ctx, indexes) }))
		return err
	})
	if err != nil {
		return err
	}
	if root != known.Root {
		return fmt.Errorf("%w: its first %d records have the root %v, but the published root is %v", ledger.ErrForked, known.Size, root, known.Root)
	}
	r.Prefix = true
	return nil
}

// restoreToDatabase unpacks and examines a backup in a draft inside the machine's folder, and then copies it into the database.
func restoreToDatabase(ctx context.Context, c Config, o RestoreOrder, m *BackupManifest) (r *Restored, err error) {
	seen := filepath.Join(c.Dir, CheckpointFile)
	if _, err := os.Lstat(seen); err == nil {
		return nil, fmt.Errorf("this machine has already seen a checkpoint, %s: give it with --checkpoint and move it away, or name another folder", seen)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := c.check(); err != nil {
		return nil, err
	}
	to, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.leave()) }()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, err
	}
	draft, err := os.MkdirTemp(c.Dir, ".jurat-restore-*")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	if err := unpack(ctx, m, o.From, draft); err != nil {
		return nil, err
	}
	unpacked := c
	unpacked.Dir, unpacked.DB = draft, ""
	r = &Restored{Manifest: *m}
	if err := r.examine(ctx, unpacked, o); err != nil {
		return nil, err
	}
	return r, to.alone(ctx, func() error { return to.fill(ctx, c, draft, m, o.Progress) })
}

// fill copies an unpacked backup into a database without an installation, maybe with rests of an attempt. The checkpoint, which makes it one, is last.
func (p *place) fill(ctx context.Context, c Config, draft string, m *BackupManifest, progress func(done, total int64)) (err error) {
	to, err := p.tables(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	if signed, err := to.Checkpoint(ctx); err != nil || signed != "" {
		return errors.Join(err, fmt.Errorf("%w: there is an installation in %s", fs.ErrExist, c.Where()))
	}
	if err := p.shared.CheckKeys(ctx); err != nil {
		return err
	}
	from, err := sqlite.Open(ctx, filepath.Join(draft, DatabaseFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	if _, err := storage.Copy(ctx, from, to, progress); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(m.Files)) {
		if err := p.fillFile(ctx, c, draft, name); err != nil {
			return err
		}
	}
	apart := sqlite.NewValues(draft)
	if err := errors.Join(copyValues(ctx, apart, p.values, true), apart.Close()); err != nil {
		return err
	}
	// A crash before the last line leaves a database without an installation, and a machine that has the restored checkpoint.
	if err := p.fillFile(ctx, c, draft, CheckpointFile); err != nil {
		return err
	}
	return storage.FinishCopy(ctx, from, to)
}

// fillFile copies a file of an unpacked backup: into this machine's folder if it is the machine's own, and otherwise into the database.
func (p *place) fillFile(ctx context.Context, c Config, draft, name string) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case name == DatabaseFile, name == sqlite.ValuesFile, strings.HasPrefix(name, sqlite.KeysFolder+"/"): // fill copies what is in them
		return nil
	}
	content, err := os.ReadFile(filepath.Join(draft, filepath.FromSlash(name)))
	switch {
	case err != nil:
		return err
	case name == CheckpointFile, strings.HasPrefix(name, CasesFolder+"/"):
		return atomicfile.Replace(filepath.Join(c.Dir, filepath.FromSlash(name)), content, 0o600)
	}
	return put(ctx, p.Files, name, content)
}
