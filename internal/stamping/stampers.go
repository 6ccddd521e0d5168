package stamping

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"jurat/internal/filestore"
	"jurat/internal/ledger"
	"jurat/timestamp"
	"jurat/verify/trust"
)

// BuiltIn names the built-in authority.
const BuiltIn = "built-in"

const (
	sealingTime  = 10 * time.Second // how long authorities outside may hold up one record
	firstPause   = 30 * time.Second // for which an authority that has failed is left alone; doubled at each further failure
	longestPause = 10 * time.Minute
)

// ErrNotConfigured says that there is no authority of this name or URL here, so that its answers could not be checked.
var ErrNotConfigured = errors.New("no such time-stamping authority is configured")

// Stampers are the built-in authority and those outside. They are safe for concurrent use.
type Stampers struct {
	own      *Own
	ownToo   bool // the built-in authority stamps records
	outside  []*stamper
	selected []*stamper // those outside that stamp records
	trusted  []trust.Authority

	Patience time.Duration // for which authorities outside may hold up one record; Open sets 10 seconds
}

// Config says which authorities there are.
type Config struct {
	Files filestore.Store // has those outside
	Own   *Own
	Use   []string // names or URLs of those that stamp what is sealed; empty: all
	Now   func() time.Time
}

// Open reads every configured authority, and selects those that are to stamp.
func Open(ctx context.Context, c Config) (*Stampers, error) {
	list, err := listOutside(ctx, c.Files)
	if err != nil {
		return nil, err
	}
	s := &Stampers{own: c.Own, Patience: sealingTime}
	for _, o := range list {
		asks, roots, err := o.check()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.Files.Where(outsideFile(o.Name)), err)
		}
		s.outside = append(s.outside, &stamper{Client: asks, name: o.Name, url: o.URL, batch: o.Batch, now: c.Now})
		s.trusted = append(s.trusted, o.trusted(roots)...)
	}
	return s, s.selectOnly(c.Use)
}

func (s *Stampers) selectOnly(wanted []string) error {
	if len(wanted) == 0 {
		s.ownToo, s.selected = true, s.outside
		return nil
	}
	for _, w := range wanted {
		if w == BuiltIn {
			s.ownToo = true
			continue
		}
		found := slices.IndexFunc(s.outside, func(c *stamper) bool { return c.name == w || c.url == w })
		if found < 0 {
			return fmt.Errorf("%q: %w", w, ErrNotConfigured)
		}
		if !slices.Contains(s.selected, s.outside[found]) {
			s.selected = append(s.selected, s.outside[found])
		}
	}
	return nil
}

// of returns the authority outside with this name, or nil.
func (s *Stampers) of(name string) *stamper {
	i := slices.IndexFunc(s.outside, func(c *stamper) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.outside[i]
}

// Stamp implements ledger.Stamper: every selected authority is asked, all at the same time.
func (s *Stampers) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, s.ownToo)
}

// Settler stamps the operator's acts about stamps. They wait for nobody, so the built-in authority always stamps them.
func (s *Stampers) Settler() ledger.Stamper { return settler{s} }

// Together makes the built-in authority stamp with one token all records that wait, if it stamps what is sealed, and returns what does
// that; otherwise nil.
func (s *Stampers) Together() ledger.GroupStamper {
	if !s.ownToo {
		return nil
	}
	s.ownToo = false
	return together{s.own}
}

// Trusted is how a trust file names the authorities.
func (s *Stampers) Trusted() []trust.Authority {
	return append([]trust.Authority{s.own.trusted()}, s.trusted...)
}

type settler struct{ *Stampers }

// Stamp implements ledger.Stamper.
func (s settler) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, true)
}

func (s *Stampers) stamp(ctx context.Context, imprint [32]byte, own bool) (stamped ledger.Stamped, err error) {
	if own {
		token, err := s.own.stamp(ctx, imprint)
		if err != nil {
			return stamped, err
		}
		stamped.Tokens = [][]byte{token}
	}
	if len(s.selected) == 0 {
		return stamped, nil
	}
	tokens, errs := make([][]byte, len(s.selected)), make([]error, len(s.selected))
	bounded, cancel := context.WithTimeout(ctx, s.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for i, c := range s.selected {
		wg.Go(func() { tokens[i], errs[i] = c.unlessResting(bounded, imprint) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil { // it is not the authorities that failed
		return ledger.Stamped{}, err
	}
	for i, c := range s.selected {
		if errs[i] != nil {
			stamped.Missing = append(stamped.Missing, ledger.Missing{Authority: c.name, Reason: errs[i]})
			continue
		}
		stamped.Tokens = append(stamped.Tokens, tokens[i])
	}
	stamped.Earliest, err = earliest(stamped.Tokens)
	return stamped, err
}

// earliest is what the earliest of tokens proves, which were verified; zero if there are none.
func earliest(tokens [][]byte) (first time.Time, err error) {
	for _, der := range tokens {
		token, err := timestamp.Parse(der)
		if err != nil {
			return first, err
		}
		if at := provedBy(token); first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first, nil
}

// provedBy is the time at which a token's imprint existed at the latest, as readers count it.
func provedBy(token *timestamp.Unverified) time.Time {
	info := token.UnverifiedInfo()
	return info.GenTime.Add(info.Accuracy)
}

// A stamper is one authority outside. After a failure it rests for a while, so that an outage holds up one record, and
// not every one. It is safe for concurrent use.
type stamper struct {
	*Client
	name, url string
	batch     bool // it is not asked when something is sealed
	now       func() time.Time

	mu       sync.Mutex // held while what follows is read or written
	answered bool       // the last time that it was asked
	failure  error      // of the last time that it was asked
	pause    time.Duration
	rests    time.Time // until then
}

// errInBatches is why an authority does not stamp a record when it is sealed.
var errInBatches = errors.New("it stamps in batches, when 'jurat log stamp' asks it to")

// unlessResting asks the authority, unless it has just failed, or stamps in batches.
func (c *stamper) unlessResting(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if c.batch {
		return nil, errInBatches
	}
	if err := c.resting(); err != nil {
		return nil, err
	}
	return c.ask(ctx, imprint)
}

// ask asks the authority, and remembers how it went.
func (c *stamper) ask(ctx context.Context, imprint [32]byte) ([]byte, error) {
	return c.askImprint(ctx, timestamp.Imprint{Hash: crypto.SHA256, Sum: imprint[:]})
}

func (c *stamper) askImprint(ctx context.Context, imprint timestamp.Imprint) ([]byte, error) {
	token, err := c.StampImprint(ctx, imprint)
	if errors.Is(err, context.Canceled) {
		return nil, err // whoever asked has gone, which says nothing of the authority
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered, c.failure = err == nil, err
	if err == nil {
		c.pause, c.rests = 0, time.Time{}
		return token, nil
	}
	c.pause = min(max(firstPause, 2*c.pause), longestPause)
	c.rests = c.now().Add(c.pause)
	return nil, err
}

func (c *stamper) resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.rests) {
		return fmt.Errorf("not asked again before %s: %w", c.rests.UTC().Format(time.TimeOnly), c.failure)
	}
	return nil
}

// state says whether it answered the last time that it was asked, and why not; without either it was not asked.
func (c *stamper) state() (answered bool, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, c.failure
}
