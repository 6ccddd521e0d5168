// Package installation holds the keys, the time-stamping authority and the log that belong together. They are in the data folder of one
// machine, or in a PostgreSQL database that several machines share. The folder contains
//
//	jurat.db        the ledger
//	jurat.db-reserve  reserved space, so that a full disk does not stop revocations
//	work.db         the queue of trials; rebuilt from the ledger if it is missing
//	find.db         the index of words; made again from the ledger if it is missing
//	checkpoint      the last published checkpoint; the ledger must never be behind it
//	log.key         the key that signs checkpoints, or a reference to it on a token
//	keys/ROLE/      private keys of actors
//	authority/      keys and certificates of the built-in time-stamping authority
//	cases/          case files of trials
//	claims/         locks on trials that are under way
//	witnesses.json  the witnesses that are asked to cosign checkpoints
//	cosigned        the last checkpoint that the witnesses cosigned
//	outside-authorities/  time-stamping authorities that stamp beside the built-in one
//	apart/values.db values that are sealed apart, encrypted
//	apart/settings/ which values are always sealed apart, for each actor
//	apart/erasing/  erasures in progress
//	apart-keys/     the keys to apart/values.db: keep them out of every backup from which they cannot be deleted
//	tickets/        sign-in links, each for one use
//	servers/        secrets that all servers of the installation share
//
// In a database these are tables: the ledger's, and a table of files with the same names (see package postgres). Each machine then has a
// folder of its own, with only checkpoint, cases/ and find.db.
//
// # A backup has one form
//
// A backup is one SQLite file, even if the installation is in a database: the log, the values sealed apart, and the small files. So there is one
// way to restore it, and a way from one machine to several and back. A restore to a database writes the checkpoint last: before that it can be repeated.
//
// # The act first, then the content
//
// Expiry removes the content of old records. Their ids, places and hashes stay, so all proofs stand. First it is noted which records are to go
// (storage.Expiry). Then one act is sealed that says how many, with a digest of their places. Only then their content goes, some records in a
// transaction. Notes without an act are dropped by the next run. After the act, the next run or opening goes on with the records that it is about.
//
// # Time stamps prove the age of a record
//
// Its claim does not count. Records are at least operator.MinRetention days old, by the clock and by the newest time stamp of the log. So a
// clock that was set ahead removes nothing too early, unless an authority's clock was ahead too.
//
// # What expiry leaves
//
// The operator's acts, because every start reads those on keys. What waits for a time stamp. Chains that the order excepts. Whatever
// ExpiryOrder.Stays names: trials that are open or wait for a person.
//
// # Each machine has seen a checkpoint
//
// A restored older database looks consistent to itself. Each machine therefore keeps the last checkpoint that it has seen, outside the
// database. This checkpoint must not be restored from the same backup as the database.
//
// # The clock is not set back
//
// The installation remembers the latest time that this process has used, that the log's last record or a record that a new one follows bears,
// or at which a key begins that is used. So the clocks of several processes and machines agree where it matters. If the system's clock is
// behind that by at most a day, the installation's stands still until it has caught up (see steady). Record ids still contain the system's time.
// A clock that goes back by more than a day is believed. Before the begin of the authority's certificate nothing is sealed.
package installation

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/fault"
	"jurat/internal/log/erasure"
	"jurat/internal/log/filestore"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/fsck"
	"jurat/internal/log/ledger/sqlite"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/lock"
	"jurat/internal/log/postgres"
	"jurat/internal/log/stamping"
	"jurat/internal/log/token"
	"jurat/internal/log/witness"
	"jurat/timestamp"
	"jurat/verify"
	"jurat/verify/trust"
)

// Config says where an installation is and how it works.
type Config struct {
	Dir         string             // the data folder; with DB, the folder of this machine's own files
	DB          string             // URL of a PostgreSQL database that several machines share; "": everything is in Dir
	WrappingKey string             // with DB: the file with the key that wraps the secrets there
	Algorithm   evidence.Algorithm // of first keys that are made from now on; "": ES256
	PostQuantum bool               // every actor signs twice, the second time with ML-DSA-65. false: only actors that have such a key do
	TSA         []string           // names or URLs of the authorities that stamp new records; nil: the built-in authority and all outside ones
	Now         func() time.Time   // nil: time.Now. If it goes back, the installation's clock stands still until it has caught up
	Random      io.Reader          // for record ids; nil: crypto/rand
	Token       *Token             // of a new installation: the token that holds the keys of its authority; nil: in files
}

