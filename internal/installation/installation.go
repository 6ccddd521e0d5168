// Package installation is a data folder: the keys, the time-stamping authority and the log that belong together.
//
//	jurat.db        the ledger
//	checkpoint      the last published checkpoint: what the ledger may never fall behind
//	log.key         the key that signs checkpoints
//	keys/ROLE/      private keys of actors
//	authority/      keys and certificates of the built-in time-stamping authority
//	cases/          case files of trials
//	claims/         locks on trials that are under way
//	outside-authorities/  time-stamping authorities that stamp beside the built-in one
//	apart/values/   what is sealed apart, encrypted
//	apart/settings/ what is sealed apart of whom without being asked for
//	apart/erasing/  erasures that are under way
//	apart-keys/     the keys to apart/values: keep them out of every backup from which they cannot be deleted
package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/keyring"
	"jurat/internal/ledger"
	"jurat/internal/ledger/sqlite"
	"jurat/internal/vault"
	"jurat/verify"
)

// Config is what an installation is opened with.
type Config struct {
	Dir         string             // the data folder
	Algorithm   evidence.Algorithm // of first keys made from now on; "": ES256
	PostQuantum bool               // every actor signs twice, the second time with ML-DSA-65. false: only who has such a key
	TSA         []string           // names or URLs of the authorities that stamp what is sealed; nil: the built-in and all others
	Now         func() time.Time   // nil: time.Now
	Random      io.Reader          // of record ids; nil: crypto/rand
}

// An Installation is an open data folder.
type Installation struct {
	Dir    string
	Keys   *keyring.Ring
	Ledger *ledger.Ledger

	authority *authority
	stampers  *stampers // the authority, and those outside
	log       logKey
	vault     *vault.Vault
	now       func() time.Time
	after     func(step string) // told of each step of an erasure or of a change to keys when it is done; tests crash there
}

const (
	databaseFile   = "jurat.db"
	checkpointFile = "checkpoint"
	logKeyFile     = "log.key"
	keysFolder     = "keys"
	clockFolder    = "authority"
	casesFolder    = "cases"
)

// ErrNone says that there is no installation in the folder.
var ErrNone = errors.New("there is no jurat installation here")

// Create makes an installation in a folder that does not exist or is empty. It appears whole or not at all.
func Create(ctx context.Context, c Config) error {
	if err := create(ctx, c); err != nil {
		return fmt.Errorf("creating installation: %w", err)
	}
	return nil
}

func create(ctx context.Context, c Config) error {
	if err := checkVacant(c.Dir); err != nil {
		return err
	}
	dir := filepath.Clean(c.Dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real // where a link leads to an empty folder, that one is replaced, and the link stays
	}
	parent := filepath.Dir(dir)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	draft, err := os.MkdirTemp(parent, ".jurat-new-*") // mode 0700; beside it, because rename stays on one file system
	if err != nil {
		return err
	}
	defer os.RemoveAll(draft) // nothing, once it has been renamed
	if err := furnish(ctx, c, draft); err != nil {
		return err
	}
	return install(draft, dir)
}

// install gives a finished installation its name, and makes the name durable. Remove takes away a folder only when it
// is empty, and Rename replaces none (os.Rename not even an empty one): of several processes that get here, one does.
func install(draft, dir string) error {
	if err := os.Remove(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// A crash here leaves nothing under this name, and the draft beside it.
	if err := os.Rename(draft, dir); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(dir))
}

func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func checkVacant(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("the folder %s is not empty", dir)
	}
	return nil
}

// furnish makes everything that an installation has from its first day.
func furnish(ctx context.Context, c Config, dir string) error {
	if err := createAuthority(filepath.Join(dir, clockFolder), clock(c)()); err != nil {
		return err
	}
	log, err := createLogKey(filepath.Join(dir, logKeyFile))
	if err != nil {
		return err
	}
	if _, err := keyring.New(keyring.Config{Dir: filepath.Join(dir, keysFolder)}); err != nil {
		return err
	}
	store, err := sqlite.Create(ctx, filepath.Join(dir, databaseFile))
	if err != nil {
		return err
	}
	book, err := ledger.Create(ctx, ledgerConfig(c, dir, store, log))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return book.Close()
}

// Open opens the installation in a folder, or returns an error with ErrNone in its chain if there is none.
func Open(ctx context.Context, c Config) (*Installation, error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, err
	}
	if i.Ledger, err = ledger.Open(ctx, config); err != nil {
		parts := []string{i.path(databaseFile), i.path(logKeyFile), i.path(checkpointFile)}
		return nil, errors.Join(fmt.Errorf("%s do not fit together: %w", strings.Join(parts, ", "), err), config.Store.Close())
	}
	// What a crash has left undone after the log was told of it is done now.
	if err := i.Keys.Tidy(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", c.Dir, err), i.Close())
	}
	if err := i.finishErasures(ctx); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// unlock opens everything but the ledger, which must then be opened, or examined, with what is returned for it.
