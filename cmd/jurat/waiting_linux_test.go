package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"jurat/internal/court/llm/llmtest"
	"jurat/internal/test/must"
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
	must.Need(t, len(drawn) >= 3, "a line was drawn %d times:\n%q", len(drawn), text)
	waits := 0
	for i, line := range drawn {
		if !strings.HasPrefix(line[1], "each juror alone; ") {
			continue
		}
		waits++
		must.Hold(t, columns(line[1]) <= 59, "%q has %d columns", line[1], columns(line[1]))
		if i == len(drawn)-1 || !strings.HasPrefix(text[strings.Index(text, line[0])+len(line[0]):], "\r\x1b[K") {
			t.Errorf("%q is not removed:\n%q", line[1], text)
		}
	}
	must.Hold(t, waits >= 2 && strings.Contains(text, "\nVerdict"), "it was renewed %d times:\n%q", waits, text)
}

// onTerminal runs a command on a terminal with so many columns, and returns what the terminal got.
func onTerminal(t *testing.T, width int, args ...string) string {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no terminal: %v", err)
	}
	defer screen.Close()
	must.Do(t, unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0))
	number := must.Get(unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN))(t)
	program := must.Get(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	must.Do(t, unix.IoctlSetWinsize(int(program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(width)}))
	got := make(chan string)
	go func() {
		var text bytes.Buffer
		_, _ = io.Copy(&text, screen) // it ends with an error when the program's side is closed
		got <- strings.ReplaceAll(text.String(), "\r\n", "\n")
	}()
	must.Equal(t, run(t.Context(), args, stdio{in: strings.NewReader(""), out: program, err: program}), 0, args)
	program.Close()
	return <-got
}

// TestTablesFitTheTerminal: on a terminal of any width each line of a list fits, COLUMNS comes first, and elsewhere nothing is cut.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Setenv("NO_COLOR", "1")
	t.Setenv("COLUMNS", "")
	data := "--data=" + t.TempDir()
	doing(t, 0, data, "init")
	doing(t, 0, data, "keys", "new", "agent", "返品係-agent-with-a-long-name")
	doing(t, 0, data, "keys", "rotate", "agent", "返品係-agent-with-a-long-name", "--reason", "why", "--by", "tester")
	doing(t, 0, data, "access", "grant", "返品係-agent-with-a-long-name", "agent", "--reason", "why", "--by", "tester")
	for _, list := range [][]string{{"keys"}, {"keys", "list", "--history"}, {"access"}, {"tsa"}} {
		args := append([]string{data}, list...)
		whole := doing(t, 0, args...)
		lacks(t, whole, "…")
		for _, most := range []int{60, 80, 100} {
			text := onTerminal(t, most, args...)
			for line := range strings.Lines(text) {
				n := columns(strings.TrimSuffix(line, "\n"))
				must.Hold(t, n <= most || strings.HasPrefix(line, "    "), "%q: %d columns on a terminal of %d: %s", list, n, most, line)
			}
			must.Hold(t, text != "" && (list[0] == "tsa" || strings.Contains(text, "…")),
				"%q: nothing is cut on a terminal of %d columns\n%s", list, most, text)
		}
		must.Equal(t, strings.TrimSpace(onTerminal(t, 400, args...)), whole, list)
	}
	t.Setenv("COLUMNS", "50")
	for line := range strings.Lines(onTerminal(t, 400, data, "keys")) {
		n := columns(strings.TrimSuffix(line, "\n"))
		must.Hold(t, n <= 50, "COLUMNS is 50, and here are %d: %s", n, line)
	}
}
