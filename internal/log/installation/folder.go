package installation

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/log/erasure"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/lock"
	"jurat/internal/log/postgres"
	"jurat/internal/log/token"
)

// findInFolder finds an installation in a data folder. If there is none, the error has ErrNone in its chain.
func findInFolder(ctx context.Context, c Config) (*place, error) {
	if info, err := os.Stat(c.Dir); err == nil && !info.IsDir() {
		return nil, fmt.Errorf("%s is a file, not a data folder: if it is a backup, 'jurat --data FOLDER init --from %[1]s' makes an installation from it", c.Dir)
	}
	if err := checkParts(ctx, c.Dir); errors.Is(err, ErrNone) {
		looked, failed := filepath.Abs(c.Dir)
		if failed != nil {
			return nil, fmt.Errorf("%w: none of %s is in %s, and where that is cannot be said: %w", err, strings.Join(folderParts, ", "), c.Dir, failed)
		}
		return nil, fmt.Errorf("%w: none of %s is in %s", err, strings.Join(folderParts, ", "), looked)
	} else if err != nil {
		return nil, err
	}
	path := func(part string) string { return filepath.Join(c.Dir, part) }
	if err := checkOwner(path(LogKeyFile)); err != nil {
		return nil, err
	}
	for _, part := range []string{c.Dir, path(keys.Folder), path(DatabaseFile), path(LogKeyFile)} {
		if err := checkPrivate(part); err != nil {
			return nil, err
		}
	}
	values := sqlite.NewValues(c.Dir)
	return &place{Dir: c.Dir, Files: filestore.NewFolder(c.Dir), values: values, published: ledger.CheckpointFile(path(CheckpointFile)),
		Locks: lock.NewFolder(path(locksFolder)), store: func(ctx context.Context) (storage.Store, error) {
			store, err := sqlite.Open(ctx, path(DatabaseFile))
			if err == nil {
				values.InPlace = store.InPlace
			}
			return store, err
		},
		parts: strings.Join([]string{path(DatabaseFile), path(LogKeyFile), path(CheckpointFile)}, ", ")}, nil
}

// ErrOpen says that users other than its owner can write to a data folder. They could put in their own keys, or remove the log.
var ErrOpen = errors.New("users other than its owner can write to it")

// checkPrivate returns ErrOpen if the group or all users can write to a file or folder. Windows has no such mode bits.
func checkPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode&0o022 != 0 && runtime.GOOS != "windows" {
		return fmt.Errorf("%w: %s has the mode %04o; let only the owner write to it: chmod go-w %s", ErrOpen, path, mode, path)
	}
	return nil
}

// checkParts returns ErrNone if a folder has no part of an installation, or names a missing part, which the operator restores: none is made anew.
func checkParts(ctx context.Context, dir string) error {
	var there int
	var missing, err error
	for range 2 { // another process may be making an installation during the first look
		if err := Settled(ctx, dir); err != nil {
			return err
		}
		if there, missing, err = lookForParts(dir); err != nil || missing == nil {
			break
		}
	}
	if err == nil && there == 0 {
		return ErrNone
	}
	return errors.Join(err, missing)
}

// folderParts are the parts of every installation in a folder.
var folderParts = []string{LogKeyFile, DatabaseFile, keys.Folder, AuthorityFolder}

func lookForParts(dir string) (there int, missing, err error) {
	for _, part := range folderParts {
		switch _, err := os.Stat(filepath.Join(dir, part)); {
		case err == nil:
			there++
		case !errors.Is(err, fs.ErrNotExist):
			return there, missing, err
		case missing == nil:
			missing = err
		}
	}
	return there, missing, nil
}

// furnish makes the authority, the log's key and the log of a new installation.
func furnish(ctx context.Context, c Config, dir string) error {
	if err := os.Mkdir(filepath.Join(dir, keys.Folder), 0o700); err != nil {
		return err
	}
	files := filestore.NewFolder(dir)
	helper := &token.Helper{}
	defer helper.Close()
	first, err := firstFiles(ctx, c, helper)
	for _, f := range first {
		err = errors.Join(err, files.Create(ctx, f.Name, f.Content))
	}
	if err != nil {
		return err
	}
	log, err := openLogKey(ctx, files)
	if err != nil {
		return err
	}
	store, err := sqlite.Create(ctx, filepath.Join(dir, DatabaseFile))
	if err != nil {
		return err
	}
	book, err := ledger.Create(ctx, ledgerConfig(c, ledger.CheckpointFile(filepath.Join(dir, CheckpointFile)), store, log))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return book.Close()
}

// An installation is made inside its own folder. The folder may exist already, belong to a service manager or be a mount point.
// These names are used there while it is made:
const (
	draftPrefix = ".jurat-new-"  // a draft: a process is writing it, or crashed while it did. Readers ignore it
	finished    = ".jurat-made"  // the complete content, while its parts are moved into the folder
	makingLock  = "jurat-making" // the lock that a process holds while it writes or moves
	lockPause   = 20 * time.Millisecond
)

