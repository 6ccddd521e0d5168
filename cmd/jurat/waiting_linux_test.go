package main

import (
	"regexp"
	"strings"
	"testing"

	"jurat/internal/llm/llmtest"
	"jurat/jury"
)

// TestWaitingOnATerminal: on a terminal one line is renewed, fits, and is gone before anything else is printed.
func TestWaitingOnATerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("TERM", "xterm")
	t.Setenv("COLUMNS", "")
	s := newScene(t, map[int]llmtest.Script{0: slowly(4*patience, finds(jury.SafePass, 90))})
	text := onTerminal(t, 60, "--data="+s.data, "trial", s.accused, "--config", s.config())
	drawn := regexp.MustCompile(`\r\x1b\[K([^\r\n]*)`).FindAllStringSubmatch(text, -1)
	if len(drawn) < 3 {
		t.Fatalf("a line was drawn %d times:\n%q", len(drawn), text)
	}
	waits := 0
	for i, line := range drawn {
		if !strings.HasPrefix(line[1], "each juror alone; ") {
			continue
		}
		waits++
		if columns(line[1]) > 59 {
			t.Errorf("%q has %d columns", line[1], columns(line[1]))
		}
		if i == len(drawn)-1 || !strings.HasPrefix(text[strings.Index(text, line[0])+len(line[0]):], "\r\x1b[K") {
			t.Errorf("%q is not removed:\n%q", line[1], text)
		}
	}
	if waits < 2 || !strings.Contains(text, "\nVerdict") {
		t.Errorf("it was renewed %d times:\n%q", waits, text)
	}
}