type lent struct{}

// Lend returns a context by which package recorder, whose interface names nothing internal, records into this installation instead of opening one.
func (i *Installation) Lend(ctx context.Context) context.Context {
	return context.WithValue(ctx, lent{}, i)
}

// Lent returns the installation that Lend put into the context, or nil.
func Lent(ctx context.Context) *Installation {
	i, _ := ctx.Value(lent{}).(*Installation)
	return i
}

// An Installation is an open installation.
type Installation struct {
	Keys       *keys.Ring
	Ledger     *ledger.Ledger
	Apart      *erasure.Keeper
	Timekeeper *stamping.Timekeeper
	Witnesses  *witness.Asker

	*place
	authority *stamping.Own
	stampers  *stamping.Stampers // the built-in authority and the outside ones
	log       logKey
	clock     *steady
	now       func() time.Time  // clock's
	after     func(step string) // called after each step of an erasure or a key change; tests crash there
}

// The parts of a data folder that other packages name.
const (
	DatabaseFile    = "jurat.db"
	CheckpointFile  = "checkpoint"
	LogKeyFile      = "log.key"
	AuthorityFolder = "authority"
	CasesFolder     = "cases"
)

// ErrNone says that the folder or database holds no installation.
var ErrNone = errors.New("there is no jurat installation here")

// ErrNoWrappingKey says that the configuration names a database, but no wrapping key for the secrets in it.
var ErrNoWrappingKey = errors.New("the database's secrets are wrapped, but no wrapping key is given")

// Create makes an installation in a vacant folder, or in a database, whole or not at all. If there is one, the error has fs.ErrExist in its chain.
func Create(ctx context.Context, c Config) (err error) {
	defer fault.While(&err, "making an installation in %s", c.Where())
	created, err := create(ctx, c)
	if err == nil && !created {
		err = fmt.Errorf("%w: there is an installation in %s", fs.ErrExist, c.Where())
	}
	return err
}

func create(ctx context.Context, c Config) (created bool, err error) {
	if err := c.check(); err != nil {
		return false, err
	}
	if c.DB != "" {
		return createInDatabase(ctx, c)
	}
	err = Settle(ctx, c.Dir, func(draft string) error { return furnish(ctx, c, draft) })
	return err == nil, err
}

// Open opens an installation. If there is none, the error has ErrNone in its chain. If nothing can be written, Open opens it for reading:
// Ledger.ReadOnly returns the reason, and every write fails with ledger.ErrReadOnly or the system's error.
func Open(ctx context.Context, c Config) (*Installation, error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, err
	}
	config.Cosigned = witness.CosignedFile{Files: i.Files}
	if i.Ledger, err = ledger.Open(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("%s do not fit together: %w", i.parts, err), config.Store.Close(), i.leave())
	}
	i.Apart.Operator = i.operator()
	i.Witnesses = &witness.Asker{Files: i.Files, Ledger: i.Ledger, Log: i.log.verifier, Now: i.now,
		Check: func(ctx context.Context, demanded *witness.Settings) error {
			_, err := i.trustNow(ctx, demanded)
			return err
		}}
	i.Timekeeper = &stamping.Timekeeper{Ledger: i.Ledger, Operator: i.operator(), Stampers: i.stampers, Files: i.Files, Now: i.now}
	if err := i.begin(ctx, config.Store); err != nil {
		return nil, errors.Join(fmt.Errorf("opening %s: %w", c.Dir, err), i.Close())
	}
	return i, nil
}

// begin makes the clock continue, and finishes what a crash interrupted after the log had recorded it.
func (i *Installation) begin(ctx context.Context, store storage.Store) error {
	last, err := i.LastStamped(ctx)
	if i.clock.notBefore(last); err != nil || i.Ledger.ReadOnly() != nil {
		return err
	}
	if err := addDictionary(ctx, store, i.Files, i.authority, i.now()); err != nil {
		return err
	}
	if err := i.Keys.Tidy(ctx); err != nil {
		return err
	}
	return errors.Join(i.Apart.Finish(ctx), i.FinishExpiry(ctx))
}

// unlock opens everything except the ledger. The caller opens or examines the ledger with the returned config.
func unlock(ctx context.Context, c Config) (i *Installation, config ledger.Config, err error) {
	at, err := find(ctx, c)
	if err != nil {
		return nil, config, fmt.Errorf("opening %s: %w", c.Where(), err)
	}
	house := &steady{below: clock(c)}
	c.Now = house.now
	i = &Installation{place: at, clock: house, now: house.now, after: func(string) {}}
	if config, err = i.unlock(ctx, c); err != nil {
		return nil, config, errors.Join(err, i.leave())
	}
	return i, config, nil
}

