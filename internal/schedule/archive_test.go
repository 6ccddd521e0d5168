package schedule_test

import (
	"context"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/ledger/memory"
	"jurat/internal/ledger/storage"
	"jurat/jurattest"
)

// messages keeps the messages of a logger.
type messages struct {
	slog.Handler
	all []string
}

func (m *messages) Enabled(context.Context, slog.Level) bool { return true }

func (m *messages) Handle(_ context.Context, r slog.Record) error {
	m.all = append(m.all, r.Message)
	return nil
}

// archive moves the first records of a log, except the operator's acts, into an archive file that does not exist.
func archive(t *testing.T, h *jurattest.House) {
	t.Helper()
	for range storage.TileWidth {
		h.Seal(t, evidence.Payload{AgentID: "courier", RequestID: "r", Timestamp: "2026-01-01T00:00:00Z", Model: "m", ModelVersion: "1",
			Prompt: jsontext.Value(`"p"`), Response: jsontext.Value(`"r"`), Parameters: jsontext.Value(`{}`)})
	}
	file := storage.Archived{To: storage.TileWidth, File: "lost", Digest: evidence.DigestOf(nil)}
	if err := h.Ledger.PutArchive(t.Context(), evidence.Digest{}, file); err != nil {
		t.Fatal(err)
	}
	var all []storage.Shedding
	for r, err := range h.Ledger.Records(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Index < storage.TileWidth && !r.Payload.ActionType.ByOperator() {
			all = append(all, storage.Shedding{Index: r.Index, Timestamps: 1})
		}
	}
	if err := h.Ledger.Shed(t.Context(), all); err != nil {
		t.Fatal(err)
	}
}

// TestArchiveIsMissing: a scheduler opens although its first trial is in a missing archive and has no briefs. It logs
// that, conducts new trials, and does not list the old one as a trial without acts.
func TestArchiveIsMissing(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	store := memory.New()
	keep(t, h, store)
	first := open(t, config(h, b))
	stop := run(t, first)
	old := submit(t, first)
	awaitState(t, first, old, api.Over)
	stop()
	archive(t, h)
	if err := store.PutBriefs(t.Context(), storage.Range{To: storage.TileWidth}, nil, 0); err != nil { // as in the log of an earlier program
		t.Fatal(err)
	}
	said := &messages{}
	c := config(h, b)
	c.Log = slog.New(said)
	d := open(t, c)
	if !slices.ContainsFunc(said.all, func(m string) bool { return strings.Contains(m, "archive") }) {
		t.Errorf("the missing archive was not logged: %q", said.all)
	}
	run(t, d)
	awaitState(t, d, submit(t, d), api.Over)
	if e, err := d.Entry(t.Context(), old); err == nil {
		t.Errorf("a trial in a missing archive is listed as %+v", e)
	}
}

// TestArchiveIsMissingBesideBriefs: a trial whose records are in a missing archive is listed, because lists need only
// the briefs in the database.
func TestArchiveIsMissingBesideBriefs(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	first := open(t, config(h, b))
	stop := run(t, first)
	old := submit(t, first)
	awaitState(t, first, old, api.Over)
	want, err := first.Entry(t.Context(), old)
	if err != nil {
		t.Fatal(err)
	}
	stop()
	archive(t, h)
	said := &messages{}
	c := config(h, b)
	c.Log = slog.New(said)
	got, err := open(t, c).Entry(t.Context(), old)
	if err != nil || got.Agent != want.Agent || got.State != api.Over || got.Acts != want.Acts || !reflect.DeepEqual(got.Outcome, want.Outcome) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if len(said.all) > 0 {
		t.Errorf("said: %q", said.all)
	}
}

// TestArchiveIsMissingOfATrialThatWasStopped: an act of the operator on a trial in a missing archive is not reported as
// an act on no trial.
func TestArchiveIsMissingOfATrialThatWasStopped(t *testing.T) {
	h, b := jurattest.New(t), &bench{}
	first := open(t, config(h, b))
	old := submit(t, first) // no scheduler conducts it
	if err := first.Cancel(t.Context(), old, "Hana", "enough"); err != nil {
		t.Fatal(err)
	}
	archive(t, h)
	d := open(t, config(h, b))
	run(t, d)
	awaitState(t, d, submit(t, d), api.Over)
}
