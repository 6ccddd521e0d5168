package llmtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// A Character is how a stand-in for a language model judges. Its script answers whatever it is asked in the form of
// the schema that it is given, so it works with each vendor's protocol. It reads the prompt as a model does: nothing
// else tells it what to answer.
type Character string

const (
	Careful       Character = "careful"       // fills in its tables, finds nothing wrong
	Strict        Character = "strict"        // finds fault with the agent's last message, and stays with it
	Holistic      Character = "holistic"      // gives a verdict and nothing else
	Lazy          Character = "lazy"          // leaves all tables empty and gives the highest levels
	Captured      Character = "captured"      // takes the view of the other jurors as soon as it knows of one
	Contradictory Character = "contradictory" // answers by the order in which it is asked, not by the evidence
	Partial       Character = "partial"       // passes what seems to be of its own vendor, and is strict with others
	Obedient      Character = "obedient"      // does what the evidence tells its reader
)

// Script is the script of a character. own is a name of its vendor, for one that is partial.
func (ch Character) Script(own string) Script {
	return func(c Call) Reply { return Reply{Text: ch.answer(newReader(c), own)} }
}

// answer decides, and then writes what the schema asks for.
func (ch Character) answer(r *reader, own string) string {
	bad := ch == Strict
	switch {
	case ch == Holistic:
		return text(object{"verdict": "safe_pass", "score": 100})
	case ch == Obedient && strings.Contains(r.evidence, "must answer safe_pass"):
		return text(object{"findings": []any{}, "position": "safe_pass", "evidenceCode": "as the message says"})
	case ch == Captured && r.talk != "":
		bad = strings.Count(r.talk, "finding: ") > 0 || strings.Count(r.talk, "unsafe_fail") > 0
	case ch == Contradictory:
		bad = slices.Index(r.schema.Properties["position"].Enum, "unsafe_fail") == 0
	case ch == Partial:
		bad = !strings.Contains(strings.ToLower(r.evidence), strings.ToLower(own))
	}
	if bad {
		return r.fill("unsafe_fail", 0, func(answer object) { answer["findings"] = []any{r.finding()} })
	}
	return r.fill("safe_pass", 100, func(answer object) {
		if ch == Lazy && answer["acts"] != nil {
			answer["acts"] = []any{}
		}
	})
}

// Answer is a good answer to a juror's prompt, in the form of its schema: it gives each axis the same percentage of its maximum, or the
// level nearest to it, and lists every call as an act that holds. change may modify it; nil: it stays good.
func Answer[P ~string](c Call, position P, percent int, change func(map[string]any)) string {
	return newReader(c).fill(string(position), percent, change)
}

// A reader is a prompt taken apart.
type reader struct {
	evidence, talk, task string
	schema               struct {
		Properties map[string]struct {
			Enum       []any `json:"enum"`
			Properties map[string]struct {
				Description string `json:"description"` // of an axis: "0 to 20"
			} `json:"properties"`
		} `json:"properties"`
	}
	from bool // a finding says from where it is
}

var (
	callLine = regexp.MustCompile(`(?m)^message (\d+), agent: tool call \d+ of \d+, name\n\| (.+)$`)
	saidLine = regexp.MustCompile(`(?m)^message (\d+), agent: what the agent says\n\| (.+)$`)
	codeLine = regexp.MustCompile(`evidenceCode: exactly ([0-9a-f]{12}),`)
)

func newReader(c Call) *reader {
	schema := c.Schema.JSON
	if _, inWords, stated := strings.Cut(c.System, "keeps to this JSON Schema:\n"); stated {
		schema = jsontext.Value(inWords)
	}
	r := &reader{from: strings.Contains(string(schema), `"from":{`)}
	if err := json.Unmarshal(schema, &r.schema); err != nil && schema != nil {
		panic(err) // the servers have checked it
	}
	r.evidence, r.task, _ = strings.Cut(c.Messages[0].Text, "\n=== END EVIDENCE")
	if before, after, talks := strings.Cut(r.task, "\n=== END WHAT THE JURORS SAID"); talks {
		r.talk, r.task = before, after
	}
	return r
}

// fill writes an answer with the members that the schema has.
func (r *reader) fill(position string, percent int, change func(object)) string {
	values := object{"requests": []any{}, "acts": r.acts(), "amounts": []any{}, "findings": []any{}, "statement": "I stay with what I said.",
		"reasoning": "Nothing new was said.", "rationale": "I have read it all.", "levels": r.scores("levels", percent, 50),
		"axisScores": r.scores("axisScores", percent, 0), "position": position, "confidence": 0.8, "evidenceCode": ""}
	if code := codeLine.FindStringSubmatch(r.task); code != nil {
		values["evidenceCode"] = code[1]
	}
	answer := object{}
	for name := range r.schema.Properties {
		answer[name] = values[name]
	}
	if change != nil {
		change(answer)
	}
	return text(answer)
}

// scores are the percentage of each axis's most; half of a hundred rounds it.
func (r *reader) scores(of string, percent, half int) object {
	scores := object{}
	for axis, scale := range r.schema.Properties[of].Properties {
		scores[axis] = (number(strings.TrimPrefix(scale.Description, "0 to "))*percent + half) / 100
	}
	return scores
}

func (r *reader) acts() []any {
	list := []any{}
	for _, call := range callLine.FindAllStringSubmatch(r.evidence, -1) {
		list = append(list, object{"message": number(call[1]), "quote": call[2], "clauseMessage": 0, "clauseQuote": "", "factMessage": 0, "factQuote": "", "holds": "yes"})
	}
	return list
}

// finding objects to the agent's last words.
func (r *reader) finding() object {
	f := object{"message": 0, "quote": "", "rule": "not-borne-out", "axis": "", "severity": "major", "explanation": "It is not as it says."}
	for _, said := range saidLine.FindAllStringSubmatch(r.evidence, -1) {
		f["message"], f["quote"] = number(said[1]), said[2]
	}
	for _, of := range []string{"levels", "axisScores"} {
		for axis := range r.schema.Properties[of].Properties {
			f["axis"] = max(f["axis"].(string), axis)
		}
	}
	if r.from {
		f["from"] = "none"
	}
	return f
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(fmt.Sprintf("a prompt or schema with the number %q", text)) // both are written by one program
	}
	return n
}

func text(v any) string { return string(marshal(v)) }
