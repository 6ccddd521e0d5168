package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/config"
	"jurat/internal/continuous"
	"jurat/internal/docket"
	"jurat/internal/find"
	"jurat/internal/installation"
	"jurat/internal/schedule"
	"jurat/internal/trial"
	"jurat/internal/webhook"
	"jurat/verify/trust"
)

const (
	foundRecords = 20_000
	foundTrials  = 300
	agents       = 20 // that seal records
	tried        = 50 // agents that are put before the jury
)

// Find measures how long it takes to find records and trials, to show an agent's trials, and to start a server, in a log with so
// many records, of which so many are of trials.
func Find(ctx context.Context, c Config) (*Report, error) {
	return run(c, "find", func(c Config, dir string, r *Report) error {
		if c.Records == 0 {
			c.Records = foundRecords
		}
		if c.Trials == 0 {
			c.Trials = foundTrials
		}
		if c.Records < 100 {
			return errors.New("records: want at least 100")
		}
		h, err := openKept(ctx, c, dir)
		if err != nil {
			return err
		}
		r.Settings = Settings{Records: c.Records, Trials: c.Trials, PayloadBytes: c.Payload, Algorithm: c.Algorithm, BatchTokens: c.Batch}
		if err := errors.Join(h.fillWith(ctx, c), h.Close()); err != nil {
			return err
		}
		return findIn(ctx, c, h, filepath.Join(h.config.Dir, "find.db"), r)
	})
}

// openKept opens the log that is kept from an earlier run, or makes a new one.
func openKept(ctx context.Context, c Config, dir string) (*house, error) {
	if c.Log == "" {
		return furnish(ctx, c, dir, "data")
	}
	config := installation.Config{Dir: c.Log, Algorithm: c.Algorithm, BatchTokens: c.Batch}
	if _, err := os.Stat(filepath.Join(c.Log, keptMark)); err == nil {
		return reopen(ctx, config)
	}
	h, err := furnish(ctx, c, filepath.Dir(c.Log), filepath.Base(c.Log))
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(c.Log, keptMark), []byte("This log was made by 'jurat bench find', which adds to it.\n"), 0o600); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// keptMark is a file in the folder of a log that Find made: it adds to no other log.
const keptMark = "made-by-bench-find"

// fillWith holds trials and seals records until the log has as many as it should.
func (h *house) fillWith(ctx context.Context, c Config) error {
	held := trial.NewIndex(h.Ledger, nil, nil)
	if err := held.Follow(ctx); err != nil {
		return err
	}
	had := len(held.List(nil))
	var n atomic.Int64
	if err := times(ctx, int64(c.Trials-had), 16, func(ctx context.Context) error { return h.tryOne(ctx, had+int(n.Add(1))) },
		func(done int64) { c.Progress("trials held", done, int64(c.Trials-had)) }); err != nil {
		return err
	}
	size, err := h.Ledger.Size(ctx)
	if err != nil {
		return err
	}
	var signers [agents][]evidence.Signer
	for i := range signers {
		if signers[i], err = h.Keys.Signers(ctx, evidence.RoleAgent, agentName(i)); err != nil {
			return err
		}
	}
	next := atomic.Int64{}
	next.Store(size)
	rest := int64(c.Records) - size
	return times(ctx, rest, 512, func(ctx context.Context) error {
		i := int(next.Add(1))
		draft, err := sentenceOf(i, c.Payload)
		if err == nil {
			_, err = h.Ledger.Seal(ctx, draft, signers[i%agents])
		}
		return err
	}, func(done int64) { c.Progress("records sealed", done, rest) })
}

// triedName is the name of an agent that is put before the jury.
func triedName(i int) string { return fmt.Sprintf("Agent %02d", i%tried) }

func agentName(i int) string { return fmt.Sprintf("agent-%d", i) }

