// Package installation is the keys, the time-stamping authority and the log that belong together: in the data folder of one
// machine, or in a PostgreSQL database that several share. In the folder are
//
//	jurat.db        the ledger
//	jurat.db-reserve  room that is kept back for revocations on a full disk
//	jobs.db         which trials are to be held, made anew from the ledger where it is missing
//	checkpoint      the last published checkpoint: what the ledger may never fall behind
//	log.key         the key that signs checkpoints, or where it is on a token
//	keys/ROLE/      private keys of actors
//	authority/      keys and certificates of the built-in time-stamping authority
//	cases/          case files of trials
//	claims/         locks on trials that are under way
//	witnesses.json  who is asked to cosign checkpoints
//	cosigned        the last checkpoint that they have cosigned
//	outside-authorities/  time-stamping authorities that stamp beside the built-in one
//	archive/        archive files: what old rows of the ledger have shed
//	apart/values/   what is sealed apart, encrypted
//	apart/settings/ what is sealed apart of whom without being asked for
//	apart/erasing/  erasures that are under way
//	apart-keys/     the keys to apart/values: keep them out of every backup from which they cannot be deleted
//	tickets/        what is good for one use: sign-in links
//	servers/        secrets that all servers of the installation have
//
// In a database these are tables: the ledger's, and one of files with the same names (see package postgres). Each machine then
// has a folder with checkpoint and cases/ alone.
//
// # Each machine has seen a checkpoint
//
// A database that is set back passes for the present one to itself. What each machine keeps for itself is the one thing that must
// not come back from the same backup: the last checkpoint that it has seen.
//
// # The clock is not set back
//
// While the system's clock is behind what the installation has said already, in this process or in the log's last record, its clock
// stands still, for a day at most. A time stamp says "no later than": one that is too late says too little, one that is too early
// says what is false, and has an honest act refuted since its key was not yet made. Ids still have the new time in them, and sort
// where that is: the order is the log's. A clock that goes back by more than a day is believed, since standing still for years is no
// answer; where it is then before the authority's certificate, nothing is sealed, and the error says so.
package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"time"

	"jurat/evidence"
	"jurat/internal/archive"
	"jurat/internal/erasure"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/ledger/fsck"
	"jurat/internal/ledger/storage"
	"jurat/internal/stamping"
	"jurat/internal/witness"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// Config is what an installation is opened with.
type Config struct {
	Dir         string             // the data folder; with DB, what this machine keeps for itself
	DB          string             // URL of a PostgreSQL database that several machines share; "": everything is in Dir
	Archives    string             // the folder of archive files, which all machines share; "": archive in Dir
	WrappingKey string             // with DB: the file with the key under which secrets are wrapped there
	Algorithm   evidence.Algorithm // of first keys made from now on; "": ES256
	PostQuantum bool               // every actor signs twice, the second time with ML-DSA-65. false: only who has such a key
	BatchTokens bool               // the built-in authority stamps with one token all records that wait, see RFC 4998
	TSA         []string           // names or URLs of the authorities that stamp what is sealed; nil: the built-in and all others
	Now         func() time.Time   // nil: time.Now. When it is set back, the installation's clock stands still until it has caught up
	Random      io.Reader          // of record ids; nil: crypto/rand
	Token       *Token             // of a new installation: where the keys of its log and authority are made; nil: in files

	Indexing func(done, total int64) // told how far an older log has got that is indexed when it is opened; nil: nobody is told
}

// An Installation is open.
type Installation struct {
	Dir       string
	Keys      *keys.Ring
	Ledger    *ledger.Ledger
	Registrar *keys.Registrar
	Archivist *archive.Archivist

	Apart      *erasure.Keeper
	Eraser     *erasure.Eraser
	Timekeeper *stamping.Timekeeper
	Witnesses  *witness.Asker

	*place
	authority *stamping.Own
	stampers  *stamping.Stampers // the authority, and those outside
	log       logKey
	texts     *erasure.Store
	archives  *archive.Folder
	clock     *steady
	now       func() time.Time  // clock's
	after     func(step string) // told of each step of an erasure or of a change to keys when it is done; tests crash there
}

// The parts of a data folder, for whoever copies it.
const (
	DatabaseFile    = "jurat.db"
	jobsFile        = "jobs.db"
	CheckpointFile  = "checkpoint"
	LogKeyFile      = "log.key"
	AuthorityFolder = "authority"
	CasesFolder     = "cases"
)

