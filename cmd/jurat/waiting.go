package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"jurat/internal/plural"
	"jurat/internal/trial"
	"jurat/jury"
)

// waiting says on stderr what a trial waits for while models think, once that takes longer than a second. On a terminal it is one line that
// is renewed. Elsewhere it is a line when the wait is a second old, and one for each answer after that.
type waiting struct {
	to     io.Writer // messages
	screen *os.File  // the terminal whose last line is renewed; nil: none
	about  string    // which of several cases

	mu     sync.Mutex // held while something is printed, too, so that nothing comes between
	what   string     // what the jurors are asked for
	since  time.Time
	asked  []string // who has not answered
	came   []string // who has
	spent  int64    // millionths of a dollar
	told   bool     // that this is waited for
	drawn  string   // on the screen
	ticker *time.Ticker
	ended  chan struct{}
}

// patience is how long nothing is said of a wait.
const patience = time.Second

// await watches the jurors of a trial. about names the case if several run at a time; then there is no line to renew. The
// watch is nil if nothing is to be said. Its end must be called.
func await(out stdio, about string, config *trial.Config) *waiting {
	if out.hushed() {
		return nil
	}
	w := &waiting{to: out.err, ticker: time.NewTicker(patience / 4), ended: make(chan struct{})}
	if about != "" {
		w.about = about + ": "
	} else if os.Getenv("TERM") != "dumb" {
		w.screen = terminalOf(out.err)
	}
	config.Jurors = slices.Clone(config.Jurors)
	for i, j := range config.Jurors {
		if j != nil {
			config.Jurors[i] = awaited{j, w}
		}
	}
	if config.Judge != nil {
		config.Judge = awaited{config.Judge, w}
	}
	go func() {
		for {
			select {
			case <-w.ticker.C:
				w.look()
			case <-w.ended:
				return
			}
		}
	}()
	return w
}

// end removes the line.
func (w *waiting) end() {
	if w == nil {
		return
	}
	w.ticker.Stop()
	close(w.ended)
	w.beside(func() { w.asked = nil })
}

// beside does something that prints, or changes what is waited for, with the line out of the way.
func (w *waiting) beside(do func()) {
	if w == nil {
		do()
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.draw("")
	do()
}

// awaited is a juror whose answers are waited for.
type awaited struct {
	juror jury.Juror
	w     *waiting
}

// Answer implements jury.Juror.
func (j awaited) Answer(ctx context.Context, b jury.Brief) (jury.Answer, error) {
	who := j.w.begins(&b)
	a, err := j.juror.Answer(ctx, b)
	j.w.answered(who, costOf(a), err)
	return a, err
}

// costOf returns what an answer cost, as its attempts say.
func costOf(a jury.Answer) (cost int64) {
	effort, err := jury.ReadEffort(a.Origin.Metadata)
	if err != nil {
		return 0 // the clerk finds out, and says so
	}
	for _, attempt := range effort.Attempts {
		cost += attempt.Cost
	}
	return cost
}

// asking are the words for what jurors are asked for.
var asking = map[jury.Phase]string{jury.Initial: "each juror alone", jury.Repetition: "disputed seats, asked again", jury.Judging: "judgment"}

func (w *waiting) begins(b *jury.Brief) (who string) {
	who, what := b.Seat.RoleName, asking[b.Phase]
	if who == "" {
		who = b.Seat.JurorID
	}
	if what == "" {
		what = fmt.Sprintf("discussion, round %d", b.RoundNumber)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.what != what {
		w.what, w.since, w.asked, w.came, w.told = what, time.Now(), nil, nil, false
	}
	w.asked = append(w.asked, who)
	return who
}

func (w *waiting) answered(who string, cost int64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.asked, who); i >= 0 {
		w.asked = slices.Delete(w.asked, i, i+1)
	}
	w.came = append(w.came, who)
	w.spent += cost
	if w.told && w.screen == nil {
		how := "has answered"
		if errors.Is(err, context.Canceled) {
			return
		} else if err != nil {
			how = "has given no answer"
		}
		w.say(who + " " + how)
	}
}

// look says that something is waited for.
func (w *waiting) look() {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.asked) == 0 || time.Since(w.since) < patience:
	case w.screen != nil:
		w.draw(w.state(""))
	case !w.told:
		w.told = true
		w.say("")
	}
}

func (w *waiting) say(event string) { fmt.Fprintf(w.to, "jurat: %s\n", w.state(event)) }

// state is how things stand, after an event.
func (w *waiting) state(event string) string {
	parts := []string{w.about + w.what}
	if event != "" {
		parts = append(parts, event)
	} else if len(w.came) > 0 {
		parts = append(parts, strings.Join(w.came, ", ")+plural.Or(int64(len(w.came)), " has answered", " have answered"))
	}
	if len(w.asked) > 0 {
		parts = append(parts, "waiting for "+strings.Join(w.asked, ", "))
	}
	parts = append(parts, time.Since(w.since).Truncate(time.Second).String())
	if w.spent > 0 {
		parts = append(parts, dollars(w.spent)+" so far")
	}
	return strings.Join(parts, "; ")
}

// draw puts a text in place of the screen's last line; "" removes it.
func (w *waiting) draw(text string) {
	if w.screen == nil || text == w.drawn {
		return
	}
	w.drawn = text
	text = inert(text)
	if most := terminalColumns(w.screen); most > 0 {
		text = shorter(text, most-1)
	}
	fmt.Fprintf(w.screen, "\r\x1b[K%s", text)
}