// vocabulary is what agents say, in three scripts.
var vocabulary = strings.Fields(`invoice parcel refund transfer approved customer address route delayed warehouse tomorrow please confirm deliver the of and to
	перевод одобрен возврат клиент адрес маршрут склад завтра подтвердите доставка 返金 配送 住所 確認 倉庫 明日 経路 送金 承認 遅延`)

// sentenceOf returns a draft whose payload has about size bytes. Its text depends on i alone. Each hundredth names a number of its own.
func sentenceOf(i, size int) (*evidence.Draft, error) {
	r := rand.New(rand.NewPCG(uint64(i), 7)) //nolint:gosec // texts
	var text strings.Builder
	if i%100 == 0 {
		fmt.Fprintf(&text, "reference %07d. ", i)
	}
	for text.Len() < size-added-len(frame) {
		text.WriteString(vocabulary[r.IntN(len(vocabulary))] + " ")
	}
	return evidence.ParseDraft(fmt.Appendf(nil, strings.Replace(frame, agent, agentName(i%agents), 1), text.String()))
}

// tryOne holds a trial of one of the agents, which passes, fails or stays open.
func (h *house) tryOne(ctx context.Context, i int) error {
	on, err := caseOf(triedName(i))
	if err != nil {
		return err
	}
	config := deliberating(0)
	for j := range config.Jurors {
		config.Jurors[j] = voter(i + j/2)
	}
	config.Judge = voter(i)
	config.Ledger, config.Keys, config.Locks = h.Ledger, h.Keys, h.Locks()
	_, err = trial.Run(ctx, config, on)
	return err
}

// finder is an open installation that is searched.
type finder struct {
	*house
	keeper  *docket.Keeper
	trials  *trial.Index
	trusted *trust.Trust
	records int
	tally   docket.Histories
	reader  docket.Reader

	arrivals *continuous.Service
	ids      []string // of records anywhere in the log
	some     []string // trials
}