// ErrNone says that there is no installation in the folder.
var ErrNone = errors.New("there is no jurat installation here")

// ErrNoWrappingKey says that a database was named, and no key under which secrets are wrapped in it.
var ErrNoWrappingKey = errors.New("secrets are wrapped in a database, and no wrapping key is given")

// Create makes an installation where there is none: in a folder that does not exist or is empty, or in a database. It
// appears whole or not at all.
func Create(ctx context.Context, c Config) error {
	created, err := create(ctx, c)
	if err == nil && !created {
		err = fmt.Errorf("%w: there is an installation in %s", fs.ErrExist, c.Where())
	}
	if err != nil {
		return fmt.Errorf("making an installation in %s: %w", c.Where(), err)
	}
	return nil
}

func create(ctx context.Context, c Config) (created bool, err error) {
	if err := c.check(); err != nil {
		return false, err
	}
	if c.DB != "" {
		return createInDatabase(ctx, c)
	}
	err = createInFolder(ctx, c)
	return err == nil, err
}

// Open opens the installation in a folder, or returns an error with ErrNone in its chain if there is none. Where nothing can be written
// it is open for reading: Ledger.ReadOnly says why, and everything that would write fails with ledger.ErrReadOnly or the system's error.
func Open(ctx context.Context, c Config) (*Installation, error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, err
	}
	config.Cosigned = witness.CosignedFile{Files: i.files}
	if i.Ledger, err = ledger.Open(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("%s do not fit together: %w", i.parts, err), config.Store.Close(), i.leave())
	}
	i.assemble()
	if err := i.clock.goOn(ctx, i.Ledger); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", c.Dir, err), i.Close())
	}
	if i.Ledger.ReadOnly() != nil {
		return i, nil
	}
	// What a crash has left undone after the log was told of it is done now.
	if err := i.Keys.Tidy(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", c.Dir, err), i.Close())
	}
	if err := i.Eraser.Finish(ctx); err != nil {
		return nil, errors.Join(err, i.Close())
	}
	return i, nil
}

// assemble makes what works on the open ledger.
func (i *Installation) assemble() {
	i.Registrar = &keys.Registrar{Ring: i.Keys, Log: i.operator(), Now: i.now, After: i.step}
	i.Archivist = &archive.Archivist{Ledger: i.Ledger, Operator: i.operator(), Folder: i.archives, Claims: i.claims, Log: i.log.verifier,
		Now: i.now, Trust: i.Trust, Destroy: i.texts.Destroy, After: i.step}
	i.Eraser = &erasure.Eraser{Ledger: i.Ledger, Operator: i.operator(), Texts: i.texts, Files: i.files, Now: i.now,
		CheckHeld: i.Archivist.CheckHeld, After: i.step}
	i.Witnesses = &witness.Asker{Files: i.files, Ledger: i.Ledger, Log: i.log.verifier, Now: i.now, Check: i.canDemand}
	i.Timekeeper = &stamping.Timekeeper{Ledger: i.Ledger, Operator: i.operator(), Stampers: i.stampers, Files: i.files, Witnesses: i.Witnesses,
		Log: i.log.verifier, Now: i.now}
}

// unlock opens everything but the ledger, which must then be opened, or examined, with what is returned for it.
func unlock(ctx context.Context, c Config) (i *Installation, config ledger.Config, err error) {
	at, err := find(ctx, c)
	if err != nil {
		return nil, config, fmt.Errorf("opening %s: %w", c.Where(), err)
	}
	house := &steady{below: clock(c)}
	c.Now = house.now
	i = &Installation{Dir: c.Dir, place: at, clock: house, texts: erasure.NewStore(at.files), archives: archive.NewFolder(c.ArchiveDir()), now: house.now, after: func(string) {}}
	if config, err = i.unlock(ctx, c); err != nil {
		return nil, config, errors.Join(err, i.leave())
	}
	return i, config, nil
}

