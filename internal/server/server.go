package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"jurat/api"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/installation"
	"jurat/internal/limits"
	"jurat/internal/provider"
	"jurat/internal/schedule"
	"jurat/internal/tracing"
	"jurat/internal/trial"
	"jurat/jury"
)

// Config is what a Server works with.
type Config struct {
	Installation  *installation.Installation // required; the Server does not close it
	URL           string                     // under which browsers reach it, such as http://127.0.0.1:8417; for what comes back from Provider
	Provider      *provider.Provider         // of OpenID Connect; nil: people sign in with tokens alone
	Seats         []jury.Seat                // who would sit in a trial that is submitted now, for pages to say; nil: nothing is said of it
	Scheduler     *schedule.Scheduler        // nil: no trials are held here, only shown; the Server runs it
	Live          schedule.Delivery          // how who watches a trial is treated
	Secure        bool                       // browsers reach it by https; false: by http on this machine alone
	Origins       []string                   // under which a proxy shows it, such as https://jurat.example; nil: only under its own
	Local         bool                       // it listens on this machine alone, so nobody calls it by any name but this machine's or one of Origins; implied where it is not Secure
	PublicEntries bool                       // strangers, too, read what the log hashed; false: those who may read everything
	MaxBody       int64                      // bytes of a body; 0: 8 MiB
	Memory        int64                      // bytes that the process is to hold at most: requests hold half of it together; 0: DefaultMemory, or MemoryFor(MaxBody) where that is more
	Limits        limits.Rate                // zero: see there
	Log           *slog.Logger               // required
	Tracing       *tracing.Tracing           // nil: nobody is told
	Now           func() time.Time           // nil: time.Now
}

const (
	defaultMaxBody = 8 << 20
	maxHeader      = 32 << 10
	drainTime      = 30 * time.Second // for requests that are under way when the server is to end
	answerTime     = 2 * time.Minute  // for an answer that is no stream
	farewellTime   = 5 * time.Second  // for streams to be told that the server ends
)

// A Server answers requests about one installation. It is safe for concurrent use.
type Server struct {
	config    Config
	access    *access.Register
	acts      *acts.Acts
	refusals  *refusals
	limiter   *limits.Limiter
	budget    *limits.Budget
	ready     *readiness
	meters    *meters
	cosigned  *cosigning
	portal    portalPage
	scheduler *schedule.Scheduler
	live      schedule.Delivery
	table     []Route
	handler   http.Handler

	streaming sync.WaitGroup // streams that are open

	draining context.Context // done when the server is to end: streams end then, and nothing new begins
	drain    context.CancelFunc
}

// New makes a server. What it does beside answering requests begins with Serve.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Installation == nil || c.Log == nil {
		return nil, errors.New("a server needs an installation and a log")
	}
	if c.MaxBody == 0 {
		c.MaxBody = defaultMaxBody
	}
	if c.Memory == 0 {
		c.Memory = max(limits.DefaultMemory, limits.MemoryFor(c.MaxBody))
	}
	if least := limits.MemoryFor(c.MaxBody); c.Memory < least {
		return nil, fmt.Errorf("bodies of %d bytes need a memory of at least %d bytes, and not %d", c.MaxBody, least, c.Memory)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Scheduler == nil {
		var err error
		if c.Scheduler, err = idleScheduler(ctx, c); err != nil {
			return nil, err
		}
	}
	s := &Server{config: c, scheduler: c.Scheduler, live: c.Live}
	s.draining, s.drain = context.WithCancel(context.Background()) // Run ends it, and not the caller of New
	s.access = access.New(access.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Now: c.Now})
	s.acts = acts.New(acts.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Opened: s.access, Disclose: c.Installation.Apart.Disclose, Now: c.Now})
	s.refusals = newRefusals(s.access, c.Log, c.Now)
	s.budget = limits.NewBudget(c.Memory)
	s.limiter = limits.NewLimiter(c.Limits, c.Now)
	s.ready = &readiness{probe: c.Installation.Ready, log: c.Log, now: c.Now}
	s.meters = newMeters(c.Installation.Ledger.Size, c.Scheduler.Waiting, c.Scheduler.UnderWay)
	s.cosigned = &cosigning{server: s}
	s.cosigned.measure(s.meters)
	s.table = s.routes()
	var err error
	if s.handler, err = s.assemble(); err != nil {
		return nil, fmt.Errorf("assembling the server: %w", err)
	}
	return s, nil
}

// idleScheduler shows trials, and holds none.
func idleScheduler(ctx context.Context, c Config) (*schedule.Scheduler, error) {
	return schedule.Open(ctx, schedule.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Claimed: c.Installation.Claimed,
		Sit: func(int64) (trial.Config, error) {
			return trial.Config{}, fmt.Errorf("%w: no jury sits on this server", api.ErrUnavailable)
		}})
}

// holdTrials holds trials until ctx is done or stop is called, which waits until they have stopped and everybody who watches was told.
func (s *Server) holdTrials(ctx context.Context) (stop func()) {
	holding, end := context.WithCancel(ctx)
	held := make(chan struct{})
	go func() { defer close(held); s.scheduler.Run(holding) }()
	return func() {
		end()
		<-held
		told := make(chan struct{})
		go func() { s.streaming.Wait(); close(told) }()
		select {
		case <-told:
		case <-time.After(farewellTime):
		}
	}
}

// Access is the register of who may do what.
func (s *Server) Access() *access.Register { return s.access }

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers requests until the context is done, and then those that are under way. It closes the listener.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	recorded := make(chan struct{})
	go func() { defer close(recorded); s.refusals.run(background) }()
	witnessed := make(chan struct{})
	go func() { defer close(witnessed); s.cosigned.run(background) }()
	defer func() { stop(); <-recorded; <-witnessed }()
	defer s.holdTrials(ctx)()

	served := make(chan error, 1)
	go func() { served <- h.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	s.drain()
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTime)
	defer cancel()
	if err := h.Shutdown(rest); err != nil {
		return errors.Join(fmt.Errorf("draining: %w", err), h.Close())
	}
	return nil
}
