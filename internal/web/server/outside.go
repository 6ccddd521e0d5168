package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-json-experiment/json"

	"golang.org/x/sync/singleflight"

	"jurat/client/api"
	"jurat/client/tiles"
	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/kit/webhook"
	"jurat/internal/log/access"
	"jurat/internal/log/filestore"
	"jurat/internal/log/ledger"
	"jurat/internal/log/lock"
	"jurat/internal/log/witness"
	"jurat/internal/web/portal"
	"jurat/verify/trust"
)

func (s *Server) verifyPage(w http.ResponseWriter, r *http.Request, _ *Caller) error {
	by, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return err
	}
	doc, err := by.Marshal()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", portal.Policy)
	return writeTagged(w, r, http.StatusOK, "text/html; charset=utf-8", s.portal.with(doc))
}

// entryReaders may read what the log hashed. It contains nothing that was said. But a reader who knows a chain_id or
// the evidence of a case can recognise it there, and signatures identify their keys. So strangers could learn that
// private records exist.
var entryReaders = Who{Roles: []access.Role{access.Reviewer, access.Auditor, access.Operator}}

func (s *Server) getCheckpoint(r *http.Request, _ *Caller) (*file, error) {
	checkpoint, err := s.config.Installation.Witnesses.Published(r.Context())
	return &file{media: plainText, cache: "no-cache", doc: []byte(checkpoint)}, err
}

const portalFiles = "/static/portal/"

// A portalPage caches the verification page, while the trust file in it is the installation's. It is safe for concurrent use.
type portalPage struct {
	mu    sync.Mutex // guards the fields below
	trust []byte
	page  []byte
}

func (p *portalPage) with(trust []byte) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.page == nil || !bytes.Equal(p.trust, trust) {
		p.trust = trust
		p.page = portal.Served{Script: portalFiles + portal.ScriptName(), Style: portalFiles + portal.StyleName(), File: "/verify.html", Trust: trust}.Page()
	}
	return p.page
}

const plainText = "text/plain; charset=utf-8"

// portalFile is the page as a file that needs no server.
func portalFile(*http.Request, *Caller) (*file, error) {
	return &file{media: "text/html; charset=utf-8", name: "verify.html", doc: portal.File()}, nil
}

// portalAsset is a file of the page. Their names contain digests.
func portalAsset(r *http.Request, _ *Caller) (*file, error) {
	switch r.PathValue("name") {
	case portal.ScriptName():
		return &file{media: "text/javascript; charset=utf-8", cache: "public, " + forEver, doc: portal.Script()}, nil
	case portal.StyleName():
		return &file{media: "text/css; charset=utf-8", cache: "public, " + forEver, doc: portal.Style()}, nil
	}
	return nil, fmt.Errorf("%w: the portal has no such file", api.ErrNotFound)
}

