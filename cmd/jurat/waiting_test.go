package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"jurat/internal/llm/llmtest"
	"jurat/jury"
)

// A cue is a text that lets jurors answer when words of theirs are in it.
type cue struct {
	mu     sync.Mutex
	text   bytes.Buffer
	cues   map[string]chan struct{} // by words; closed when they have been written
	missed chan struct{}            // closed when the command has ended
}

func newCue(words ...string) *cue {
	c := &cue{cues: map[string]chan struct{}{}, missed: make(chan struct{})}
	for _, w := range words {
		c.cues[w] = make(chan struct{})
	}
	return c
}

func (c *cue) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.text.String()
	c.text.Write(p)
	for words, is := range c.cues {
		if !strings.Contains(before, words) && strings.Contains(c.text.String(), words) {
			close(is)
		}
	}
	return len(p), nil
}

func (c *cue) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// on has a juror answer when these words have been written.
func (c *cue) on(words string, script llmtest.Script) llmtest.Script {
	return func(call llmtest.Call) llmtest.Reply {
		select {
		case <-c.cues[words]:
		case <-c.missed:
		}
		return script(call)
	}
}

// held runs a trial whose first two jurors wait until stderr says that they are waited for, and that the first has answered.
func held(t *testing.T, more ...string) (out, said string) {
	t.Helper()
	const waits, first = "waiting for", "The juror-gpt has answered"
	c := newCue(waits, first)
	s := newScene(t, map[int]llmtest.Script{0: c.on(waits, finds(jury.SafePass, 90)), 1: c.on(first, finds(jury.SafePass, 90))})
	s.extra = slices.Repeat([]string{", attempts: 1, price: {input: 1, output: 2}"}, len(seatIDs))
	var stdout bytes.Buffer
	code := run(t.Context(), append([]string{"--data=" + s.data, "trial", "--config=" + s.config(), s.accused}, more...), stdio{in: strings.NewReader(""), out: &stdout, err: c})
	if close(c.missed); code != 0 {
		t.Errorf("exit code %d\n%s", code, c)
	}
	return stdout.String(), c.String()
}

// TestWaiting: while models think, stderr says what is waited for, who has answered, how long it takes and what it has cost, with a line for
// each event at most. stdout has the transcript or the JSON alone.
func TestWaiting(t *testing.T) {
	out, said := held(t, "--json")
	if !strings.HasPrefix(out, "{") || strings.Contains(out, "waiting for") {
		t.Errorf("stdout has more than JSON:\n%s", out)
	}
	lines := slices.DeleteFunc(strings.Split(said, "\n"), func(line string) bool { return !strings.Contains(line, "each juror alone") })
	next := 0
	for _, want := range []string{
		`^jurat: each juror alone; (.* answered; )?waiting for .*The juror-(gpt|claude).*; \d+s(; \$0\.\d+ so far)?$`,
		`^jurat: each juror alone; The juror-gpt has answered; waiting for .*The juror-claude.*; \d+s; \$0\.\d+ so far$`,
		`^jurat: each juror alone; The juror-claude has answered; (waiting for .*; )?\d+s; \$0\.\d+ so far$`,
	} {
		at := slices.IndexFunc(lines[next:], regexp.MustCompile(want).MatchString)
		if at < 0 {
			t.Fatalf("no line from %d on is %s:\n%s", next, want, said)
		}
		next += at + 1
	}
	if len(lines) > 1+len(seatIDs) {
		t.Errorf("%d lines:\n%s", len(lines), said)
	}
	out, _ = held(t)
	if strings.Contains(out, "waiting for") || !strings.Contains(out, "Verdict") {
		t.Errorf("stdout:\n%s", out)
	}
}

var namesItsCase = regexp.MustCompile(`(?m)^jurat: \.\./\.\./examples/(pharmacy-refill|kitchen-return): each juror alone; `) // whichever waits

// TestWaitingOfSeveral: of several cases at a time, each line names its case, and comes while the trial goes on.
func TestWaitingOfSeveral(t *testing.T) {
	if _, said := held(t, "../../examples/pharmacy-refill", "--parallel", "2"); !namesItsCase.MatchString(said) {
		t.Error(said)
	}
}

// TestNotWaiting: with --quiet nothing is said of a wait, however long.
func TestNotWaiting(t *testing.T) {
	s := newScene(t, map[int]llmtest.Script{0: slowly(2*patience, finds(jury.SafePass, 90))})
	out, said := s.hold(0, 0, "--quiet")
	if said != "" || strings.Contains(out, "waiting for") {
		t.Errorf("%s%s", out, said)
	}
}

// slowly has a juror answer after a while.
func slowly(after time.Duration, script llmtest.Script) llmtest.Script {
	return func(c llmtest.Call) llmtest.Reply {
		reply := script(c)
		reply.Delay = after
		return reply
	}
}
