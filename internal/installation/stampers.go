package installation

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
	"jurat/internal/tsa"
	"jurat/timestamp"
	"jurat/verify"
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

// stampers is the built-in authority and those outside.
type stampers struct {
	own      *authority
	ownToo   bool // the built-in authority stamps records
	outside  []*client
	selected []*client // those outside that stamp records
	trusted  []verify.Authority
	patience time.Duration // sealingTime, but in tests
}

// openStampers reads every configured authority, and selects those that are to stamp: those that are named by name or
// URL, or, where none is, all.
func openStampers(ctx context.Context, c Config, files filestore.Store, own *authority) (*stampers, error) {
	list, err := listOutside(ctx, files)
	if err != nil {
		return nil, err
	}
	s := &stampers{own: own, patience: sealingTime}
	for _, o := range list {
		asks, roots, err := o.check()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", files.Where(outsideFile(o.Name)), err)
		}
		s.outside = append(s.outside, &client{Client: asks, name: o.Name, url: o.URL, batch: o.Batch, now: clock(c)})
		s.trusted = append(s.trusted, o.trusted(roots)...)
	}
	return s, s.selectOnly(c.TSA)
}

func (s *stampers) selectOnly(wanted []string) error {
	if len(wanted) == 0 {
		s.ownToo, s.selected = true, s.outside
		return nil
	}
	for _, w := range wanted {
		if w == BuiltIn {
			s.ownToo = true
			continue
		}
		found := slices.IndexFunc(s.outside, func(c *client) bool { return c.name == w || c.url == w })
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
func (s *stampers) of(name string) *client {
	i := slices.IndexFunc(s.outside, func(c *client) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.outside[i]
}

// Stamp implements ledger.Stamper: every selected authority is asked, all at the same time.
func (s *stampers) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, s.ownToo)
}

// settler stamps the operator's acts about stamps. They wait for nobody, so the built-in authority always stamps them.
type settler struct{ *stampers }

// Stamp implements ledger.Stamper.
func (s settler) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, true)
}

func (s *stampers) stamp(ctx context.Context, imprint [32]byte, own bool) (stamped ledger.Stamped, err error) {
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
	bounded, cancel := context.WithTimeout(ctx, s.patience)
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

// A client asks one authority outside. After a failure it rests for a while, so that an outage holds up one record, and
// not every one. It is safe for concurrent use.
type client struct {
	*tsa.Client
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
func (c *client) unlessResting(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if c.batch {
		return nil, errInBatches
	}
	if err := c.resting(); err != nil {
		return nil, err
	}
	return c.ask(ctx, imprint)
}

// ask asks the authority, and remembers how it went.
func (c *client) ask(ctx context.Context, imprint [32]byte) ([]byte, error) {
	return c.askImprint(ctx, timestamp.Imprint{Hash: crypto.SHA256, Sum: imprint[:]})
}

func (c *client) askImprint(ctx context.Context, imprint timestamp.Imprint) ([]byte, error) {
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

func (c *client) resting() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now().Before(c.rests) {
		return fmt.Errorf("not asked again before %s: %w", c.rests.UTC().Format(time.TimeOnly), c.failure)
	}
	return nil
}

// state says whether it answered the last time that it was asked, and why not; without either it was not asked.
func (c *client) state() (answered bool, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, c.failure
}
