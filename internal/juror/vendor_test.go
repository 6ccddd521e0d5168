package juror

import (
	"slices"
	"testing"

	"jurat/internal/subject"
	"jurat/jury"
)

// TestSameVendor: a juror is named if its model is of the vendor that the card or the records name, by provider or by
// the model's name, and rules never are.
func TestSameVendor(t *testing.T) {
	s := &jury.Settings{Seats: []jury.Seat{{JurorID: "gpt", Provider: "openai", Model: "gpt-4o"}, {JurorID: "claude", Provider: "anthropic", Model: "claude-haiku-4-5"},
		{JurorID: "gateway", Provider: "compatible", Model: "anthropic/claude-x"}, {JurorID: "rules", Provider: "offline", Model: "jurat-rules"},
		{JurorID: "own", Provider: "compatible", Model: "house-model"}},
		Judge: &jury.Seat{JurorID: "judge", Provider: "gemini", Model: "gemini-2.5-pro"}}
	for card, want := range map[string][]string{
		`{"name":"A"}`: nil,
		`{"name":"A","description":"Built on Claude."}`:         {"claude", "gateway"},
		`{"name":"A","provider":{"organization":"OpenAI"}}`:     {"gpt"},
		`{"name":"A","description":"It runs gpt-4.1-mini."}`:    {"gpt"},
		`{"name":"A","model":"gemini-2.5-flash"}`:               {"judge"},
		`{"name":"A","description":"Claude and Gemini answer"}`: {"claude", "gateway", "judge"},
		`{"name":"A","description":"Books in Google Calendar"}`: nil,
		`{"name":"A","provider":{"organization":"Google"}}`:     {"judge"},
		`{"name":"A","description":"Runs a Llama."}`:            nil,
		`{"name":"Claudette","description":"Sells o3 filters"}`: nil,
	} {
		c, err := subject.New([]byte(card), []byte(`[{"role":"user","content":"Is this claude or gpt-4o?"}]`))
		if err != nil {
			t.Fatal(err)
		}
		if got := SameVendor(s, c); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", card, got, want)
		}
	}
}
