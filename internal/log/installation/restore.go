package installation

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"jurat/evidence/operator"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
)

// ErrLater says that the caller gave no later checkpoint of the log, and did not state that there is none.
var ErrLater = errors.New("it is not known what the log published after the backup was made")

// A RestoreOrder says what to restore, and what is known about the log from elsewhere.
type RestoreOrder struct {
	From string // the backup

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
	r = new(Restored)
	build := func(draft string) error { // it reads all of the backup: what can be refused without that is refused before
		from, m, err := openBackup(ctx, o.From)
		if err != nil {
			return err
		}
		r.Manifest = *m
		if err := errors.Join(unpack(ctx, from, draft, o.Progress), from.Close()); err != nil {
			return err
		}
		inDraft := c
		inDraft.Dir, inDraft.DB = draft, ""
		return r.examine(ctx, inDraft, o)
	}
	if c.DB != "" {
		return r, restoreToDatabase(ctx, c, o, build)
	}
	return r, Settle(ctx, c.Dir, build)
}

func openBackup(ctx context.Context, file string) (*sqlite.Store, *BackupManifest, error) {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return nil, nil, errors.New("it is a folder, and a backup is a file: the jurat that made a backup in a folder (commit 1b454e41 or before) restores it")
	}
	b, about, err := sqlite.OpenBackup(ctx, file)
	if err != nil {
		return nil, nil, err
	}
	m := new(BackupManifest)
	if err := json.Unmarshal([]byte(about), m, json.RejectUnknownMembers(true)); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading what the backup says about itself: %w", err), b.Close())
	}
	return b, m, nil
}

// unpack makes a data folder from a backup, of which it reads everything once: what is examined and used afterwards is the folder.
func unpack(ctx context.Context, from *sqlite.Store, dir string, progress func(done, total int64)) error {
	if err := os.Mkdir(filepath.Join(dir, keys.Folder), 0o700); err != nil { // this folder must exist even if it is empty
		return err
	}
	to, err := sqlite.Create(ctx, filepath.Join(dir, DatabaseFile))
	if err != nil {
		return err
	}
	return errors.Join(copyAll(ctx, from, to, progress, func() error {
		if err := from.Files(ctx, func(name string, part int64, content []byte) error { return unpackPart(dir, name, part, content) }); err != nil {
			return err
		}
		return from.UnpackValues(ctx, dir)
	}), to.Close())
}

