package stamping

import (
	"bytes"
	"context"
	"crypto/x509"
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
	sealingTime  = 10 * time.Second // how long outside authorities may delay one record
	firstPause   = 30 * time.Second // how long an authority is not asked after its first failure; doubled at each further one
	longestPause = 10 * time.Minute
)

// ErrNotConfigured says that no authority of this name or URL is configured, so its answers could not be verified.
var ErrNotConfigured = errors.New("no such time-stamping authority is configured")

// Stampers are the built-in authority and the outside ones. They are safe for concurrent use.
type Stampers struct {
	own      *Own
	ownToo   bool // the built-in authority stamps records
	outside  []*stamper
	selected []*stamper // the outside authorities that stamp records
	trusted  []trust.Authority

	Patience time.Duration // how long outside authorities may delay one record; Open sets 10 seconds
}

// Config says which authorities Open reads and selects.
type Config struct {
	Files filestore.Store // holds the outside authorities
	Own   *Own
	Use   []string // names or URLs of those that stamp new records; empty: all
	Now   func() time.Time
}

// Open reads every configured authority, and selects those that stamp. If Use names an unknown one, the error has ErrNotConfigured in its
// chain.
func Open(ctx context.Context, c Config) (*Stampers, error) {
	list, err := listOutside(ctx, c.Files)
	if err != nil {
		return nil, err
	}
	s := &Stampers{own: c.Own, Patience: sealingTime}
	for _, o := range list {
		client, err := o.check()
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", c.Files.Where(outsideFile(o.Name)), err)
		}
		s.outside = append(s.outside, &stamper{Client: client, name: o.Name, url: o.URL, now: c.Now})
		s.trusted = append(s.trusted, o.trusted(client.roots)...)
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

// of returns the outside authority with this name, or nil.
func (s *Stampers) of(name string) *stamper {
	i := slices.IndexFunc(s.outside, func(c *stamper) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return s.outside[i]
}

// Stamp implements ledger.Stamper. It asks all selected authorities at the same time. It returns the errors of the
// built-in authority and the context's error. What keeps another authority from answering is in Stamped.Missing.
func (s *Stampers) Stamp(ctx context.Context, imprint [32]byte) (ledger.Stamped, error) {
	return s.stamp(ctx, imprint, s.ownToo)
}

// Settler returns the stamper of the operator's acts about stamps. These acts never wait, so the built-in authority always stamps them.
func (s *Stampers) Settler() ledger.Stamper { return settler{s} }

// Trusted returns the authorities in the form of a trust file, in which each root stands once.
func (s *Stampers) Trusted() []trust.Authority {
	list := []trust.Authority{s.own.trusted()}
	for _, a := range s.trusted {
		list = trustToo(list, a)
	}
	return list
}

// trustToo adds an authority to those of a trust file. Of several with one root, as of one whose address has changed, it makes one: with the
// names and the policies of all, and with the first one's clock, so that what the operator's own root has signed is never called independent.
func trustToo(list []trust.Authority, a trust.Authority) []trust.Authority {
	i := slices.IndexFunc(list, func(known trust.Authority) bool { return bytes.Equal(known.Certificate, a.Certificate) })
	if i < 0 {
		return append(list, a)
	}
	same := &list[i]
	if same.Name != a.Name {
		same.Name += ", " + a.Name
	}
	if len(same.Policies) == 0 || len(a.Policies) == 0 {
		same.Policies = nil // one of them accepts any
	} else if !slices.Contains(same.Policies, a.Policies[0]) {
		same.Policies = append(slices.Clone(same.Policies), a.Policies...)
	}
	return list
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
	if err := ctx.Err(); err != nil { // the caller cancelled, and no authority failed
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

// earliest returns the earliest time that verified tokens prove, or zero if there are none.
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

// provedBy returns the latest time at which a token's imprint may first have existed, as readers compute it.
func provedBy(token *timestamp.Unverified) time.Time {
	info := token.UnverifiedInfo()
	return info.GenTime.Add(info.Accuracy)
}

// A stamper is one outside authority. After a failure it is not asked for a while, so that an outage delays one record and not every one.
// It is safe for concurrent use.
type stamper struct {
	*Client
	name, url string
	now       func() time.Time

	mu       sync.Mutex // held while what follows is read or written
	answered bool       // whether it answered the last request
	failure  error      // the failure of the last request
	pause    time.Duration
	rests    time.Time // it is not asked before this time
}

// unlessResting asks the authority, unless it failed recently.
func (c *stamper) unlessResting(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if err := c.resting(); err != nil {
		return nil, err
	}
	return c.ask(ctx, imprint)
}

// ask asks the authority, and remembers whether it answered.
func (c *stamper) ask(ctx context.Context, imprint [32]byte) ([]byte, error) {
	token, err := c.Stamp(ctx, imprint)
	if errors.Is(err, context.Canceled) {
		return nil, err // the caller cancelled, which says nothing about the authority
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

// state returns whether the authority answered the last request, and its failure if not. Both are zero if this process has not asked it
// yet.
func (c *stamper) state() (answered bool, failure error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.answered, c.failure
}

// Own is the built-in time-stamping authority. It uses the operator's clock.
type Own struct {
	*timestamp.Authority
	Root *x509.Certificate
}

// stamp issues a token that contains the certificate, so that verifying a record needs only the root.
func (a *Own) stamp(ctx context.Context, imprint [32]byte) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return a.Issue(&timestamp.Request{Imprint: imprint, CertReq: true})
}

func (a *Own) trusted() trust.Authority {
	return trust.Authority{Name: "built-in authority", Certificate: a.Root.Raw, Clock: trust.OperatorClock}
}