func (i *Installation) unlock(ctx context.Context, c Config) (config ledger.Config, err error) {
	if i.Keys, err = keys.NewRing(keys.Config{Files: i.Files, Algorithm: c.Algorithm,
		PostQuantum: c.PostQuantum, Now: c.Now, Reach: i.clock.notBefore, Helper: &i.Helper, After: i.step,
		History: i.history((*ledger.Ledger).Keys), Known: i.history((*ledger.Ledger).KnownKeys),
		Change: func(ctx context.Context, plan func(*keys.History) ([]operator.KeyEventBody, error)) error {
			return i.operator().ChangeKeys(ctx, plan)
		}}); err != nil {
		return config, err
	}
	i.Apart = &erasure.Keeper{Store: erasure.NewStore(i.values), Files: i.Files, Now: i.now, CheckName: i.Keys.CheckName}
	i.Apart.After = i.step
	if i.authority, err = openAuthority(ctx, i.Files, &i.Helper, clock(c)); err != nil {
		return config, err
	}
	if i.log, err = openLogKey(ctx, i.Files); err != nil {
		return config, err
	}
	if i.stampers, err = stamping.Open(ctx, i.Files, i.authority, c.TSA, clock(c)); err != nil {
		return config, err
	}
	store, err := i.store(ctx)
	if err != nil {
		return config, err
	}
	config = ledgerConfig(c, i.published, store, i.log)
	config.Stamper, config.Settler, config.Apart = i.stampers, i.stampers.Settler(), i.Apart
	config.CatchUp, config.Reach, config.Began = i.clock.catchUp, i.clock.notBefore, i.Keys.Began
	return config, nil
}

func ledgerConfig(c Config, published ledger.Published, store storage.Store, log logKey) ledger.Config {
	return ledger.Config{Store: store, Signer: log.signer, Verifier: log.verifier, Random: c.Random, Now: c.Now, Published: published}
}

// Fsck examines the ledger in any state, even if Open refuses it. It checks each record's signature and time stamp against this
// installation's own keys. It returns the damage that it found, and how many records the log has.
func Fsck(ctx context.Context, c Config, progress func(done, total int64)) (damages []fsck.Damage, size int64, err error) {
	i, config, err := unlock(ctx, c)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, config.Store.Close(), i.leave()) }()
	history, damaged := keys.NewHistory(), []fsck.Damage{} // if the log contradicts itself about keys, only the key files remain as a source
	if read, err := ledger.ReadKeys(ctx, config.Store); err == nil {
		history = read
	} else {
		damaged = []fsck.Damage{{Kind: fsck.DamageKeyEvents, Index: -1, Detail: err.Error()}}
	}
	trusted, err := i.trust(ctx, history, nil)
	if err != nil {
		return nil, 0, err
	}
	apart, err := erasure.NewFsck(ctx, i.Apart, config.Store)
	if err != nil {
		return nil, 0, err
	}
	check := checkRecord(keys.Forever(trusted))
	expired := &expiryFsck{store: config.Store, byAct: map[string][]int64{}}
	log := fsck.Log{Store: config.Store, Verifier: config.Verifier, Published: config.Published}
	damages, err = fsck.Run(ctx, log, fsck.Options{Progress: progress, Check: func(r *evidence.Record, waits bool) error {
		if err := apart.Record(ctx, r); err != nil { // which is worse than what a clock did
			return errors.Join(err, check(r, waits))
		}
		return check(r, waits)
	}, Expired: expired.Expired})
	damages = append(damages, damaged...)
	if err != nil {
		return damages, 0, err
	}
	for _, run := range []func(context.Context) ([]fsck.Damage, error){apart.Run, expired.Run} {
		found, err := run(ctx)
		damages = append(damages, found...)
		if err != nil {
			return damages, 0, err
		}
	}
	head, err := config.Store.Head(ctx)
	return damages, head.Size, err
}