// unpackPart begins a file with its first part, or adds another part to it.
func unpackPart(dir, name string, part int64, content []byte) error {
	if err := checkName(name); err != nil {
		return err
	}
	to, how := filepath.Join(dir, filepath.FromSlash(name)), os.O_WRONLY|os.O_APPEND
	if part == 0 {
		how |= os.O_CREATE | os.O_EXCL
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(to, how, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Sync(), file.Close(), atomicfile.SyncFolders(filepath.Dir(to), dir))
}

// copyAll copies a log. Its checkpoint is last, after what beside copies, if it is not nil.
func copyAll(ctx context.Context, from, to storage.Store, progress func(done, total int64), beside func() error) error {
	_, err := storage.Copy(ctx, from, to, progress)
	if err == nil && beside != nil {
		err = beside()
	}
	if err != nil {
		return err
	}
	return storage.FinishCopy(ctx, from, to)
}

// checkName returns an error for a file that MakeBackup does not put in a backup.
func checkName(name string) error {
	isIn := func(part string) bool { return name == part || strings.HasPrefix(name, part+"/") }
	parts := append(slices.Concat(standing, growing), sqlite.KeysFolder)
	if strings.Contains(name, `\`) || !fs.ValidPath(name) || !filepath.IsLocal(filepath.FromSlash(name)) || !slices.ContainsFunc(parts, isIn) {
		return fmt.Errorf("%q is no file of a backup", name)
	}
	return nil
}

// examine checks all of a restored log, and compares it with what is known about it.
func (r *Restored) examine(ctx context.Context, c Config, o RestoreOrder) error {
	log, err := sqlite.Open(ctx, filepath.Join(c.Dir, DatabaseFile))
	if err != nil {
		return err
	}
	published, err := r.compare(ctx, c, log, o)
	if err := errors.Join(err, log.Close()); err != nil {
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

// compare checks the restored log against what the backup says about itself, and against the checkpoint from elsewhere. It returns the last
// checkpoint that is known.
func (r *Restored) compare(ctx context.Context, c Config, log storage.Store, o RestoreOrder) (published string, err error) {
	head, err := log.Head(ctx)
	if err != nil {
		return "", err
	}
	if root := base64.StdEncoding.EncodeToString(head.Root[:]); head.Size != r.Manifest.Size || root != r.Manifest.Root {
		return "", fmt.Errorf("the log has %d records and the root %s, but the backup says %d and %s", head.Size, root, r.Manifest.Size, r.Manifest.Root)
	}
	by, err := LogVerifier(ctx, filestore.NewFolder(c.Dir))
	if err == nil && by.Name() != r.Manifest.Log {
		err = fmt.Errorf("the log is %s, but the backup says %s", by.Name(), r.Manifest.Log)
	}
	if err != nil {
		return "", err
	}
	if o.Checkpoint == "" {
		return log.Checkpoint(ctx)
	}
	return o.Checkpoint, r.compareCheckpoint(ctx, by, log, head, o)
}

func (r *Restored) compareCheckpoint(ctx context.Context, by note.Verifier, log storage.Store, head storage.Head, o RestoreOrder) error {
	known, err := operator.OpenCheckpoint(o.Checkpoint, by)
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
	root, err := tlog.TreeHash(known.Size, tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) { return log.Hashes(ctx, indexes) }))
	if err != nil {
		return err
	}
	if root != known.Root {
		return fmt.Errorf("%w: its first %d records have the root %v, but the published root is %v", ledger.ErrForked, known.Size, root, known.Root)
	}
	r.Prefix = true
	return nil
}

// restoreToDatabase makes and examines a data folder inside the machine's folder, and then copies it into the database.
func restoreToDatabase(ctx context.Context, c Config, o RestoreOrder, build func(draft string) error) (err error) {
	seen := filepath.Join(c.Dir, CheckpointFile)
	if _, err := os.Lstat(seen); err == nil {
		return fmt.Errorf("this machine has already seen a checkpoint, %s: give it with --checkpoint and move it away, or name another folder", seen)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := c.check(); err != nil {
		return err
	}
	to, err := connect(ctx, c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.leave()) }()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(c.Dir, ".jurat-restore-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }()
	if err := build(draft); err != nil {
		return err
	}
	return to.alone(ctx, func() error { return to.fill(ctx, c, draft, o.Progress) })
}

// fill copies an unpacked backup into a database without an installation, maybe with rests of an attempt. The checkpoint, which makes it one, is last.
func (p *place) fill(ctx context.Context, c Config, draft string, progress func(done, total int64)) (err error) {
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
	return copyAll(ctx, from, to, progress, func() error { return p.fillBeside(ctx, c, draft) })
}

// fillBeside copies what is beside the log: what is the machine's own into its folder, and the rest into the database.
func (p *place) fillBeside(ctx context.Context, c Config, draft string) error {
	own := func(name string, content []byte) error {
		return atomicfile.Replace(filepath.Join(c.Dir, filepath.FromSlash(name)), content, 0o600)
	}
	if err := (&place{Dir: draft}).each(ctx, slices.Concat(standing, growing), func(name string, content io.Reader) error {
		text, err := io.ReadAll(content)
		switch {
		case err != nil:
			return err
		case strings.HasPrefix(name, CasesFolder+"/"):
			return own(name, text)
		}
		return put(ctx, p.Files, name, text)
	}); err != nil {
		return err
	}
	apart := sqlite.NewValues(draft)
	if err := errors.Join(copyValues(ctx, apart, p.values, true), apart.Close()); err != nil {
		return err
	}
	published, err := os.ReadFile(filepath.Join(draft, CheckpointFile))
	if err != nil {
		return err
	}
	// A crash from here on leaves a database without an installation, and a machine that has the restored checkpoint.
	return own(CheckpointFile, published)
}