func findIn(ctx context.Context, c Config, h *house, file string, r *Report) error {
	_, err := os.Stat(file)
	indexed := err == nil
	if err := os.Remove(storedTrials(file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	begin := time.Now()
	f, err := h.openFinder(ctx, c, file)
	if err != nil {
		return err
	}
	r.figure("server start, the first of this program", "ms", float64(time.Since(begin).Microseconds())/1000, nil)
	x, err := f.keeper.Open(ctx)
	if err == nil {
		err = x.Follow(ctx, func(done, total int64) { c.Progress("records indexed", done, total) })
	}
	if err == nil {
		err = f.trials.Save(ctx, storedTrials(file), 1)
	}
	if err := errors.Join(err, f.close()); err != nil {
		return err
	}
	if !indexed {
		r.figure("records indexed/s, the first time", "1/s", float64(c.Records)/time.Since(begin).Seconds(), nil)
	}
	if info, err := os.Stat(file); err == nil {
		r.figure("size of the index for each record", "bytes", float64(info.Size())/float64(c.Records), nil)
	}
	starts, bare, err := startInTurn(ctx, c, h, file)
	if err != nil {
		return err
	}
	r.twice("server start", starts, "opening the installation alone", bare)
	if f, err = h.openFinder(ctx, c, file); err != nil {
		return err
	}
	return errors.Join(f.measure(ctx, c, r), f.close())
}

// openFinder does what a server does before it answers.
func (h *house) openFinder(ctx context.Context, c Config, file string) (*finder, error) {
	again, err := reopen(ctx, h.config)
	if err != nil {
		return nil, err
	}
	f := &finder{house: again, records: c.Records, keeper: &docket.Keeper{Ledger: again.Ledger, Path: file}, reader: docket.Reader{Scope: find.Scope{All: true}}}
	trials, err := schedule.Open(ctx, schedule.Config{Ledger: again.Ledger, Keys: again.Keys, Locks: again.Locks(), Stored: storedTrials(file),
		Sit: func(string, int64) (trial.Config, error) { return deliberating(0), nil }})
	if err == nil {
		f.trials, err = trials.Trials(ctx)
	}
	if err == nil {
		f.trusted, err = again.Trust(ctx)
	}
	if err == nil {
		f.arrivals, err = f.told(trials)
	}
	if err != nil {
		return nil, errors.Join(err, again.Close())
	}
	return f, nil
}

// told makes what tells a receiver of cases that need a person. The receiver cannot be reached, so every case stays to be told of.
func (f *finder) told(trials *schedule.Scheduler) (*continuous.Service, error) {
	const id = "nobody"
	receiver, err := webhook.New(webhook.Config{URL: "http://127.0.0.1:1/", Secrets: []string{"whsec_" + strings.Repeat("A", 32)}, Inward: true})
	if err != nil {
		return nil, err
	}
	return continuous.New(continuous.Config{Settings: &config.Continuous{Arrivals: true, Webhooks: []config.Webhook{{ID: id}}}, Ledger: f.Ledger, Keys: f.Keys, Trust: f.Trust,
		Scheduler: trials, Locks: f.Locks(), Receivers: map[string]*webhook.Receiver{id: receiver}, Log: slog.New(slog.DiscardHandler)})
}

// storedTrials is the file of the list of trials, beside the index of words.
func storedTrials(file string) string { return filepath.Join(filepath.Dir(file), "trials.json") }

func (f *finder) close() error { return errors.Join(f.keeper.Close(), f.house.Close()) }

// startInTurn starts a server and opens the installation alone, in turn.
func startInTurn(ctx context.Context, c Config, h *house, file string) (starts, bare timings, err error) {
	for range 5 {
		err := starts.took(func() error {
			f, err := h.openFinder(ctx, c, file)
			if err != nil {
				return err
			}
			return f.close()
		})
		if err == nil {
			err = bare.took(func() error {
				again, err := reopen(ctx, h.config)
				if err != nil {
					return err
				}
				return again.Close()
			})
		}
		if err != nil {
			return nil, nil, err
		}
		c.Progress("server started", int64(len(starts)), 5)
	}
	return starts, bare, nil
}

// A question is one kind of search, with what it cannot do without.
type question struct {
	name  string
	ask   func(ctx context.Context, i int) (found int, err error)
	limit string
	bare  func(ctx context.Context, i, found int) error

	took, least timings
}

// choose chooses records and trials that are asked for.
func (f *finder) choose(ctx context.Context) error {
	for i := range 100 {
		rows, err := f.Ledger.RowsFrom(ctx, int64(i)*int64(f.records)/100, 1)
		if err != nil {
			return err
		}
		f.ids = append(f.ids, rows[0].RecordID)
	}
	for _, s := range f.trials.List(nil) {
		f.some = append(f.some, s.ID)
	}
	for i := range tried { // so that a later look is a second one
		if _, err := f.history(ctx, &f.tally, triedName(i)); err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) measure(ctx context.Context, c Config, r *Report) error {
	if err := f.choose(ctx); err != nil {
		return err
	}
	var first timings
	if err := first.took(func() error { return f.arrivals.Tell(ctx) }); err != nil {
		return err
	}
	r.figure("the first round of arrivals", "ms", float64(first[0].Microseconds())/1000, nil)
	questions := f.questions()
	if x, err := f.keeper.Open(ctx); err != nil {
		return err
	} else if err := x.Follow(ctx, nil); err != nil {
		return err
	}
	for i, begin := 0, time.Now(); time.Since(begin) < c.Time || i < 3; i++ {
		for _, q := range questions {
			found := 0
			if err := q.took.took(func() (err error) { found, err = q.ask(ctx, i); return err }); err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			if err := q.least.took(func() error { return q.bare(ctx, i, found) }); err != nil {
				return fmt.Errorf("%s: %w", q.limit, err)
			}
		}
		c.Progress("searching", int64(min(time.Since(begin), c.Time)), int64(c.Time))
	}
	for _, q := range questions {
		r.twice(q.name, q.took, q.limit, q.least)
	}
	return nil
}

// twice adds a figure for the median and one for 99 % of the timings.
func (r *Report) twice(name string, took timings, limit string, least timings) {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	r.figure(name+" (median)", "ms", ms(took.median()), &Limit{limit, max(ms(least.median()), 0.001)})
	r.figure(name+" (99 %)", "ms", ms(took.below(99)), &Limit{limit, max(ms(least.below(99)), 0.001)})
}

// below returns the time that so many of a hundred did not pass.
func (t timings) below(percent int) time.Duration {
	sorted := slices.Sorted(slices.Values(t))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)]
}

func (f *finder) questions() []*question {
	text := func(of func(i int) string) func(context.Context, int) (int, error) {
		return func(ctx context.Context, i int) (int, error) {
			return f.search(ctx, map[string]string{"text": of(i), "limit": "20"})
		}
	}
	const read, copied = "reading as many records by their places", "copying the list of trials"
	word := func(i int) string { return vocabulary[i%len(vocabulary)] + " " + vocabulary[(i*7+1)%len(vocabulary)] }
	list := func(values func(i int) map[string]string) func(context.Context, int) (int, error) {
		return func(ctx context.Context, i int) (int, error) { return f.list(ctx, values(i)) }
	}
	some := func(values map[string]string) func(int) map[string]string {
		return func(int) map[string]string { return values }
	}
	return []*question{
		{name: "search for one record of all", ask: text(f.reference), limit: read, bare: f.read},
		{name: "search for two words that many said", ask: text(word), limit: read, bare: f.read},
		{name: "search for what nobody said", ask: text(func(i int) string { return fmt.Sprintf("zebra crossing %d", i) }), limit: read, bare: f.read},
		{name: "search for what all were given and nobody said", ask: func(ctx context.Context, _ int) (int, error) {
			return f.search(ctx, map[string]string{"text": "may i send the parcel", "said": "true"})
		}, limit: read, bare: f.read},
		{name: "search by actor and time", ask: func(ctx context.Context, i int) (int, error) {
			return f.search(ctx, map[string]string{"actor": agentName(i % agents), "from": "2026-01-01", "to": "2026-12-31", "limit": "20"})
		}, limit: read, bare: f.read},
		{name: "search by record", ask: func(ctx context.Context, i int) (int, error) {
			return f.search(ctx, map[string]string{"record": f.ids[i%len(f.ids)]})
		}, limit: read, bare: f.read},
		{name: "search of a submitter with half of the trials", ask: func(ctx context.Context, i int) (int, error) { return f.searchOfHalf(ctx, word(i)) }, limit: read, bare: f.read},
		{name: "trials, all", ask: list(some(nil)), limit: copied, bare: f.copied},
		{name: "trials by agent, outcome and time", ask: list(func(i int) map[string]string {
			return map[string]string{"agent": fmt.Sprintf("agent %02d", i%tried), "outcome": find.Positions()[i%3], "from": "2026-01-01"}
		}), limit: copied, bare: f.copied},
		{name: "trials by verdict, the last act first", ask: list(func(i int) map[string]string {
			return map[string]string{"verdict": find.Positions()[i%3], "sort": string(find.Latest)}
		}), limit: copied, bare: f.copied},
		{name: "trials by submitter and model, by agent", ask: list(some(map[string]string{"submitter": "submitter", "model": "none", "sort": string(find.ByAgent)})), limit: copied, bare: f.copied},
		{name: "trials by juror, highest score first", ask: list(some(map[string]string{"juror": "slow", "sort": string(find.Highest)})), limit: copied, bare: f.copied},
		{name: "trials by text and agent", ask: list(func(i int) map[string]string {
			return map[string]string{"text": "nobody has read anything", "agent": fmt.Sprintf("agent %02d", i%tried)}
		}), limit: copied, bare: f.copied},
		{name: "trials by text that all have", ask: list(some(map[string]string{"text": "nobody has read anything"})), limit: copied, bare: f.copied},
		{name: "trials by text that none has", ask: list(some(map[string]string{"text": "zebra crossing"})), limit: copied, bare: f.copied},
		{name: "trials by record", ask: list(func(i int) map[string]string { return map[string]string{"record": f.ids[i%len(f.ids)]} }), limit: copied, bare: f.copied},
		{name: "an agent's trials and numbers, the first look", ask: func(ctx context.Context, i int) (int, error) {
			return f.history(ctx, new(docket.Histories), triedName(i))
		}, limit: copied, bare: f.copied},
		{name: "an agent's trials and numbers, later", ask: func(ctx context.Context, i int) (int, error) { return f.history(ctx, &f.tally, triedName(i)) }, limit: copied, bare: f.copied},
		{name: "two trials side by side", ask: f.compare, limit: "reading their records", bare: f.chains},
		{name: "a round of arrivals", ask: f.round, limit: copied, bare: f.copied},
	}
}

// reference is a text that one record has: one of the last quarter, which is not of trials.
func (f *finder) reference(i int) string {
	hundreds := max(1, f.records/400)
	return fmt.Sprintf("reference %07d", 100*(f.records/100-i*31%hundreds))
}

func (f *finder) history(ctx context.Context, from *docket.Histories, agent string) (int, error) {
	h, err := from.Of(ctx, f.Ledger, f.trials, agent, "", nil)
	return len(h.Trials.Trials), err
}

// searchOfHalf searches as a reader who may read every second trial and nothing else.
func (f *finder) searchOfHalf(ctx context.Context, text string) (int, error) {
	visible := func(s *trial.Summary) bool { return s.ID[len(s.ID)-1]%2 == 0 }
	by := docket.Reader{Visible: visible, Scope: docket.ScopeOf(f.trials.List(visible), submitter{})}
	values := map[string]string{"text": text, "limit": "20"}
	found, err := f.keeper.Records(ctx, func(name string) string { return values[name] }, f.trials, &by, f.trusted)
	return len(found.Hits), err
}

type submitter struct{}

func (submitter) Name() string         { return "submitter" }
func (submitter) Has(access.Role) bool { return false }

// pair returns two trials.
func (f *finder) pair(i int) (list []string) {
	for _, n := range []int{i * 7919, i*104729 + 1} {
		list = append(list, f.some[n%len(f.some)])
	}
	return list
}

func (f *finder) compare(ctx context.Context, i int) (int, error) {
	var sheets [2]api.TrialSheet
	for n, id := range f.pair(i) {
		var err error
		if sheets[n], err = docket.Sheet(ctx, f.Ledger, id); err != nil {
			return 0, err
		}
	}
	docket.Compare(sheets[0], sheets[1])
	return 2, nil
}

func (f *finder) chains(ctx context.Context, i, _ int) error {
	for _, id := range f.pair(i) {
		if _, err := f.Ledger.Chain(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// round looks for cases that need a person, as a server does every two seconds. The receiver takes no message.
func (f *finder) round(ctx context.Context, _ int) (int, error) { return 0, f.arrivals.Tell(ctx) }

func (f *finder) search(ctx context.Context, values map[string]string) (int, error) {
	found, err := f.keeper.Records(ctx, func(name string) string { return values[name] }, f.trials, &f.reader, f.trusted)
	return len(found.Hits), err
}

func (f *finder) list(ctx context.Context, values map[string]string) (int, error) {
	found, err := f.keeper.Trials(ctx, func(name string) string { return values[name] }, f.trials, &f.reader)
	return len(found.Trials), err
}

// read reads a number of records from the log, at places of no order.
func (f *finder) read(ctx context.Context, i, found int) error {
	for j := range max(found, 1) {
		rows, err := f.Ledger.RowsFrom(ctx, int64((i*7919+j*104729)%f.records), 1)
		if err == nil {
			_, err = rows[0].Record()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *finder) copied(context.Context, int, int) error {
	f.trials.List(nil)
	return nil
}