func (s *Server) getTile(r *http.Request, _ *Caller) (*file, error) {
	t, err := tiles.Parse(r.PathValue("level"), r.PathValue("index"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	tile, err := s.config.Installation.Ledger.Tile(r.Context(), t.L, t.N, t.W)
	return &file{media: "application/octet-stream", cache: "public, " + forEver, doc: tile}, err
}

// getEntries answers with what the log hashed under a tile of level 0. Proxies keep it if it is public.
func (s *Server) getEntries(r *http.Request, _ *Caller) (*file, error) {
	t, err := tiles.Parse("entries", r.PathValue("index"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	list, err := s.config.Installation.Ledger.EntryBundle(r.Context(), t.N, t.W)
	if err != nil {
		return nil, err
	}
	entries, err := tiles.FormatEntries(list)
	kept := "private, "
	if s.config.PublicEntries {
		kept = "public, "
	}
	return &file{media: "application/octet-stream", cache: kept + forEver, doc: entries}, err
}

func (s *Server) healthz(*http.Request, *Caller) (*file, error) {
	return &file{media: plainText, cache: noStore, doc: []byte("ok\n")}, nil
}

func (s *Server) readyz(r *http.Request, _ *Caller) (*file, error) {
	if err := s.ready.ask(r.Context()); err != nil {
		if m := meant(known, err); m != nil {
			return nil, fmt.Errorf("%w: the log takes no records: %w; the server's log says more", api.ErrUnavailable, m.is)
		}
		return nil, fmt.Errorf("%w: the log takes no records; the server's log has the reason", api.ErrUnavailable)
	}
	return &file{media: plainText, cache: noStore, doc: []byte("ready\n")}, nil
}

func (s *Server) getTrust(r *http.Request, _ *Caller) (*trust.Trust, error) {
	return s.config.Installation.Trust(r.Context())
}

const (
	probeTime  = 3 * time.Second // time limit for a check; a slower log counts as not ready
	probePause = time.Second     // between two checks
)

// A prober checks whether the log takes records. It runs at most one check at a time and one a second, because a
// check writes to the disk and anyone may ask for it.
type prober struct {
	probe func(context.Context) error // may write
	log   *slog.Logger
	now   func() time.Time

	checks singleflight.Group
	asked  time.Time // when the last check began; only that check uses it, and the next field
	last   error
}

// ask returns why the log takes no records; nil if it does. It returns within probeTime.
func (r *prober) ask(ctx context.Context) error {
	// The first caller may disconnect while others wait for the same check.
	result := r.checks.DoChan("", func() (any, error) { return nil, r.check(context.WithoutCancel(ctx)) })
	select {
	case known := <-result:
		return known.Err
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(probeTime):
		return errors.New("the log did not answer in time")
	}
}

func (r *prober) check(ctx context.Context) error {
	now := r.now()
	if now.Sub(r.asked).Abs() < probePause {
		return r.last
	}
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	r.asked = now
	if r.last = r.probe(ctx); r.last != nil {
		r.log.Error("the log takes no records", "error", r.last) // the error may contain file names, and the caller is unknown
	}
	return r.last
}

const (
	cosignEvery = 2 * time.Second  // interval of checks whether the log has grown
	cosignAgain = 30 * time.Second // after this time, witnesses that did not answer are asked again
)

// A cosigner sends the log's checkpoints to the witnesses. It is safe for concurrent use.
type cosigner struct {
	witnesses *witness.Asker
	ledger    *ledger.Ledger
	log       *slog.Logger
	now       func() time.Time

	last atomic.Pointer[witness.Cosigning] // the last result; nil: no witness was asked yet
}

// run asks the witnesses until ctx ends: when the log has grown, and again if a witness did not answer.
func (c *cosigner) run(ctx context.Context) {
	var asked time.Time
	for again := true; again; again = wait(ctx, cosignEvery) {
		if c.due(ctx, asked) {
			asked = c.now()
			c.once(ctx)
		}
	}
}

// wait waits for a time, and reports whether ctx goes on.
func wait(ctx context.Context, pause time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(pause):
		return true
	}
}

func (c *cosigner) due(ctx context.Context, asked time.Time) bool {
	last := c.last.Load()
	if last == nil {
		return true
	}
	size, err := c.ledger.Size(ctx)
	return err != nil || size != last.Size || last.Cosigned() < len(last.Answers) && c.now().Sub(asked) >= cosignAgain
}

func (c *cosigner) once(ctx context.Context) {
	now, err := c.witnesses.Cosign(ctx)
	if err != nil {
		if ctx.Err() == nil {
			c.log.Error("the checkpoint was not cosigned", "error", err)
		}
		return
	}
	before := c.last.Swap(now)
	if now == nil {
		return
	}
	for n, a := range now.Answers {
		changed := before == nil || len(before.Answers) != len(now.Answers) || (before.Answers[n].Err == nil) != (a.Err == nil)
		if a.Err != nil && changed {
			c.log.Warn("a witness has not cosigned", "witness", a.Name(), "url", a.URL, "why", a.Err, "cosigned", now.Cosigned(), "quorum", now.Quorum)
		} else if changed {
			c.log.Info("a witness cosigns", "witness", a.Name(), "cosigned", now.Cosigned(), "quorum", now.Quorum)
		}
	}
}

const (
	toldFile = "told.json" // in the file store: of which cases the receiver was told, or will not be told
	tellLock = "arrivals"
	tellFor  = 7 * 24 * time.Hour // the receiver is told of a case for so long after it arrived
	every    = 2 * time.Second    // between two rounds
)

// pauses are those between attempts, as the Standard Webhooks convention recommends. After the last, the receiver is not told.
var pauses = []time.Duration{5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 14 * time.Hour, 20 * time.Hour, 24 * time.Hour}

// An arrivalTeller tells a webhook that a case needs a person's decision. A case arrives with the verdict that ends its trial undecided,
// or with a decision that leaves it open. That record is in the log, so every process finds the same cases after every start. A file of
// the installation says of which cases the receiver was told. One process at a time tells; it holds a lock. After a crash a receiver can
// get a message twice, always with the same id. It is not told of a case that a person decided before it took the message.
//
// Its exported fields are required, except URL. Waiting is safe for concurrent use; Tell and Run are not.
type arrivalTeller struct {
	Scheduler *schedule.Scheduler
	Ledger    *ledger.Ledger
	Files     filestore.Store
	Locks     lock.Locks
	Receiver  *webhook.Receiver
	URL       string // of the server: messages link to its pages; "": no links
	Log       *slog.Logger
	Now       func() time.Time

	waiting atomic.Int64
	tried   map[string]attempts
	done    map[string]time.Time // what this process told, in case the file cannot be written
}

type attempts struct {
	n    int
	next time.Time
}

// An arrival is a case that needs a person.
type arrival struct {
	id string // of the record since which it does
	at time.Time
	of *trial.Summary
}

func (t *arrivalTeller) Waiting() int64 { return t.waiting.Load() }

// Run tells until ctx ends. It logs an error when it is new.
func (t *arrivalTeller) Run(ctx context.Context) {
	before := ""
	for again := true; again; again = wait(ctx, every) {
		text := ""
		if err := t.Tell(ctx); err != nil && ctx.Err() == nil {
			if text = err.Error(); text != before {
				t.Log.Error("the webhook was not told of cases that need a person; this is tried again", "error", err)
			}
		}
		before = text
	}
}

// Tell looks once for cases that need a person, and tells the receiver. If another process tells, it does nothing. It returns the errors of
// reading the log and of noting what was told. That the receiver refused a message is not one of them: Tell logs it.
func (t *arrivalTeller) Tell(ctx context.Context) error {
	cases, err := t.untold(ctx)
	if err != nil || len(cases) == 0 {
		return err
	}
	held, release, err := t.Locks.Lock(ctx, tellLock)
	if errors.Is(err, lock.ErrTaken) {
		return nil
	}
	if err != nil {
		return err
	}
	defer release()
	if cases, err = t.untold(held); err != nil { // another process may have told them
		return err
	}
	for _, one := range cases {
		if t.Now().Before(t.tried[one.id].next) {
			break // what follows would come before it
		}
		if told, err := t.tell(held, one); err != nil || !told {
			return err
		}
	}
	return nil
}

// untold lists the cases that the receiver is to be told of, the oldest first.
func (t *arrivalTeller) untold(ctx context.Context) (list []arrival, err error) {
	x, err := t.Scheduler.Trials(ctx)
	if err != nil {
		return nil, err
	}
	waiting := x.List((*trial.Summary).NeedsPerson)
	if len(waiting) == 0 { // most of the time
		t.waiting.Store(0)
		return nil, nil
	}
	told, err := t.told(ctx)
	if err != nil {
		return nil, err
	}
	tried := map[string]attempts{}
	for i := range waiting {
		s := &waiting[i]
		at := s.Last
		if d := s.Outcome.Decision; d != nil {
			if at, err = evidence.ParseTime(d.At); err != nil {
				return nil, fmt.Errorf("trial %s: %w", s.ID, err)
			}
		}
		id := s.Waits()
		if _, has := told[id]; has || t.tooOld(at) {
			continue
		}
		list = append(list, arrival{id, at, s})
		if a, has := t.tried[id]; has {
			tried[id] = a
		}
	}
	t.tried = tried
	t.waiting.Store(int64(len(list)))
	slices.SortStableFunc(list, func(a, b arrival) int { return a.at.Compare(b.at) })
	return list, nil
}

func (t *arrivalTeller) tooOld(at time.Time) bool { return !at.After(t.Now().Add(-tellFor)) }

// told returns the cases that the receiver was told of, or will not be told of, with the times of their arrival.
func (t *arrivalTeller) told(ctx context.Context) (map[string]time.Time, error) {
	told := map[string]time.Time{}
	text, err := t.Files.Read(ctx, toldFile)
	if err == nil {
		err = json.Unmarshal(text, &told)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading %s: %w", t.Files.Where(toldFile), err)
	}
	maps.Copy(told, t.done)
	return told, nil
}

// tell tells the receiver of one case, and notes it. It reports whether the next case may follow.
func (t *arrivalTeller) tell(ctx context.Context, one arrival) (bool, error) {
	sent, err := t.send(ctx, one)
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	a := t.tried[one.id]
	if a.n++; err != nil && a.n <= len(pauses) && !errors.Is(err, webhook.ErrGone) {
		pause := pauses[a.n-1]
		if refused, ok := errors.AsType[*webhook.RefusedError](err); ok {
			pause = max(pause, refused.After)
		}
		a.next = t.Now().Add(pause)
		t.tried[one.id] = a
		t.Log.Warn("the webhook did not take a message, which is sent again", "trial", one.of.ID, "attempt", a.n, "next", a.next, "error", err)
		return false, nil
	}
	if err != nil {
		t.Log.Error("the webhook is not told of a case that needs a person", "trial", one.of.ID, "attempts", a.n, "error", err)
	} else if sent {
		t.Log.Info("the webhook was told of a case that needs a person", "trial", one.of.ID, "record", one.id)
	}
	return true, t.note(context.WithoutCancel(ctx), one) // otherwise a receiver that took it would get it again
}

// note writes that the receiver was told of a case, or will not be told of it.
func (t *arrivalTeller) note(ctx context.Context, one arrival) error {
	if t.done == nil {
		t.done = map[string]time.Time{}
	}
	t.done[one.id] = one.at
	maps.DeleteFunc(t.done, func(_ string, at time.Time) bool { return t.tooOld(at) })
	told, err := t.told(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(told, func(_ string, at time.Time) bool { return t.tooOld(at) })
	text, err := json.Marshal(told, json.Deterministic(true))
	if err != nil {
		return err
	}
	t.waiting.Add(-1)
	return t.Files.Replace(ctx, toldFile, append(text, '\n'))
}

// A message is what the receiver gets. It has nothing that anybody said in the trial.
type message struct {
	Type      string `json:"type"`
	Timestamp string `json:"timestamp"`
	Data      struct {
		Log      string          `json:"log"`
		RecordID string          `json:"record_id"`
		Digest   evidence.Digest `json:"digest"`
		Page     string          `json:"page,omitzero"`
		Arrival  messageCase     `json:"arrival"`
	} `json:"data"`
}

type messageCase struct {
	Trial     string   `json:"trial"`
	Agent     string   `json:"agent,omitzero"` // by its card, or its records; "": they name none
	Submitter string   `json:"submitter"`
	Position  string   `json:"position"` // the jury's, as score and method
	Score     int      `json:"score"`
	Method    string   `json:"method"`
	Why       []string `json:"why"`
}

// send sends a message. It sends none, and returns false, if the record has expired.
func (t *arrivalTeller) send(ctx context.Context, one arrival) (bool, error) {
	record, err := t.Ledger.Briefs().ByID(ctx, one.id)
	if errors.Is(err, ledger.ErrExpired) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v := &one.of.Outcome.Verdict
	m := message{Type: "review.arrived", Timestamp: evidence.FormatTime(one.at)}
	m.Data.Log, m.Data.RecordID, m.Data.Digest = t.Ledger.Origin(), one.id, record.Digest
	m.Data.Arrival = messageCase{Trial: one.of.ID, Agent: one.of.Agent, Submitter: one.of.Submitter,
		Position: string(v.Position), Score: v.Score, Method: string(v.Method), Why: one.of.WhyOpen()}
	if t.URL != "" {
		m.Data.Page = t.URL + "/reviews/" + url.PathEscape(one.id)
	}
	body, err := json.Marshal(&m)
	if err != nil {
		return false, err
	}
	_, err = t.Receiver.Send(ctx, one.id, t.Now(), body)
	return true, err
}