// checkRecord returns a function that verifies a record against this installation's own trust. The function returns a *fsck.ClockError for a
// record whose key begins later than it was stamped, by no more than a clock stands still for.
func checkRecord(trusted *trust.Trust) func(r *evidence.Record, waits bool) error {
	memory := timestamp.NewMemory()
	earlier := *trusted
	earlier.Keys = slices.Clone(trusted.Keys)
	for n := range earlier.Keys {
		if from := &earlier.Keys[n].NotBefore; !from.IsZero() {
			*from = from.Add(-mostBack)
		}
	}
	check := func(r *evidence.Record, waits bool, by *trust.Trust) error {
		report := verify.Record(r, verify.Options{Trust: by, Memory: memory})
		for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
			f := report.Of(g)
			if f.Rule == verify.Skew {
				continue // a clock was wrong, but the record is as it was sealed
			}
			if waits && g != verify.Content && f.Status != verify.Refuted {
				continue // without a time stamp, this is not proved yet
			}
			if f.Status != verify.Proved {
				return fmt.Errorf("%s %s: %s", g, f.Status, f.Reason)
			}
		}
		return nil
	}
	return func(r *evidence.Record, waits bool) error {
		err := check(r, waits, trusted)
		if err != nil && check(r, waits, &earlier) == nil {
			return &fsck.ClockError{Err: err}
		}
		return err
	}
}

