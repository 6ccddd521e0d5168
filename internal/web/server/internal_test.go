package server

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/ledger"
	"jurat/internal/log/ledger/storage"
	"jurat/internal/log/witness"
	"jurat/internal/test/must"
	"jurat/jury"
)

// FuzzBody: a body with a canonical form is read whole. A body that is nested too deeply is refused before its end.
func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"a":[1,"]\"[",{"b":null}]}`))
	f.Add([]byte(strings.Repeat("[", 200) + strings.Repeat("]", 200)))
	f.Fuzz(func(t *testing.T, doc []byte) {
		got, err := readBody(httptest.NewRequest("POST", "/", bytes.NewReader(doc)))
		must.Need(t, err != nil || bytes.Equal(got, doc), "read %q of %q", got, doc)
		_, refused := evidence.Canonical(doc)
		must.Need(t, refused != nil || err == nil, "%q has a canonical form: %v", doc, err)
		must.Need(t, err == nil || errors.Is(err, api.ErrInvalid) || errors.Is(err, api.ErrMalformed), "%v", err)
	})
}

// TestDeepestBody: the maximum nesting is that of payloads. Brackets in strings do not count.
func TestDeepestBody(t *testing.T) {
	for text, good := range map[string]bool{
		strings.Repeat("[", evidence.MaxDepth) + strings.Repeat("]", evidence.MaxDepth):     true,
		strings.Repeat("[", evidence.MaxDepth+1) + strings.Repeat("]", evidence.MaxDepth+1): false,
		`"` + strings.Repeat(`[\"`, 1000) + `"`:                                             true,
		`"\\"` + strings.Repeat("[", evidence.MaxDepth+1):                                   false,
	} {
		_, err := io.ReadAll(shallowReader(strings.NewReader(text)))
		must.Hold(t, (err == nil) == good, "%.20s: %v", text, err)
	}
}

// TestCompressed: pages, styles and scripts are compressed for who takes it, and nothing else: a stream arrives event by
// event, and bytes that are hashed are as they were.
func TestCompressed(t *testing.T) {
	long := strings.Repeat("A conversation of five hundred messages. ", 2000)
	for kind, packed := range map[string]bool{"text/html; charset=utf-8": true, "text/css; charset=utf-8": true, "text/javascript; charset=utf-8": true,
		"application/json": false, "application/octet-stream": false, "text/event-stream": false, "text/csv": false} {
		h := must.Get(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			io.WriteString(w, long)
		})))(t)
		for _, takes := range []string{"gzip, deflate, br", "", "br"} {
			r := httptest.NewRequest("GET", "/", nil)
			if takes != "" {
				r.Header.Set("Accept-Encoding", takes)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			body := w.Body.Bytes()
			want := packed && strings.Contains(takes, "gzip")
			if got := w.Header().Get("Content-Encoding") == "gzip"; got != want {
				t.Errorf("%s for a client that takes %q: compressed is %v, want %v", kind, takes, got, want)
				continue
			}
			if want {
				must.Hold(t, len(body) <= len(long)/20, "%s: %d bytes of %d", kind, len(body), len(long))
				z := must.Get(gzip.NewReader(bytes.NewReader(body)))(t)
				body = must.Get(io.ReadAll(z))(t)
			}
			must.Hold(t, string(body) == long, "%s for a client that takes %q: another body", kind, takes)
			must.Hold(t, !packed || strings.Contains(strings.Join(w.Header().Values("Vary"), ","), "Accept-Encoding"),
				"%s: caches are not told that the body depends on Accept-Encoding", kind)
		}
	}
}

// TestCompressedStreams: an event passes when it is flushed.
func TestCompressedStreams(t *testing.T) {
	next := make(chan bool)
	h := must.Get(compressed(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		must.Want(t, http.NewResponseController(w).Flush(), nil)
		<-next
	})))(t)
	s := httptest.NewServer(h)
	defer s.Close()
	defer close(next)
	r := must.Get(http.NewRequestWithContext(t.Context(), "GET", s.URL, nil))(t)
	r.Header.Set("Accept-Encoding", "gzip")
	answer := must.Get(http.DefaultTransport.RoundTrip(r))(t)
	defer answer.Body.Close()
	first := make([]byte, len("data: 1\n\n"))
	_, err := io.ReadFull(answer.Body, first)
	must.Hold(t, err == nil && string(first) == "data: 1\n\n", "%q, %v", first, err)
}

// TestCrowdsOfStrangers: callers without a token, from many addresses, do not shut out a caller with a token. Their
// addresses are forgotten as soon as they have their full allowance again.
func TestCrowdsOfStrangers(t *testing.T) {
	now := time.Now()
	l := newRateLimiter(Rate{PerSecond: 1, Burst: 2}, func() time.Time { return now })
	for i := range maxStrangers {
		err := l.Allow(fmt.Sprint("address ", i), true)
		must.Need(t, err == nil, "%v %v", i, err)
	}
	must.Want(t, l.Allow("one address more", true), api.ErrTooMany)
	must.Want(t, l.Allow("a token", false), nil)
	now = now.Add(2 * time.Second)
	err := l.Allow("one address more", true)
	must.Hold(t, err == nil && len(l.callers) == 1, "%v, %d are remembered", err, len(l.callers))
	// Pauses between many requests do not help.
	for range 5 {
		_ = l.Allow("one address more", true)
	}
	now = now.Add(time.Second)
	l.sweep(now)
	must.Hold(t, l.callers["one address more"] != nil, "an address was forgotten before its allowance was full again")
	now = now.Add(-time.Hour)
	must.Want(t, l.Allow("a clock that went back", true), nil)
}

// TestProblemsOfExpired: a deleted record gives another status than a missing one.
func TestProblemsOfExpired(t *testing.T) {
	for err, want := range map[error]int{ledger.ErrExpired: http.StatusGone, ledger.ErrNotFound: http.StatusNotFound} {
		p := problemOf(fmt.Errorf("reading record r: %w", err))
		must.Hold(t, p.Status == want && p.Detail != "", "%v: %+v, want %d", err, p, want)
	}
}

// TestOwnPath: the sign-in page never sends a browser to another site.
func TestOwnPath(t *testing.T) {
	for next, want := range map[string]string{"": "/", "/reviews": "/reviews", "/records/x?lang=ja": "/records/x?lang=ja", "https://elsewhere.example": "/",
		"//elsewhere.example": "/", `/\elsewhere.example`: "/", "javascript:alert(1)": "/", "reviews": "/", "/\t/elsewhere.example": "/", "/%": "/"} {
		got := ownPath(next)
		must.Hold(t, got == want, "ownPath(%q) = %q, want %q", next, got, want)
	}
}

// TestHeld: what a page of a chain holds does not grow with what is before it, beyond the window of bodies, whatever records state.
func TestHeld(t *testing.T) {
	r := &evidence.Record{Payload: evidence.Payload{Observed: &evidence.Observed{Request: &evidence.ObservedBody{Bytes: 400 << 10}, Response: &evidence.ObservedBody{Bytes: 1 << 10}}}}
	h, sum := held{}, int64(0)
	for range 10_000 {
		sum += h.more(r, false)
	}
	most := int64(observed.MaxWindow + 4*401<<10)
	must.Hold(t, sum == most, "10,000 calls take %d bytes, want %d", sum, most)
	r.Payload.Observed.Request.Bytes = 1 << 50
	more := (&held{}).more(r, true)
	must.Hold(t, more <= observed.MaxWindow+8*observed.MaxKept, "a call that states very many bytes takes %d", more)
	must.Equal(t, (&held{}).more(&evidence.Record{}, true), 0)
}

var now = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// everything makes metrics whose sources say this.
func everything(c gaugeSources, trials *TrialMetrics) *metrics {
	c.Records = func(context.Context) (int64, error) { return 7, nil }
	c.Waiting, c.UnderWay = func(context.Context) (int, error) { return 2, nil }, func() int { return 1 }
	c.Cosigned = func(context.Context) (*witness.Cosigning, error) { return nil, nil }
	c.Now, c.Trials = func() time.Time { return now }, trials
	return newMetrics(c)
}

func quiet() gaugeSources {
	return gaugeSources{Owing: func(context.Context) ([]storage.Owed, error) { return nil, nil }, Open: func(context.Context) ([]time.Time, error) { return nil, nil },
		Grants: func(context.Context) ([]access.Grant, error) { return nil, nil }}
}

var (
	sample = regexp.MustCompile(`(?m)^(jurat_[a-z_]+)(?:\{(.*)\})? ([-0-9.e+]+)$`)
	label  = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)
)

// gathered returns the value of each sample, as it is exported: of a histogram, how many observations.
func gathered(t *testing.T, m *metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	values := map[string]float64{}
	for _, match := range sample.FindAllStringSubmatch(w.Body.String(), -1) {
		name := strings.TrimSuffix(match[1], "_count")
		for _, one := range label.FindAllStringSubmatch(match[2], -1) {
			name += " " + one[1] + "=" + one[2]
		}
		value, err := strconv.ParseFloat(match[3], 64)
		if err != nil {
			t.Fatal(match[0], err)
		}
		values[name] = value
	}
	return values
}

func want(t *testing.T, m *metrics, want map[string]float64) {
	t.Helper()
	got := gathered(t, m)
	maps.DeleteFunc(got, func(name string, _ float64) bool { _, asked := want[name]; return !asked })
	must.Equal(t, cmp.Diff(want, got), "")
}

func TestDomain(t *testing.T) {
	grant := func(left time.Duration, session bool, ended error) access.Grant {
		return access.Grant{Until: now.Add(left), Session: session, Ended: ended}
	}
	d := gaugeSources{
		Owing: func(context.Context) ([]storage.Owed, error) {
			return []storage.Owed{{Authority: "one", Records: 5, Since: now.Add(-time.Hour)}}, nil
		},
		Open: func(context.Context) ([]time.Time, error) {
			return []time.Time{now.Add(-3 * time.Hour), now.Add(-time.Minute)}, nil
		},
		Grants: func(context.Context) ([]access.Grant, error) {
			return []access.Grant{grant(6*24*time.Hour, false, nil), grant(8*24*time.Hour, false, nil), grant(time.Hour, true, nil), grant(time.Hour, false, access.ErrRevoked)}, nil
		}}
	want(t, everything(d, nil), map[string]float64{"jurat_stamps_waiting authority=one": 5, "jurat_stamps_oldest_age_seconds authority=one": 3600,
		"jurat_reviews_open": 2, "jurat_reviews_oldest_age_seconds": 3 * 3600, "jurat_access_tokens": 2, "jurat_access_tokens_expiring": 1})
	want(t, everything(quiet(), nil), map[string]float64{"jurat_reviews_open": 0, "jurat_reviews_oldest_age_seconds": 0, "jurat_access_tokens": 0, "jurat_access_tokens_expiring": 0})
	broken := errors.New("the disk is gone")
	d = gaugeSources{Owing: func(context.Context) ([]storage.Owed, error) { return nil, broken }, Open: func(context.Context) ([]time.Time, error) { return nil, broken },
		Grants: func(context.Context) ([]access.Grant, error) { return nil, broken }}
	want(t, everything(d, nil), map[string]float64{"jurat_reviews_open": -1, "jurat_reviews_oldest_age_seconds": -1, "jurat_access_tokens": -1, "jurat_access_tokens_expiring": -1})
}

// TestTrialsCountOnce: a trial that goes on is heard from its beginning, and what another process counted is older.
func TestTrialsCountOnce(t *testing.T) {
	trials := NewTrialMetrics(now)
	head := func(seq int64, at time.Duration) trial.EventHead {
		return trial.EventHead{Seq: seq, At: now.Add(at), SubmissionID: "trial-1"}
	}
	absent := func(h trial.EventHead, reason jury.AbsenceReason) trial.JurorAbsent {
		return trial.JurorAbsent{EventHead: h, Absent: jury.Absent{Reason: reason}}
	}
	events := []trial.Event{absent(head(1, -time.Second), jury.Failed), absent(head(2, time.Second), jury.TimedOut), absent(head(3, time.Second), jury.TimedOut)}
	for range 2 { // it was broken off, and went on
		for _, e := range events {
			trials.Hear(e)
		}
	}
	for _, e := range append(events, trial.Judged{EventHead: head(4, time.Minute), Judgment: jury.Judgment{Position: jury.UnsafeFail}},
		trial.TrialClosed{EventHead: head(5, time.Minute)}, trial.PersonDecided{EventHead: head(6, time.Hour)}) {
		trials.Hear(e)
	}
	want(t, everything(quiet(), trials), map[string]float64{"jurat_juror_absences_total reason=failed": 0, "jurat_juror_absences_total reason=timed_out": 2,
		"jurat_verdicts_total position=unsafe_fail": 1, "jurat_verdicts_total position=safe_pass": 0})
	must.Equal(t, len(trials.heard), 0)
}

// A payer is a juror that costs something, also when it does not answer.
type payer struct{ err error }

// Answer implements jury.Juror.
func (p payer) Answer(context.Context, jury.Brief) (a jury.Answer, err error) {
	a.Origin.Metadata, err = jury.Effort{Attempts: []jury.Attempt{{Cost: 30_000, Model: "whatever the provider says"}, {Cost: 20_000}}}.Encode()
	return a, errors.Join(err, p.err)
}

func TestSeatsAreMeasured(t *testing.T) {
	trials := NewTrialMetrics(now)
	c := trial.Config{Jurors: []jury.Juror{payer{}, payer{jury.ErrBlocked}}, Judge: payer{},
		Settings: jury.Settings{Seats: []jury.Seat{{Model: "small"}, {Model: "large"}}, Judge: &jury.Seat{Model: "large"}}}.Wrapped(trials.Measured)
	for _, juror := range append(c.Jurors, c.Judge) {
		_, err := juror.Answer(t.Context(), jury.Brief{})
		must.Hold(t, (err != nil) == errors.Is(err, jury.ErrBlocked), "%v", err)
	}
	want(t, everything(quiet(), trials), map[string]float64{"jurat_juror_answer_seconds model=small": 1, "jurat_juror_answer_seconds model=large": 2,
		"jurat_juror_cost_dollars_total model=small": 0.05, "jurat_juror_cost_dollars_total model=large": 0.1})
	for i := range 3 * mostModels {
		trial.Config{Jurors: []jury.Juror{payer{}}, Settings: jury.Settings{Seats: []jury.Seat{{Model: fmt.Sprint("model ", i)}}}}.Wrapped(trials.Measured)
	}
	must.Hold(t, len(trials.models) <= mostModels+1, "the label model has %d values", len(trials.models))
}

var described = regexp.MustCompile(`fqName: "([^"]+)".*variableLabels: \{([^}]*)\}`)

// TestMetricsAreDocumented compares the table in docs/operations.md with what is exported, both ways.
func TestMetricsAreDocumented(t *testing.T) {
	m := everything(quiet(), NewTrialMetrics(now))
	m.Untold(nil)
	exported := map[string]string{}
	all := make(chan *prometheus.Desc)
	go func() { m.registry.Describe(all); close(all) }()
	for desc := range all {
		match := described.FindStringSubmatch(desc.String())
		must.Need(t, match != nil, "%v", desc)
		if strings.HasPrefix(match[1], "jurat_") {
			labels := strings.Split(match[2], ",")
			exported[match[1]] = strings.Join(labels, ", ")
		}
	}
	doc := must.Get(os.ReadFile("../../../docs/operations.md"))(t)
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(jurat_[a-z_]+)` \\| ([^|]*) \\| [^|]+ \\|$").FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]] = strings.ReplaceAll(strings.TrimSpace(row[2]), "`", "")
	}
	must.Need(t, len(exported) >= 20, "%d metrics", len(exported))
	must.Equal(t, cmp.Diff(exported, documented), "")
}
