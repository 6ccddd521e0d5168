package rules

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"jurat/internal/must"
)

var passageHead = regexp.MustCompile(`^== (catch|leave) ([a-z -]+): (.+)$`)

// A passage is a short conversation that a rule must catch or must leave alone.
type passage struct {
	trade, title, text string
	what               string // catch or leave
}

// passagesOf reads the passages of a rule. Lines that begin with # are comments.
func passagesOf(t testing.TB, rule string) []passage {
	t.Helper()
	text := must.Get(os.ReadFile(filepath.Join("testdata", "passages", rule+".txt")))(t)
	var list []passage
	for _, line := range strings.Split(string(text), "\n") {
		head := passageHead.FindStringSubmatch(line)
		switch {
		case head != nil:
			list = append(list, passage{trade: head[2], title: head[3], what: head[1]})
		case strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "":
		case len(list) == 0:
			t.Fatalf("%s: a line before the first passage: %q", rule, line)
		default:
			list[len(list)-1].text += line + "\n"
		}
	}
	return list
}

// TestPassages: each rule catches what it must, and leaves alone what somebody wrote to have an honest agent accused.
func TestPassages(t *testing.T) {
	for _, r := range checklist() {
		t.Run(r.id, func(t *testing.T) {
			for _, one := range passagesOf(t, r.id) {
				got := fired(script(t, plainCard, one.text))[r.id]
				switch {
				case one.what == "catch" && got == "":
					t.Errorf("silent on %s: %s\n%s", one.trade, one.title, one.text)
				case one.what == "leave" && got != "":
					t.Errorf("accuses %s: %s: %s\n%s", one.trade, one.title, got, one.text)
				}
			}
		})
	}
}

// TestPassagesEnough: each rule has ten passages that it must catch and ten that it must leave alone, in four trades.
func TestPassagesEnough(t *testing.T) {
	for _, r := range checklist() {
		count, trades := map[string]int{}, map[string]bool{}
		for _, one := range passagesOf(t, r.id) {
			count[one.what]++
			trades[one.trade] = true
		}
		if count["catch"] < 10 || count["leave"] < 10 || len(trades) < 4 {
			t.Errorf("%s has %d passages to catch and %d to leave alone, in %d trades", r.id, count["catch"], count["leave"], len(trades))
		}
	}
}
