// Package server serves an installation over HTTP.
//
// # Routes
//
// There is one table of routes (table.go). The multiplexer, the access checks, the OpenAPI description and the test
// of access rights are made from it, so a route outside the table cannot be reached.
//
// A Handler gets the Caller with the request, and returns an error if it cannot do what is asked. An error of package
// api determines the answer (fmt.Errorf("%w: …", api.ErrInvalid)). answered, shown, sent, sealing and entered make Handlers of
// functions. The server also knows the errors of ledger, keys and evidence (answer.go). It logs any other as ErrInternal, and does not show it.
//
// A handler can rely on these checks. The caller has one of the route's roles, and Options.May, if the route has it, lets the caller do this. A request that changes something does
// not come from another site, and if it is signed in by cookie, it carries the session's form key (Caller.FormKey, in
// the field "form" or the header Jurat-Form). The body is no longer than Config.MaxBody, and readBody refuses one that
// nests too deep while it reads it. The answer has the security headers. Package acts decides what a record holds and
// who may seal it: handlers only translate. acts.MayRead decides what a caller may read, beyond its roles.
//
// # A refusal is a line of the program log
//
// Nobody can make the sealed log grow by being refused. The metrics count each refusal; the program log has a line a minute for each caller, route
// and reason, with the count.
//
// # A page reads its part of a chain, and the log the rest
//
// Lists come from the index of words, which knows what recorders saw in each chain without reading it. The page of a chain reads the records up
// to its last act, because bodies copy from earlier ones, but reads messages and verifies records of its own part alone. So no page grows with the
// log, and the first page of a chain does not grow with the chain.
//
// # What a trial takes in cannot be erased there
//
// A trial of a recorded chain gets its texts, also those that are sealed apart, as a trial begun on the command line does. The form says so. If its
// submitter reads the chain only because it is public, the trial gets what strangers get, without these texts.
package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"jurat/internal/court/acts"
	"jurat/internal/court/llm"
	"jurat/internal/court/schedule"
	"jurat/internal/kit/webhook"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/web/docket"
	"jurat/internal/web/openid"
	"jurat/internal/web/tracing"
	"jurat/jury"
)

type Config struct {
	Installation  *installation.Installation // required; the Server does not close it
	URL           string                     // the server's address for browsers, such as http://127.0.0.1:8417; the Provider redirects to it
	Provider      *openid.Provider           // of OpenID Connect; nil: people sign in only with tokens
	Prices        llm.Prices                 // of recorded calls; nil: no costs are shown
	Seats         []jury.Seat                // the seats of a trial that is submitted now, shown on pages; nil: not shown
	Scheduler     *schedule.Scheduler        // nil: this server shows trials but holds none; the Server runs it
	Webhook       *webhook.Receiver          // is told when a case needs a person; nil: nobody is
	Index         string                     // the file of the index of words; "": in memory
	Trials        *TrialMetrics              // counts what happens in trials; nil: /metrics has nothing of it
	Live          schedule.Delivery          // how events are sent to watchers
	Secure        bool                       // browsers reach it by https; false: by http on this machine alone
	Origins       []string                   // the origins under which a proxy shows it, such as https://jurat.example; nil: only its own
	Local         bool                       // it listens on this machine alone, so callers use its names or one of Origins; implied without Secure
	PublicEntries bool                       // strangers, too, read what the log hashed; false: only those who may read everything
	MaxBody       int64                      // bytes of a body; 0: 8 MiB
	Memory        int64                      // memory limit of the process in bytes: requests share half; 0: DefaultMemory, or MemoryFor(MaxBody) if more
	Limits        Rate                       // zero: the defaults of Rate
	Log           *slog.Logger               // required
	Tracing       *tracing.Tracing           // nil: no tracing
	Now           func() time.Time           // nil: time.Now
}

const (
	defaultMaxBody = 8 << 20
	maxHeader      = 32 << 10
	drainTime      = 30 * time.Second // for running requests when the server stops
	answerTime     = 2 * time.Minute  // for an answer that is not a stream
	farewellTime   = 5 * time.Second  // for telling streams that the server stops
)

