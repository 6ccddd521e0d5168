package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"jurat/internal/access"
	"jurat/internal/ledger/storage"
	"jurat/internal/must"
	"jurat/internal/trial"
	"jurat/internal/witness"
	"jurat/jury"
)

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
		Grants: func(context.Context) ([]access.Listed, error) { return nil, nil }}
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
	grant := func(left time.Duration, session bool, ended error) access.Listed {
		return access.Listed{Grant: access.Grant{Until: now.Add(left), Session: session}, Ended: ended}
	}
	d := gaugeSources{
		Owing: func(context.Context) ([]storage.Owed, error) {
			return []storage.Owed{{Authority: "one", Records: 5, Since: now.Add(-time.Hour)}}, nil
		},
		Open: func(context.Context) ([]time.Time, error) {
			return []time.Time{now.Add(-3 * time.Hour), now.Add(-time.Minute)}, nil
		},
		Grants: func(context.Context) ([]access.Listed, error) {
			return []access.Listed{grant(6*24*time.Hour, false, nil), grant(8*24*time.Hour, false, nil), grant(time.Hour, true, nil), grant(time.Hour, false, access.ErrRevoked)}, nil
		}}
	want(t, everything(d, nil), map[string]float64{"jurat_stamps_waiting authority=one": 5, "jurat_stamps_oldest_age_seconds authority=one": 3600,
		"jurat_reviews_open": 2, "jurat_reviews_oldest_age_seconds": 3 * 3600, "jurat_access_tokens": 2, "jurat_access_tokens_expiring": 1})
	want(t, everything(quiet(), nil), map[string]float64{"jurat_reviews_open": 0, "jurat_reviews_oldest_age_seconds": 0, "jurat_access_tokens": 0, "jurat_access_tokens_expiring": 0})
	broken := errors.New("the disk is gone")
	d = gaugeSources{Owing: func(context.Context) ([]storage.Owed, error) { return nil, broken }, Open: func(context.Context) ([]time.Time, error) { return nil, broken },
		Grants: func(context.Context) ([]access.Listed, error) { return nil, broken }}
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
		hear := trials.Listen()
		for _, e := range events {
			hear(e)
		}
	}
	hear := trials.Listen()
	for _, e := range append(events, trial.Judged{EventHead: head(4, time.Minute), Judgment: jury.Judgment{Position: jury.UnsafeFail}},
		trial.TrialClosed{EventHead: head(5, time.Minute)}, trial.PersonDecided{EventHead: head(6, time.Hour)}) {
		hear(e)
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
	c := trials.Seated(trial.Config{Jurors: []jury.Juror{payer{}, payer{jury.ErrBlocked}}, Judge: payer{},
		Settings: jury.Settings{Seats: []jury.Seat{{Model: "small"}, {Model: "large"}}, Judge: &jury.Seat{Model: "large"}}})
	for _, juror := range append(c.Jurors, c.Judge) {
		_, err := juror.Answer(t.Context(), jury.Brief{})
		if (err != nil) != errors.Is(err, jury.ErrBlocked) {
			t.Error(err)
		}
	}
	want(t, everything(quiet(), trials), map[string]float64{"jurat_juror_answer_seconds model=small": 1, "jurat_juror_answer_seconds model=large": 2,
		"jurat_juror_cost_dollars_total model=small": 0.05, "jurat_juror_cost_dollars_total model=large": 0.1})
	for i := range 3 * mostModels {
		trials.Seated(trial.Config{Jurors: []jury.Juror{payer{}}, Settings: jury.Settings{Seats: []jury.Seat{{Model: fmt.Sprint("model ", i)}}}})
	}
	if len(trials.models) > mostModels+1 {
		t.Errorf("the label model has %d values", len(trials.models))
	}
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
		if match == nil {
			t.Fatal(desc)
		}
		if strings.HasPrefix(match[1], "jurat_") {
			labels := strings.Split(match[2], ",")
			exported[match[1]] = strings.Join(labels, ", ")
		}
	}
	doc := must.Get(os.ReadFile("../../docs/operations.md"))(t)
	documented, kinds := map[string]string{}, map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(jurat_[a-z_]+)` \\| (counter|gauge|histogram) \\| ([^|]*) \\| [^|]+ \\|$").FindAllStringSubmatch(string(doc), -1) {
		documented[row[1]], kinds[row[1]] = strings.ReplaceAll(strings.TrimSpace(row[3]), "`", ""), row[2]
	}
	if len(exported) < 20 {
		t.Fatalf("%d metrics", len(exported))
	}
	must.Equal(t, cmp.Diff(exported, documented), "")
	for name, kind := range kinds {
		if is := slices.Contains([]string{"jurat_http_request_seconds", "jurat_juror_answer_seconds"}, name); strings.HasSuffix(name, "_total") != (kind == "counter") || is != (kind == "histogram") {
			t.Errorf("%s is documented as a %s", name, kind)
		}
	}
}
