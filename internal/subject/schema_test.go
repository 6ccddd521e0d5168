package subject

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"jurat/internal/convo"
	"jurat/internal/must"
)

// TestSchemas: the schemas name the roles, the types of parts and the members that this package reads, and no others.
func TestSchemas(t *testing.T) {
	var chat struct {
		Defs struct {
			Message struct {
				Properties map[string]struct {
					Enum []string `json:"enum"`
				} `json:"properties"`
			} `json:"message"`
			Part struct {
				AnyOf []struct {
					Properties struct {
						Type struct {
							Enum []string `json:"enum"`
						} `json:"type"`
					} `json:"properties"`
				} `json:"anyOf"`
			} `json:"part"`
		} `json:"$defs"`
	}
	must.Do(t, json.Unmarshal(ChatSchema, &chat))
	list := chat.Defs.Message.Properties["role"].Enum
	if len(list) != 6 {
		t.Fatalf("roles: %v", list)
	}
	for _, role := range list {
		text := fmt.Sprintf(`[{"role":"assistant","tool_calls":[{"id":"1","name":"f"}]},{"role":%q,"content":"x"}]`, role)
		if _, err := NewAs(ChatForm, nil, []byte(text)); err != nil {
			t.Errorf("role %s: %v", role, err)
		}
	}
	kinds := 0
	for _, part := range chat.Defs.Part.AnyOf {
		for _, kind := range part.Properties.Type.Enum {
			kinds++
			if _, err := NewAs(ChatForm, nil, fmt.Appendf(nil, `[{"role":"user","content":[{"type":%q,"text":"x"}]}]`, kind)); err != nil {
				t.Errorf("part %s: %v", kind, err)
			}
		}
	}
	if kinds != len(convo.Unreadables)+5 {
		t.Errorf("the schema has %d types of parts", kinds)
	}
	for _, name := range append(slices.Clone(chatMembers), "requestor") {
		if _, there := chat.Defs.Message.Properties[name]; !there {
			t.Errorf("the schema does not have %s", name)
		}
	}
	var card struct {
		Properties map[string]any `json:"properties"`
	}
	must.Do(t, json.Unmarshal(CardSchema, &card))
	for _, name := range []string{"name", "description", "version", "protocolVersion", "url", "preferredTransport", "provider", "supportedInterfaces", "skills"} {
		if _, there := card.Properties[name]; !there {
			t.Errorf("the schema of the card does not have %s", name)
		}
	}
	if len(card.Properties) != 9 {
		t.Errorf("the schema of the card has %d members", len(card.Properties))
	}
}

// page is docs/case.md.
func page(t testing.TB) string {
	t.Helper()
	text := must.Get(os.ReadFile("../../docs/case.md"))(t)
	return string(text)
}

var example = regexp.MustCompile("(?ms)^```(jsonl?) (\\w+)\n(.*?)^```")

// only reads a file and returns its cases, which must be without mistakes.
func only(t testing.TB, text string, o Options) []*Case {
	t.Helper()
	found, err := ReadTranscripts("file", []byte(text), o)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var cases []*Case
	for _, b := range found {
		if b.Err() != nil {
			t.Fatalf("%v\n%s", b.Mistakes, text)
		}
		cases = append(cases, b.Case)
	}
	return cases
}

// TestExamplesOfThePage: each example of docs/case.md is read in the form that it shows, and its evidence reads the same.
func TestExamplesOfThePage(t *testing.T) {
	shown := map[Form]int{}
	for _, at := range example.FindAllStringSubmatch(page(t), -1) {
		cases := only(t, at[3], Options{})
		if at[1] == "jsonl" {
			if want := int(at[2][0] - '0'); len(cases) != want {
				t.Errorf("%d cases, want %d:\n%s", len(cases), want, at[3])
			}
			continue
		}
		if len(cases) != 1 || cases[0].Form != Form(at[2]) {
			t.Errorf("%d cases, the first of the form %s:\n%s", len(cases), cases[0].Form, at[3])
		}
		shown[cases[0].Form]++
		sameAgain(t, cases[0])
	}
	for _, form := range allForms() {
		if shown[form] == 0 {
			t.Errorf("the page has no example of the form %s", form)
		}
	}
}

// partsOfPage are what every message about a mistake has, by what they say.
var partsOfPage = map[string]*regexp.Regexp{
	"the file and the place":   regexp.MustCompile(`^file:\d+:\d+: at (the document|/\S*) \(byte \d+\): `),
	"what was found":           regexp.MustCompile(`\(byte \d+\): (empty|an? |no |there |ambiguous|invalid|unknown|number |content of|message \d|the (agent|object|string)|.*(, found |, but this looks ))`),
	"what was expected":        regexp.MustCompile(`expected[ ,]`),
	"how it looks if it is so": regexp.MustCompile(`for example,? (--format \w+|[\["{].*["}\]])`),
}

// TestMistakesOfThePage: each mistake in the table gives its message, and each message says all that people need.
func TestMistakesOfThePage(t *testing.T) {
	row := regexp.MustCompile("(?m)^\\| `(.*?)` \\| `(.*?)` \\|$")
	_, table, _ := strings.Cut(page(t), "## Mistakes")
	rows := row.FindAllStringSubmatch(table, -1)
	if len(rows) < 20 || len(rows) != strings.Count(table, "\n| ")-1 {
		t.Fatalf("%d rows of %d were found", len(rows), strings.Count(table, "\n| ")-1)
	}
	for _, at := range rows {
		found, err := ReadTranscripts("file", []byte(at[1]), Options{})
		if err == nil && len(found) > 0 {
			err = found[0].Err()
		}
		if err == nil || !strings.Contains(err.Error(), at[2]) {
			t.Errorf("%s\n got %v\nwant …%s…", at[1], err, at[2])
			continue
		}
		for what, part := range partsOfPage {
			if !part.MatchString(err.Error()) {
				t.Errorf("%s\ndoes not say %s: %v", at[1], what, err)
			}
		}
	}
}