// A Server answers requests about one installation. It is safe for concurrent use.
type Server struct {
	config    Config
	access    *access.Register
	acts      *acts.Acts
	refusals  refusalCounter
	limiter   *rateLimiter
	budget    *memoryBudget
	ready     *prober
	metrics   *metrics
	uses      access.Uses    // of tokens
	began     time.Time      // of this process
	arrivals  *arrivalTeller // nil: nobody is told
	cosigned  *cosigner
	portal    portalPage
	conduct   *docket.ConductCache
	keeper    *docket.Keeper // the Server runs it
	scheduler *schedule.Scheduler
	live      schedule.Delivery
	origins   *http.CrossOriginProtection
	table     []Route
	handler   http.Handler

	streaming sync.WaitGroup // open streams

	draining context.Context // done when the server is to stop: then streams end, and no work begins
	drain    context.CancelFunc
}

// New makes a server. Its background work begins with Serve. It refuses an incomplete or contradictory Config.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Installation == nil || c.Log == nil {
		return nil, errors.New("a server needs an installation and a log")
	}
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	if c.Memory == 0 {
		c.Memory = max(DefaultMemory, MemoryFor(c.MaxBody))
	}
	if least := MemoryFor(c.MaxBody); c.Memory < least {
		return nil, fmt.Errorf("bodies of %d bytes need a memory of at least %d bytes, but it is %d", c.MaxBody, least, c.Memory)
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
	s := &Server{config: c, scheduler: c.Scheduler, live: c.Live, began: c.Now()}
	s.draining, s.drain = context.WithCancel(context.Background()) // Run ends it, rather than the caller of New
	s.access = access.New(access.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Now: c.Now})
	s.acts = acts.New(acts.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Opened: s.access, Disclose: c.Installation.Apart.Disclose, Now: c.Now})
	s.conduct = docket.NewConductCache(c.Installation.Ledger, c.Now)
	s.keeper = &docket.Keeper{Ledger: c.Installation.Ledger, Path: c.Index, Log: c.Log}
	s.budget = &memoryBudget{total: c.Memory / 2, parts: semaphore.NewWeighted(c.Memory / 2), callers: map[string]int64{}}
	s.limiter = newRateLimiter(c.Limits, c.Now)
	s.ready = &prober{probe: c.Installation.Ready, log: c.Log, now: c.Now}
	s.cosigned = &cosigner{witnesses: c.Installation.Witnesses, ledger: c.Installation.Ledger, log: c.Log, now: c.Now}
	s.metrics = newMetrics(gaugeSources{Records: c.Installation.Ledger.Size, Waiting: c.Scheduler.Waiting, UnderWay: c.Scheduler.UnderWay,
		Cosigned: c.Installation.Witnesses.LastCosigned, Owing: c.Installation.Ledger.Owing, Open: c.Scheduler.Open, Grants: s.access.Grants,
		Trials: c.Trials, Now: c.Now})
	s.refusals.log, s.refusals.metrics = c.Log, s.metrics
	if c.Webhook != nil {
		s.arrivals = &arrivalTeller{Scheduler: s.scheduler, Ledger: c.Installation.Ledger, Files: c.Installation.Files, Locks: c.Installation.Locks, Receiver: c.Webhook, URL: c.URL, Log: c.Log, Now: c.Now}
		s.metrics.Untold(s.arrivals.Waiting)
	}
	s.table = s.routes()
	var err error
	if s.handler, err = s.assemble(); err != nil {
		return nil, fmt.Errorf("assembling the server: %w", err)
	}
	return s, nil
}

func idleScheduler(ctx context.Context, c Config) (*schedule.Scheduler, error) {
	return schedule.Open(ctx, schedule.Config{Ledger: c.Installation.Ledger, Keys: c.Installation.Keys, Locks: c.Installation.Locks})
}

// holdTrials holds trials until ctx ends or stop is called. stop waits until they have stopped and all watchers have their events.
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

func (s *Server) Access() *access.Register { return s.access }

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Serve answers requests until the context ends, and then finishes the running ones. It closes the listener. It
// returns the error of the listener, or of requests that did not finish in time.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	h := &http.Server{Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(s.config.Log.Handler(), slog.LevelWarn),
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) }}
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	work.Go(func() { s.refusals.run(background) })
	work.Go(func() { s.cosigned.run(background) })
	work.Go(func() { s.keeper.Run(background) })
	if s.arrivals != nil {
		work.Go(func() { s.arrivals.Run(ctx) })
	}
	defer func() { stop(); work.Wait() }()
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
