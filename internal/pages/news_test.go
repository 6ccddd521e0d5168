package pages

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"jurat/evidence"
	"jurat/internal/trial"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
)

// TestNews: the part that a page fetches after each act has everything new, and no earlier round of the discussion.
func TestNews(t *testing.T) {
	records := disputed(t, jurattest.New(t), 3)
	v := trial.NewView(courtOf(t, records[:1]).Case)
	for n, r := range records {
		_, err := v.Add(r)
		check(t, err)
		c := NewNews(v, n)
		if n == 0 {
			equal(t, c == nil, true) // at first, the page needs the whole courtroom
			continue
		}
		page := write(t, Frame{}, c)
		for _, said := range v.SaidAfter(n) {
			if !strings.Contains(page, `id="`+c.anchor(said)+`"`) {
				t.Errorf("after %d of %d: the news lacks %s", n+1, len(records), c.anchor(said))
			}
		}
		if len(v.SaidAfter(n)) == 0 && strings.Contains(page, `class="statement"`) || strings.Contains(page, `id="said-1-1"`) && strings.Contains(page, `id="said-2-1"`) {
			t.Errorf("after %d of %d: the news repeats what was said before", n+1, len(records))
		}
	}
	h := jurattest.New(t)
	decided := decide(t, h, offline(t, h, "pharmacy-refill"), evidence.ApprovedWithModifications, jury.ModifiedVerdict(jury.UnsafeFail))
	v, err := trial.ViewOf(nil, decided)
	check(t, err)
	if NewNews(v, len(decided)-1) != nil || NewNews(v, -1) != nil || NewNews(v, len(decided)+1) != nil || NewNews(v, len(decided)) == nil {
		t.Error("a page must get the whole courtroom after a decision, and nothing but the news if it already has it")
	}
}

// disputed returns a trial whose jurors never agree, with this many rounds.
func disputed(t testing.TB, h *jurattest.House, rounds int) []*evidence.Record {
	t.Helper()
	s := jurattest.Settings(jury.MajorityVote)
	s.MaxRounds = rounds
	return h.TryBefore(t, s, []jury.Juror{&jurattest.Juror{Opinion: jurattest.Opine(jury.SafePass, 90)}, &jurattest.Juror{Opinion: jurattest.Opine(jury.NeedsReview, 60)},
		&jurattest.Juror{Opinion: jurattest.Opine(jury.UnsafeFail, 10)}}, nil).Records
}

// BenchmarkFollow shows the last ten acts of a trial to a hundred watchers, act by act. ns/event·watcher is the cost of
// one act for one watcher, with its part of the read model; bytes is what the watcher is sent. "whole" makes the whole
// courtroom from all records each time.
func BenchmarkFollow(b *testing.B) {
	const events, watchers = 10, 100
	for _, rounds := range []int{1, 5, 20} {
		records := disputed(b, jurattest.New(b), rounds)
		last := len(records) - events
		b.Run(fmt.Sprintf("acts=%d/news", len(records)), func(b *testing.B) {
			var sent counter
			for b.Loop() {
				b.StopTimer()
				v, err := trial.ViewOf(nil, records[:last])
				check(b, err)
				b.StartTimer()
				for n := last; n < len(records); n++ {
					_, err := v.Add(records[n])
					check(b, err)
					for range watchers {
						check(b, Write(&sent, Frame{Lang: words.English}, NewNews(v, n)))
					}
				}
			}
			report(b, sent, events*watchers)
		})
		b.Run(fmt.Sprintf("acts=%d/whole", len(records)), func(b *testing.B) {
			var sent counter
			for b.Loop() {
				for n := last; n < len(records); n++ {
					c, err := NewCourt(records[:n+1])
					check(b, err)
					check(b, Write(&sent, Frame{Lang: words.English}, c))
				}
			}
			report(b, sent, events)
		})
	}
}

// A counter counts the bytes written to it.
type counter int64

func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return io.Discard.Write(p)
}

func report(b *testing.B, sent counter, times int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*times), "ns/event·watcher")
	b.ReportMetric(float64(sent)/float64(b.N*times), "bytes/event·watcher")
}