// Settle makes the content of a folder that is missing or empty. The content appears whole or not at all: build writes it into a draft, and
// renaming the draft commits it. If a crash follows, the next process that opens the folder moves the remaining parts. Settle returns an
// error if the folder holds anything else, and passes on the errors of build and of the file system.
func Settle(ctx context.Context, dir string, build func(draft string) error) (err error) {
	dir = filepath.Clean(dir)
	if err := CheckVacant(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	switch made := os.Mkdir(dir, 0o700); {
	case made == nil:
		defer func() {
			if err != nil {
				_ = os.Remove(dir) // Remove keeps a folder that is not empty
			}
		}()
	case !errors.Is(made, fs.ErrExist):
		return made
	}
	return makingAlone(ctx, dir, func() error {
		if err := carryOut(dir); err != nil {
			return err
		}
		if err := CheckVacant(dir); err != nil {
			return err
		}
		return makeIn(dir, build)
	})
}

func makeIn(dir string, build func(draft string) error) (err error) {
	if err := removeDrafts(dir); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(dir, draftPrefix+"*") // mode 0700
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(draft)) }() // removes nothing after the rename
	if err := build(draft); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(draft, draft); err != nil {
		return err
	}
	if err := os.Chmod(dir, 0o700); err != nil && !errors.Is(err, fs.ErrPermission) { // another user's folder stays as it is: the files in it have their own modes
		return err
	}
	// A crash before this rename leaves a draft. The next call removes it.
	if err := os.Rename(draft, filepath.Join(dir, finished)); err != nil {
		return err
	}
	if err := atomicfile.SyncFolders(dir, dir); err != nil {
		return err
	}
	// After a crash from here on, carryOut moves the rest.
	return carryOut(dir)
}

// Settled finishes a Settle that a crash interrupted. If there is nothing to finish, it does nothing.
func Settled(ctx context.Context, dir string) error {
	if _, err := os.Lstat(filepath.Join(dir, finished)); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	return makingAlone(ctx, dir, func() error { return carryOut(dir) })
}

// carryOut moves the finished parts into their folder. The caller holds the lock. After a crash between two moves, the next call goes on.
func carryOut(dir string) error {
	from := filepath.Join(dir, finished)
	parts, err := os.ReadDir(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, p := range parts {
		part, to := p.Name(), filepath.Join(dir, p.Name())
		if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(fmt.Errorf("%s exists already, so the part in %s cannot be moved there", to, from), err)
		}
		if err := os.Rename(filepath.Join(from, part), to); err != nil {
			return err
		}
	}
	if err := atomicfile.SyncFolders(dir, dir); err != nil { // removing the empty folder says that all parts were moved, so the moves must be durable first
		return err
	}
	if err := os.Remove(from); err != nil {
		return err
	}
	return atomicfile.SyncFolders(dir, dir)
}

// makingAlone calls do while it holds the folder's lock. It waits for the lock until the context ends.
func makingAlone(ctx context.Context, dir string, do func() error) error {
	for {
		_, release, err := lock.NewFolder(dir).Lock(ctx, makingLock)
		if err == nil {
			defer release()
			return do()
		}
		if !errors.Is(err, lock.ErrTaken) {
			return fmt.Errorf("locking %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lockPause):
		}
	}
}

func removeDrafts(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), draftPrefix) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return err
}

// CheckVacant returns an error if a folder holds anything except lost+found and the names that Settle uses. A missing folder is vacant.
func CheckVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "lost+found", name == makingLock, name == finished, strings.HasPrefix(name, draftPrefix):
		default:
			return fmt.Errorf("the folder %s is not empty: %q is in it", dir, name)
		}
	}
	return nil
}

// Any number of machines share an installation in a database, and none of them is special. The database holds the log and the small files.
// The data folder of each machine holds that machine's own files:
//
//	checkpoint      the last checkpoint that this machine has seen, which reveals a database that was set back
//	cases/          case files that were written here

// connect connects to a database, whether it holds an installation or not.
func connect(ctx context.Context, c Config) (*place, error) {
	text, err := filestore.ReadPrivate(c.WrappingKey)
	if err != nil {
		return nil, fmt.Errorf("reading wrapping key: %w", err)
	}
	keys, err := filestore.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading wrapping key: %s: %w", c.WrappingKey, err)
	}
	pool, err := postgres.Connect(ctx, c.DB)
	if err != nil {
		return nil, err
	}
	files := postgres.NewFiles(pool, keys)
	p := &place{Dir: c.Dir, Files: files, shared: files, values: erasure.InFiles{Files: files}, Locks: postgres.NewLocks(pool.Config().ConnConfig), Database: pool,
		parts: "the ledger and log.key in the database, and the checkpoint in " + c.Dir}
	published := ledger.CheckpointFile(filepath.Join(c.Dir, CheckpointFile))
	p.published = published
	p.store = func(ctx context.Context) (storage.Store, error) {
		store, err := postgres.Open(ctx, pool)
		if err != nil {
			return nil, err
		}
		if p.Joined, err = join(ctx, published, store); err != nil {
			return nil, errors.Join(err, store.Close())
		}
		return store, nil
	}
	return p, nil
}