// OpenOrCreate opens an installation, and makes one first if there is none. created reports whether it made one.
func OpenOrCreate(ctx context.Context, c Config) (i *Installation, created bool, err error) {
	i, err = Open(ctx, c)
	if !errors.Is(err, ErrNone) {
		return i, false, err
	}
	created, err = create(ctx, c)
	if err != nil {
		if i, openErr := Open(ctx, c); openErr == nil {
			return i, false, nil // another process made it first
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

// Close closes the ledger and releases all locks. Acknowledged records are on disk already.
func (i *Installation) Close() error {
	return errors.Join(i.Ledger.Close(), i.leave())
}

func (i *Installation) step(name string) { i.after(name) }

// operator seals the operator's acts in this installation.
func (i *Installation) operator() ledger.Operator {
	return ledger.Operator{Ledger: i.Ledger, Keys: i.Keys}
}

// CaseFile returns the default path of a trial's case file.
func (i *Installation) CaseFile(trialID string) string {
	return filepath.Join(i.Dir, CasesFolder, trialID+".jurat")
}

// A place is where an installation is: the data folder of one machine, or a database that several machines share.
type place struct {
	Dir      string          // the data folder; with Database, the folder of this machine's own files
	Files    filestore.Store // the small files
	Locks    lock.Locks      // on trials: they keep other processes from acting in one
	Database *pgxpool.Pool   // that machines share; nil: the installation is in a folder
	Joined   bool            // this machine had no checkpoint of the log, and trusted the database for the latest one
	Helper   token.Helper    // signs with keys on tokens

	shared    *postgres.Files  // Files, if they are in the shared database; nil: they are in a folder
	values    storage.Values   // that are sealed apart
	published ledger.Published // the last checkpoint that this machine has seen

	store func(context.Context) (storage.Store, error) // opens the log's store
	parts string                                       // names the parts that must belong together, for messages
}

// find finds an installation. If there is no installation, the error has ErrNone in its chain.
func find(ctx context.Context, c Config) (*place, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	if c.DB == "" {
		return findInFolder(ctx, c)
	}
	p, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := p.isWhole(ctx); err != nil {
		return nil, errors.Join(err, p.leave())
	}
	return p, nil
}

// leave releases the place's locks, helper and connections. The caller has closed its store.
func (p *place) leave() error {
	err := p.Locks.Close()
	p.Helper.Close()
	if values, is := p.values.(io.Closer); is {
		err = errors.Join(err, values.Close())
	}
	if p.Database != nil {
		p.Database.Close()
	}
	return err
}

// check returns an error if a configuration names no data folder, or names a database and lacks a wrapping key or a vacant folder.
func (c Config) check() error {
	switch {
	case c.Dir == "":
		return errors.New("no data folder is named")
	case c.DB == "":
		return nil
	}
	if err := postgres.CheckURL(c.DB); err != nil {
		return err
	}
	if c.WrappingKey == "" {
		return ErrNoWrappingKey
	}
	for _, part := range []string{LogKeyFile, DatabaseFile} {
		if _, err := os.Stat(filepath.Join(c.Dir, part)); err == nil {
			return fmt.Errorf("the folder %s holds an installation of its own (%s): name another folder for this machine's own files", c.Dir, part)
		}
	}
	return nil
}

// Where returns where an installation is, for messages. The text contains no password.
func (c Config) Where() string {
	if c.DB == "" {
		return c.Dir
	}
	u, err := url.Parse(c.DB)
	switch {
	case err != nil || u.Path == "" || u.Path == "/":
		return "the database"
	case u.Host == "": // the URL names a socket, or the environment names the host
		return "the database " + filepath.Base(u.Path)
	}
	return fmt.Sprintf("the database %s on %s", filepath.Base(u.Path), u.Host)
}

// mostBack is the longest step back for which the clock stands still. After a longer step, the clock follows.
const mostBack = 24 * time.Hour

// A steady clock does not go back: while the clock below it is behind a time that was already used, it stands still. It is safe for concurrent use.
//
// The program cannot know which of the two times is right. A time stamp that is too late says too little. One that is too early says something
// false: that something was signed before its signer had the key, or before the act that it refers to, so that a verifier could refute an honest
// act. An operator who sets the clock back by more than a day does so on purpose: otherwise one leap ahead would stop the clock for years.
type steady struct {
	below func() time.Time

	mu   sync.Mutex // held while last is read or written
	last time.Time
}

func (s *steady) now() time.Time {
	now := s.below()
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Before(s.last) && s.last.Sub(now) <= mostBack {
		return s.last
	}
	s.last = now
	return now
}

// notBefore makes the clock continue from t, if t is later than its last time.
func (s *steady) notBefore(t time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.After(s.last) {
		s.last = t
	}
}

// catchUp makes the clock continue from the time stamps of a record of the log.
func (s *steady) catchUp(r *evidence.Record) { s.notBefore(stampedLast(r.Timestamps)) }

// LastStamped returns the latest time that the time stamps of the log's last record say, and the zero time if there is none.
func (i *Installation) LastStamped(ctx context.Context) (time.Time, error) {
	size, err := i.Ledger.Size(ctx)
	if err != nil || size == 0 {
		return time.Time{}, err
	}
	rows, err := i.Ledger.RowsFrom(ctx, size-1, 1)
	if err != nil {
		return time.Time{}, err
	}
	return stampedLast(rows[0].Timestamps), nil
}

// stampedLast returns the latest time that time stamps say, and the zero time if there is none.
func stampedLast(stamps []evidence.Timestamp) (last time.Time) {
	for _, t := range stamps {
		token, err := timestamp.Parse(t.Token)
		if err != nil {
			continue // another kind of time stamp
		}
		if at := token.UnverifiedInfo().GenTime; at.After(last) {
			last = at
		}
	}
	return last
}

// ErrOwner says that a data folder belongs to another user than this process's.
var ErrOwner = errors.New("it belongs to another user")

// checkOwner returns ErrOwner for a file of another user. Root could open it, but would leave keys that the owner's server cannot read.
func checkOwner(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	stat := reflect.Indirect(reflect.ValueOf(info.Sys()))
	if stat.Kind() != reflect.Struct || !stat.FieldByName("Uid").IsValid() { // this system has no Unix owners
		return nil
	}
	uid := fmt.Sprint(stat.FieldByName("Uid"))
	if uid == strconv.Itoa(os.Geteuid()) {
		return nil
	}
	owner := "#" + uid // as sudo takes a number
	if account, err := user.LookupId(uid); err == nil {
		owner = account.Username
	}
	return fmt.Errorf("%w: %s is %s's: run it as that user: sudo -u '%s' jurat …", ErrOwner, path, owner, owner)
}

// Ready returns an error if the log accepts no records, a helper does not answer, or a file that sealing or a trial needs is unreadable.
func (i *Installation) Ready(ctx context.Context) error {
	if err := i.Ledger.CanAppend(ctx); err != nil {
		return err
	}
	if err := i.Helper.Ready(ctx); err != nil || i.Database != nil {
		return err
	}
	if _, err := i.values.Read(ctx, "none"); !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading what is sealed apart: %w", err)
	}
	for _, part := range []string{LogKeyFile, keys.Folder, AuthorityFolder, stamping.Folder, sqlite.KeysFolder, erasure.SettingsFolder, erasure.IntentsFolder, ticketsFolder, secretsFolder, witness.SettingsFile} {
		err := filepath.WalkDir(filepath.Join(i.Dir, part), func(path string, entry fs.DirEntry, err error) error {
			if err := errors.Join(err, ctx.Err()); err != nil {
				return err
			}
			if !entry.Type().IsRegular() {
				return nil
			}
			file, err := os.Open(path)
			if err != nil {
				return err
			}
			return file.Close()
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // tickets may be removed meanwhile
			return fmt.Errorf("reading the installation's files: %w", err)
		}
	}
	return nil
}