func (i *Installation) unlock(ctx context.Context, c Config) (config ledger.Config, err error) {
	if i.Keys, err = keys.NewRing(keys.Config{Files: i.files, Algorithm: c.Algorithm,
		PostQuantum: c.PostQuantum, Now: c.Now, History: i.history, Helpers: &i.Helpers}); err != nil {
		return config, err
	}
	i.Apart = &erasure.Keeper{Store: i.texts, Files: i.files, CheckName: i.Keys.CheckName}
	if i.authority, err = openAuthority(ctx, i.files, &i.Helpers, clock(c)); err != nil {
		return config, err
	}
	if i.log, err = openLogKey(ctx, i.files, &i.Helpers); err != nil {
		return config, err
	}
	if i.stampers, err = stamping.Open(ctx, stamping.Config{Files: i.files, Own: i.authority, Use: c.TSA, Now: clock(c)}); err != nil {
		return config, err
	}
	store, err := i.store(ctx)
	if err != nil {
		return config, err
	}
	config = ledgerConfig(c, i.published, store, i.log)
	config.Stamper, config.Settler, config.Apart = i.stampers, i.stampers.Settler(), i.Apart
	if c.BatchTokens {
		config.Group = i.stampers.Together()
	}
	config.Archive, config.Indexing = i.archives, c.Indexing
	return config, nil
}

func ledgerConfig(c Config, published ledger.Published, store storage.Store, log logKey) ledger.Config {
	return ledger.Config{Store: store, Signer: log.signer, Verifier: log.verifier, Random: c.Random, Now: c.Now, Published: published}
}

// Fsck examines the ledger, whatever state it is in: also one that Open refuses. It checks each record's signature and
// time stamp by this installation's own keys.
func Fsck(ctx context.Context, c Config, progress func(done, total int64)) (damages []fsck.Damage, size int64, err error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, config.Store.Close(), i.leave()) }()
	defer i.archives.Close()
	history, damaged := readHistory(ctx, config.Store)
	trusted, err := i.trust(ctx, history)
	if err != nil {
		return nil, 0, err
	}
	apart, err := erasure.NewFsck(ctx, i.texts, i.files, config.Store)
	if err != nil {
		return nil, 0, err
	}
	check := checkRecord(keys.Forever(trusted))
	archives, damagedBook := archive.NewFsck(ctx, i.archives, i.log.verifier, config.Store)
	damaged = append(damaged, damagedBook...)
	log := fsck.Log{Store: config.Store, Archive: config.Archive, Verifier: config.Verifier, Published: config.Published}
	damages, err = fsck.Run(ctx, log, fsck.Options{Progress: progress, Check: func(r *evidence.Record, waits bool) error {
		return errors.Join(apart.Record(ctx, r), check(r, waits))
	}, Expired: archives.Expired})
	damages = append(damages, damaged...)
	if err != nil {
		return damages, 0, err
	}
	for _, run := range []func(context.Context) ([]fsck.Damage, error){apart.Run, archives.Run} {
		found, err := run(ctx)
		damages = append(damages, found...)
		if err != nil {
			return damages, 0, err
		}
	}
	head, err := config.Store.Head(ctx)
	return damages, head.Size, err
}

// checkRecord holds a record against this installation's own trust.
func checkRecord(trusted *trust.Trust) func(r *evidence.Record, waits bool) error {
	options := verify.Options{Trust: trusted, Memory: timestamp.NewMemory()}
	return func(r *evidence.Record, waits bool) error {
		report := verify.Record(r, options)
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
			f := report.Of(g)
			if f.Rule == verify.Skew {
				continue // a clock was wrong, and the record is as it was sealed
			}
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
	created, err = create(ctx, c)
	if err != nil {
		if i, openErr := Open(ctx, c); openErr == nil {
			return i, false, nil // another process was quicker
		}
		return nil, false, fmt.Errorf("making an installation in %s: %w", c.Where(), err)
	}
	i, err = Open(ctx, c)
	return i, created, err
}

func clock(c Config) func() time.Time {
	if c.Now == nil {
		return time.Now
	}
	return c.Now
}

// Close closes the ledger, and lets go of what is claimed. What was acknowledged is on disk already.
func (i *Installation) Close() error {
	i.archives.Close()
	return errors.Join(i.Ledger.Close(), i.leave())
}

// step tells that a step is done.
func (i *Installation) step(name string) { i.after(name) }

// operator seals the operator's acts in this installation.
func (i *Installation) operator() ledger.Operator {
	return ledger.Operator{Ledger: i.Ledger, Keys: i.Keys}
}

// ArchiveFolder is where archives lie, in the data folder.
const ArchiveFolder = "archive"

// ArchiveDir is the folder of archive files.
func (c Config) ArchiveDir() string {
	if c.Archives != "" {
		return c.Archives
	}
	return filepath.Join(c.Dir, ArchiveFolder)
}

// CaseFile is where the case file of a trial goes unless the caller says otherwise.
func (i *Installation) CaseFile(trialID string) string {
	return filepath.Join(i.Dir, CasesFolder, trialID+".jurat")
}