// join stores the database's checkpoint on a machine that has seen no checkpoint of this log. A machine trusts the database for a
// checkpoint only this once. An operator who copies another machine's checkpoint there first avoids even that.
func join(ctx context.Context, published ledger.CheckpointFile, store storage.Store) (joined bool, err error) {
	seen, err := published.Load(ctx)
	if err != nil || seen != "" {
		return false, err
	}
	signed, err := store.Checkpoint(ctx)
	if err != nil || signed == "" {
		return false, err
	}
	return true, published.Store(ctx, signed)
}

// isWhole returns ErrNone if the database holds no installation, or an unfinished one, and another error if a part or a wrapping key is missing.
func (p *place) isWhole(ctx context.Context) error {
	there, err := p.shared.Prepared(ctx)
	if err != nil {
		return err
	}
	store, err := postgres.Open(ctx, p.Database)
	if errors.Is(err, postgres.ErrNoTables) && !there {
		return ErrNone
	}
	if err != nil {
		return err
	}
	signed, err := store.Checkpoint(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if !there && signed == "" {
		return ErrNone
	}
	if !there { // another machine may have begun since: it writes the keys before the log's first checkpoint
		if there, err = p.shared.Prepared(ctx); err != nil {
			return err
		}
	}
	if !there {
		return errors.New("the database has a log, but lacks the keys that belong to it: restore both together")
	}
	if err := p.shared.CheckKeys(ctx); err != nil {
		return fmt.Errorf("a secret in the database cannot be read: %w", err)
	}
	if signed == "" {
		return ErrNone
	}
	return nil
}

// creating is the number of the lock that a machine holds while it makes an installation.
const creating = `hashtext('jurat: installation')`

// createInDatabase makes an installation in a database, or finishes one that another machine began. Of several machines one gets created = true.
func createInDatabase(ctx context.Context, c Config) (created bool, err error) {
	p, err := connect(ctx, c)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, p.leave()) }()
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return false, err
	}
	err = p.alone(ctx, func() error {
		created, err = p.furnish(ctx, c)
		return err
	})
	return created, err
}

// alone calls do while this machine holds the lock. Other machines wait for it.
func (p *place) alone(ctx context.Context, do func() error) (err error) {
	lock, err := p.Database.Acquire(ctx)
	if err != nil {
		return err
	}
	session := lock.Hijack() // closing this connection releases the lock; the pool must not reuse it
	defer func() { err = errors.Join(err, session.Close(context.WithoutCancel(ctx))) }()
	if _, err := session.Exec(ctx, `SELECT pg_advisory_lock(`+creating+`)`); err != nil {
		return err
	}
	return do()
}

// tables creates missing tables, and opens the log's store.
func (p *place) tables(ctx context.Context) (*postgres.Store, error) {
	store, err := postgres.Create(ctx, p.Database)
	if err != nil {
		return nil, err
	}
	if err := pgx.BeginFunc(ctx, p.Database, func(tx pgx.Tx) error { return postgres.PrepareFiles(ctx, tx) }); err != nil {
		return nil, errors.Join(err, store.Close())
	}
	return store, nil
}

// furnish makes the authority and the log's key in one transaction, and then the log. After a crash between the two, the next call uses the keys.
func (p *place) furnish(ctx context.Context, c Config) (created bool, err error) {
	store, err := p.tables(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	if err := p.shared.CheckKeys(ctx); err != nil {
		return false, fmt.Errorf("a secret in the database cannot be read: %w", err)
	}
	signed, err := store.Checkpoint(ctx)
	if err != nil || signed != "" {
		return false, err // another machine made it first
	}
	if head, err := store.Head(ctx); err != nil || head.Size > 0 {
		return false, errors.Join(err, errors.New("records but no checkpoint, as after a broken restore: restore again, or DROP SCHEMA jurat CASCADE and start anew"))
	}
	log, err := openLogKey(ctx, p.Files)
	if errors.Is(err, fs.ErrNotExist) {
		first, err := firstFiles(ctx, c, &p.Helper)
		if err != nil {
			return false, err
		}
		if err := p.shared.CreateAll(ctx, first); err != nil {
			return false, err
		}
		if log, err = openLogKey(ctx, p.Files); err != nil {
			return false, err
		}
	} else if err != nil {
		return false, err
	}
	_, err = ledger.Create(ctx, ledgerConfig(c, p.published, store, log))
	return err == nil, err
}

// Rewrap wraps every secret in the database under the first key of the wrapping-key file, unless it is already. If it is interrupted, the
// caller calls it again. It returns how many secrets it wrapped, and the name of the key. For a data folder it returns an error.
func (i *Installation) Rewrap(ctx context.Context, progress func(done int64)) (done int64, key filestore.ID, err error) {
	defer fault.While(&err, "wrapping secrets again")
	if i.shared == nil {
		return 0, "", errors.New("secrets in a data folder are not wrapped")
	}
	done, err = i.shared.Rewrap(ctx, progress)
	return done, i.shared.Key(), err
}