func unlock(ctx context.Context, c Config) (i *Installation, config ledger.Config, err error) {
	if err := checkParts(c.Dir); err != nil {
		return nil, config, fmt.Errorf("opening %s: %w", c.Dir, err)
	}
	i = &Installation{Dir: c.Dir, vault: vault.New(c.Dir), now: clock(c), after: func(string) {}}
	if i.Keys, err = keyring.New(keyring.Config{Dir: filepath.Join(c.Dir, keysFolder), Algorithm: c.Algorithm,
		PostQuantum: c.PostQuantum, Now: c.Now, History: i.history}); err != nil {
		return nil, config, err
	}
	if i.authority, err = openAuthority(filepath.Join(c.Dir, clockFolder), clock(c)); err != nil {
		return nil, config, err
	}
	if i.log, err = openLogKey(filepath.Join(c.Dir, logKeyFile)); err != nil {
		return nil, config, err
	}
	store, err := sqlite.Open(ctx, filepath.Join(c.Dir, databaseFile))
	if err != nil {
		return nil, config, err
	}
	config = ledgerConfig(c, c.Dir, store, i.log)
	if i.stampers, err = openStampers(c, i.authority); err != nil {
		return nil, config, errors.Join(err, store.Close())
	}
	config.Stamper, config.Settler, config.Apart = i.stampers, settler{i.stampers}, i.vault
	return i, config, nil
}

// checkParts returns ErrNone where no part of an installation is, and an error that names the part where only some are:
// what is missing is restored from a backup, and never made anew by opening.
func checkParts(dir string) error {
	there, missing, err := lookForParts(dir)
	if err == nil && there > 0 && missing != nil {
		// An installation appears all at once, perhaps in the middle of the look at it.
		there, missing, err = lookForParts(dir)
	}
	if err == nil && there == 0 {
		return ErrNone
	}
	return errors.Join(err, missing)
}

func lookForParts(dir string) (there int, missing, err error) {
	for _, part := range []string{logKeyFile, databaseFile, keysFolder, clockFolder} {
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

func ledgerConfig(c Config, dir string, store ledger.Store, log logKey) ledger.Config {
	return ledger.Config{Store: store, Signer: log.signer, Verifier: log.verifier, Random: c.Random, Now: c.Now,
		Published: ledger.CheckpointFile(filepath.Join(dir, checkpointFile))}
}

// Fsck examines the ledger, whatever state it is in: also one that Open refuses. It checks each record's signature and
// time stamp by this installation's own keys.
func Fsck(ctx context.Context, c Config, progress func(done, total int64)) (damages []ledger.Damage, size int64, err error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, config.Store.Close()) }()
	keys, damaged := readHistory(ctx, config.Store)
	trust, err := i.trust(keys)
	if err != nil {
		return nil, 0, err
	}
	apart, err := newApartFsck(ctx, i, config.Store)
	if err != nil {
		return nil, 0, err
	}
	check := checkRecord(forever(trust))
	damages, err = ledger.Fsck(ctx, config, ledger.FsckOptions{Progress: progress, Check: func(r *evidence.Record, waits bool) error {
		return errors.Join(apart.record(r), check(r, waits))
	}})
	damages = append(damages, damaged...)
	if err != nil {
		return damages, 0, err
	}
	kept, err := apart.run(ctx)
	if err != nil {
		return damages, 0, err
	}
	damages = append(damages, kept...)
	head, err := config.Store.Head(ctx)
	return damages, head.Size, err
}

// checkRecord holds a record against this installation's own trust.
func checkRecord(trust *verify.Trust) func(r *evidence.Record, waits bool) error {
	return func(r *evidence.Record, waits bool) error {
		report := verify.Record(r, verify.Options{Trust: trust})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
			f := report.Of(g)
			if waits && g != verify.Content && f.Status != verify.Refuted {
				continue // what depends on its time is not proved yet
			}
			if f.Status != verify.Proved {
				return fmt.Errorf("%s %s: %s", g, f.Status, f.Reason)
			}
		}
		return nil
	}
}

// OpenOrCreate opens the installation in a folder, and makes one where there is none.
func OpenOrCreate(ctx context.Context, c Config) (i *Installation, created bool, err error) {
	i, err = Open(ctx, c)
	if !errors.Is(err, ErrNone) {
		return i, false, err
	}
	if err := Create(ctx, c); err != nil {
		if i, openErr := Open(ctx, c); openErr == nil {
			return i, false, nil // another process was quicker
		}
		return nil, false, err
	}
	i, err = Open(ctx, c)
	return i, true, err
}

func (i *Installation) path(part string) string { return filepath.Join(i.Dir, part) }

func clock(c Config) func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// Close closes the ledger. What was acknowledged is on disk already.
func (i *Installation) Close() error { return i.Ledger.Close() }

// CaseFile is where the case file of a trial goes unless the caller says otherwise.
func (i *Installation) CaseFile(trialID string) string {
	return filepath.Join(i.Dir, casesFolder, trialID+".jurat")
}
