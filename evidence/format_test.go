package evidence

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestFormatDocument compares the table of action types in docs/format.md with the rules, and its members with those of
// the payload.
func TestFormatDocument(t *testing.T) {
	page := string(readFile(t, filepath.Join("..", "docs", "format.md")))
	var actions []ActionType
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 8 || !strings.HasPrefix(line, "| `") {
			continue
		}
		got := [][]string{words(cells[2]), words(cells[3]), words(cells[4]), words(cells[5]), words(cells[6])}
		for _, name := range words(cells[1]) {
			action := ActionType(name)
			actions = append(actions, action)
			r := rules[action]
			want := [][]string{{string(r.role)}, r.required, r.filled, r.optional, r.apart}
			if diff := cmp.Diff(want, got, cmp.Transformer("empty", func(list []string) string { return strings.Join(list, " ") })); diff != "" {
				t.Errorf("%s (-rules +page):\n%s", action, diff)
			}
		}
	}
	slices.Sort(actions)
	if diff := cmp.Diff(ActionTypes(), actions); diff != "" {
		t.Errorf("action types (-rules +page):\n%s", diff)
	}
	for name := range sample {
		if !strings.Contains(page, "`"+name+"`") {
			t.Errorf("docs/format.md does not mention %s", name)
		}
	}
}

func words(cell string) []string {
	var names []string
	for _, name := range strings.Split(cell, ",") {
		if name = strings.Trim(name, " `"); name != "" {
			names = append(names, name)
		}
	}
	return names
}
