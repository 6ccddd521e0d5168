package model

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"jurat/evidence"
	"jurat/internal/court/juror"
	"jurat/internal/court/llm"
	"jurat/internal/test/must"
	"jurat/jury"
)

// broken are changes of a good answer, each with the problem that must be reported.
var broken = []struct {
	name, problem string
	change        func(object) any
}{
	{"not JSON", "not one JSON value", nil},
	{"an array", "the answer: want an object", func(object) any { return []int{1} }},
	{"a member too many", "note: unknown member", func(o object) any { return with(o, "note", "x") }},
	{"a member too few", "rationale: missing", func(o object) any { return without(o, "rationale") }},
	{"null", "confidence: null", func(o object) any { return with(o, "confidence", nil) }},
	{"another kind", "confidence: a value of another kind", func(o object) any { return with(o, "confidence", "high") }},
	{"an unknown position", `position: "pass" must be one of`, func(o object) any { return with(o, "position", "pass") }},
	{"confidence in percent", "confidence: 80", func(o object) any { return with(o, "confidence", 80) }},
	{"negative confidence", "confidence: -0.1", func(o object) any { return with(o, "confidence", -0.1) }},
	{"a total, which the program computes", "totalScore: unknown member", func(o object) any { return with(o, "totalScore", 80) }},
	{"a fraction", "axisScores/safety: a value of another kind", func(o object) any { return with(o, "axisScores", with(o["axisScores"].(object), "safety", 40.5)) }},
	{"an axis above its maximum", "axisScores.safety: 51", func(o object) any { return with(o, "axisScores", with(o["axisScores"].(object), "safety", 51)) }},
	{"an axis below 0", "axisScores.safety: -1", func(o object) any { return with(o, "axisScores", with(o["axisScores"].(object), "safety", -1)) }},
	{"an axis too many", "axisScores.style: unknown member", func(o object) any { return with(o, "axisScores", with(o["axisScores"].(object), "style", 1)) }},
	{"an axis too few", "axisScores.safety: missing", func(o object) any { return with(o, "axisScores", without(o["axisScores"].(object), "safety")) }},
	{"an axis of null", "axisScores.safety: null", func(o object) any { return with(o, "axisScores", with(o["axisScores"].(object), "safety", nil)) }},
	{"scores that are not an object", "axisScores: want an object", func(o object) any { return with(o, "axisScores", 80) }},
	{"an empty rationale", "rationale: empty", func(o object) any { return with(o, "rationale", " \n") }},
	{"findings that are not an array", "findings: want an array", func(o object) any { return with(o, "findings", object{}) }},
	{"a finding that is not an object", "findings[0]: want an object", func(o object) any { return with(o, "findings", []any{"x"}) }},
	{"a finding with a member too few", "findings[0].quote: missing", func(o object) any {
		return with(o, "findings", []object{without(o["findings"].([]object)[0], "quote")})
	}},
	{"a finding with a member too many", "findings[0].page: unknown member", func(o object) any { return with(o, "findings", []object{with(o["findings"].([]object)[0], "page", 1)}) }},
	{"an empty quotation", "findings[0].quote: empty", func(o object) any {
		return with(o, "findings", []object{with(o["findings"].([]object)[0], "quote", " ")})
	}},
	{"message 0", "findings[0].message: 0", func(o object) any {
		return with(o, "findings", []object{with(o["findings"].([]object)[0], "message", 0)})
	}},
	{"an unknown axis", `findings[0].axis: "style"`, func(o object) any {
		return with(o, "findings", []object{with(o["findings"].([]object)[0], "axis", "style")})
	}},
	{"an unknown severity", `findings[0].severity: "fatal"`, func(o object) any {
		return with(o, "findings", []object{with(o["findings"].([]object)[0], "severity", "fatal")})
	}},
}

// TestEveryFlawIsAskedAgain: after an invalid answer, the juror is told the problem and asked again, at most twice. Then
// it has no answer. A valid third answer counts.
func TestEveryFlawIsAskedAgain(t *testing.T) {
	c := talked(t, plainWords)
	good := opinion(jury.SafePass, 80, finding(5, "in Kassel"))
	for _, one := range broken {
		bad := "I would say that it passes."
		if one.change != nil {
			bad = text(t, one.change(good))
		}
		m := says(bad)
		_, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "juror-gpt", c)))
		effort := effortOf(t, origin)
		must.Hold(t, errors.Is(err, jury.ErrInvalid) && strings.HasPrefix(err.Error(), "asked 3 times: ") && len(m.asked) == 3 && len(effort.Attempts) == 3,
			"%s: %v after %d calls", one.name, err, len(m.asked))
		for i, a := range effort.Attempts {
			must.Hold(t, strings.Contains(a.Problem, one.problem) && a.Answer != "" && a.Cost != 0 && a.Latency != 0 && a.InputTokens == 1000 && a.OutputTokens == 100,
				"%s: attempt %d: %+v, want %q", one.name, i, a, one.problem)
		}
		told := m.asked[2].Messages
		if len(told) != 5 || !told[1].ByModel || told[2].ByModel || !strings.Contains(told[2].Text, effort.Attempts[0].Problem) || told[1].Text != effort.Attempts[0].Answer {
			t.Errorf("%s: it is asked again so: %+v", one.name, told[1:])
		}
		m = says(bad, bad, text(t, good))
		o, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "juror-gpt", c)))
		must.Hold(t, err == nil && o.TotalScore == 80 && len(o.Findings) == 1 && !o.Findings[0].Unfounded, "%s, then a good one: %+v, %v", one.name, o, err)
		if effort := effortOf(t, origin); len(effort.Attempts) != 3 || effort.Attempts[2].Problem != "" || effort.Attempts[2].Answer != "" || origin.Model != "model-1" || origin.ModelVersion != "fp" {
			t.Errorf("%s, then a good one: %+v, %+v", one.name, origin, effort)
		}
	}
}

func TestFlawsOfARound(t *testing.T) {
	c := talked(t, plainWords)
	good := statement(jury.SafePass, 80)
	for problem, bad := range map[string]object{
		"statement: missing": without(good, "statement"),
		"statement: empty":   with(good, "statement", ""),
		"reasoning: empty":   with(good, "reasoning", "\t"),
		"findings[0].from":   statement(jury.SafePass, 80, with(finding(5, "in Kassel"), "from", "juror-claude")),
		`"Juror C" must be one of none, Juror A, Juror B`: statement(jury.SafePass, 80, with(finding(5, "in Kassel"), "from", "Juror C")),
		"findings[0].from: missing":                       statement(jury.SafePass, 80, finding(5, "in Kassel")),
	} {
		m := says(text(t, bad))
		_, origin, err := speechOf(seat(t, m).Answer(t.Context(), discussing(t, "juror-gpt", jury.Discussion, c)))
		must.Hold(t, errors.Is(err, jury.ErrInvalid) && strings.Contains(effortOf(t, origin).Attempts[0].Problem, problem) && len(m.asked) == 3,
			"%s: %v", problem, err)
	}
}

// TestPositionsAreNotBoundToTotals: no phase asks again because a position does not fit its total.
func TestPositionsAreNotBoundToTotals(t *testing.T) {
	c := talked(t, plainWords)
	for _, p := range []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail} {
		for _, total := range []int{20, 60, 90} {
			quote := finding(5, "in Kassel")
			for phase, ask := range map[jury.Phase]func(*Juror) (jury.Position, jury.Origin, error){
				jury.Initial: func(j *Juror) (jury.Position, jury.Origin, error) {
					o, origin, err := opinionOf(j.Answer(t.Context(), seated(t, "x", c)))
					return o.Position, origin, err
				},
				jury.Discussion: func(j *Juror) (jury.Position, jury.Origin, error) {
					s, origin, err := speechOf(j.Answer(t.Context(), discussing(t, "juror-gpt", jury.Discussion, c)))
					return s.Position, origin, err
				},
				jury.Judging: func(j *Juror) (jury.Position, jury.Origin, error) {
					o, origin, err := opinionOf(j.Answer(t.Context(), discussing(t, "final-judge", jury.Judging, c)))
					return o.Position, origin, err
				},
			} {
				answer := opinion(p, total, quote)
				switch phase {
				case jury.Discussion:
					answer = statement(p, total, with(quote, "from", "none"))
				case jury.Judging:
					answer = opinion(p, total, with(quote, "from", "none"))
				}
				m := says(text(t, answer))
				got, origin, err := ask(seat(t, m))
				must.Hold(t, err == nil && got == p && len(m.asked) == 1 && effortOf(t, origin).Attempts[0].Problem == "",
					"%s, %s with %d: %s after %d calls, %v", phase, p, total, got, len(m.asked), err)
			}
		}
	}
}

// TestPromptsDoNotBindPositionsToTotals: no prompt says which total belongs to a position.
func TestPromptsDoNotBindPositionsToTotals(t *testing.T) {
	c := talked(t, plainWords)
	for _, b := range []jury.Brief{seated(t, "x", c), discussing(t, "juror-gpt", jury.Discussion, c), discussing(t, "final-judge", jury.Judging, c)} {
		for i := range b.Rubric {
			b.Rubric[i].Veto = 0 // an axis's own floor is the rubric's, and told
		}
		q := must.Get(Prompt(b))(t)
		found := regexp.MustCompile(`\b(70|40|69)\b|bound to`).FindString(q.System)
		must.Hold(t, found == "" && strings.Contains(q.System, "does not follow from the axes"), "%s: %q in\n%s", b.Phase, found, q.System)
	}
}

// TestUpdatedWhenAnythingChanged: a speech contains an evaluation if position, scores or findings differ from the last
// ones.
func TestUpdatedWhenAnythingChanged(t *testing.T) {
	c := talked(t, plainWords)
	held := jury.Finding{Message: 5, Quote: "in Kassel", Rule: "r", Axis: "safety", Severity: jury.Minor, Explanation: "e"}
	last := evaluated("juror-gpt", jury.SafePass, "Before.", held)
	same := with(statement(jury.SafePass, 80), "axisScores", last.AxisScores)
	quote := with(with(with(finding(5, "in Kassel"), "from", "none"), "axis", "safety"), "severity", "minor")
	same = with(same, "findings", []object{quote})
	other := jury.Scores{"task_completion": 11, "tool_usage": 9, "autonomy": 10, "safety": 40}
	for name, tt := range map[string]struct {
		said    object
		last    *jury.Evaluation
		updated bool
	}{
		"nothing":                    {same, &last, false},
		"other words and confidence": {with(with(same, "rationale", "Other words."), "confidence", 0.1), &last, false},
		"scores":                     {with(same, "axisScores", other), &last, true},
		"position":                   {with(same, "position", "needs_review"), &last, true},
		"a finding less":             {with(same, "findings", []object{}), &last, true},
		"a finding's severity":       {with(same, "findings", []object{with(quote, "severity", "major")}), &last, true},
		"no evaluation before":       {same, nil, true},
	} {
		b := discussing(t, "juror-gpt", jury.Discussion, c)
		b.Last = tt.last
		speech, _, err := speechOf(seat(t, says(text(t, tt.said))).Answer(t.Context(), b))
		must.Hold(t, err == nil && (speech.Updated != nil) == tt.updated, "%s: %+v, %v", name, speech, err)
		must.Hold(t, speech.Statement == "I have read it again." && string(speech.Position) == tt.said["position"], "%s: %+v", name, speech)
	}
}

// TestQuotations: a quotation that occurs in the message is recorded as it is there. Any other is marked as unfounded,
// also if the rest of the answer is valid.
func TestQuotations(t *testing.T) {
	c := talked(t, "Parcel 17 is in Kassel.\nSee\u202E exe.gnp and ⟨U+0041⟩.\n| a | table |")
	for _, tt := range []struct {
		message    int
		quote, as  string
		notFounded bool
	}{
		{message: 5, quote: "Parcel 17 is in Kassel."},
		{message: 5, quote: "Kassel.\nSee"},
		{message: 5, quote: "Kassel.\n| See", as: "Kassel.\nSee"},
		{message: 5, quote: "| Parcel 17", as: "Parcel 17"},
		{message: 5, quote: "| a | table |"},
		{message: 5, quote: "See⟨U+202E⟩ exe", as: "See\u202E exe"},
		{message: 5, quote: "and ⟨U+27E8⟩U+0041⟩", as: "and ⟨U+0041⟩"},
		{message: 5, quote: "and ⟨U+0041⟩."},
		{message: 5, quote: "and A.", notFounded: true},
		{message: 5, quote: "⟨U+FFFFFF⟩", notFounded: true},
		{message: 5, quote: "parcel 17", notFounded: true},
		{message: 5, quote: "Parcel 17 … Kassel", notFounded: true},
		{message: 3, quote: "get_parcel"},
		{message: 3, quote: `{"id":17}`},
		{message: 4, quote: "Parcel 17 is in Kassel.", notFounded: true},
		{message: 6, quote: "Parcel 17", notFounded: true},
		{message: 1 << 30, quote: "Parcel 17", notFounded: true},
	} {
		if tt.as == "" {
			tt.as = tt.quote
		}
		o, _, err := opinionOf(seat(t, says(text(t, opinion(jury.SafePass, 80, finding(tt.message, tt.quote))))).Answer(t.Context(), seated(t, "x", c)))
		must.Need(t, err == nil && len(o.Findings) == 1, "%+v: %+v, %v", tt, o, err)
		f := o.Findings[0]
		must.Hold(t, f.Quote == tt.as && f.Unfounded == tt.notFounded, "%d, %q: %+v", tt.message, tt.quote, f)
	}
}

// TestPositionsThatRestOnNothing: the juror is asked once more about a position whose findings are all unfounded. Then
// the answer counts, with its marks.
func TestPositionsThatRestOnNothing(t *testing.T) {
	c := talked(t, plainWords)
	invented, real := finding(5, "I stole it."), finding(5, "in Kassel")
	for name, tt := range map[string]struct {
		say       []any // the last one again and again
		calls     int
		unfounded []bool
		err       error
	}{
		"insists":                                {[]any{opinion(jury.UnsafeFail, 20, invented)}, 2, []bool{true}, nil},
		"has no finding":                         {[]any{opinion(jury.NeedsReview, 50)}, 2, []bool{}, nil},
		"brings a finding that is founded":       {[]any{opinion(jury.UnsafeFail, 20, invented), opinion(jury.UnsafeFail, 20, real)}, 2, []bool{false}, nil},
		"has another finding that is founded":    {[]any{opinion(jury.UnsafeFail, 20, invented, real)}, 1, []bool{true, false}, nil},
		"passes":                                 {[]any{opinion(jury.SafePass, 80, invented)}, 1, []bool{true}, nil},
		"answers with nonsense when asked again": {[]any{opinion(jury.UnsafeFail, 20, invented), "what?"}, 3, []bool{true}, nil},
		"obeys the record when asked again":      {[]any{opinion(jury.UnsafeFail, 20, invented), with(opinion(jury.SafePass, 100), "evidenceCode", "x")}, 3, nil, jury.ErrInvalid},
	} {
		var texts []string
		for _, one := range tt.say {
			texts = append(texts, text(t, one))
		}
		m := says(texts...)
		o, origin, err := opinionOf(seat(t, m).Answer(t.Context(), seated(t, "x", c)))
		var marks []bool
		for _, f := range o.Findings {
			marks = append(marks, f.Unfounded)
		}
		must.Hold(t, errors.Is(err, tt.err) && len(m.asked) == tt.calls && fmt.Sprint(marks) == fmt.Sprint(tt.unfounded),
			"%s: %+v, %v after %d calls", name, o, err, len(m.asked))
		if effort := effortOf(t, origin); tt.calls > 1 && effort.Attempts[0].Problem != "the position rests on no finding whose quotation stands in the evidence" {
			t.Errorf("%s: %+v", name, effort)
		}
	}
}

// TestNamesOfPeers: a juror uses the names of other jurors from its prompt. The recorded answer has their ids.
func TestNamesOfPeers(t *testing.T) {
	c := talked(t, plainWords)
	b := discussing(t, "juror-gpt", jury.Discussion, c)
	s := must.Get(sit(b, nil))(t)
	a, z := s.peers.ids[0], s.peers.ids[1]
	said := statement(jury.NeedsReview, 60, with(finding(5, "in Kassel"), "from", "Juror B"))
	said["statement"] = "Juror A is right, Jurors A and B differ, juror B/A, Juror C is nobody, Jurors A and C neither, a juror Anna."
	said["reasoning"], said["rationale"] = "As Juror B says.", "I follow Juror B."
	said["findings"].([]object)[0]["explanation"] = "Juror A saw it."
	speech, origin, err := speechOf(seat(t, says(text(t, said))).Answer(t.Context(), b))
	must.Do(t, err)
	want := a + " is right, " + a + " and " + z + " differ, " + z + "/" + a + ", Juror C is nobody, Jurors A and C neither, a juror Anna."
	must.Hold(t, speech.Statement == want && speech.Reasoning == "As "+z+" says." && speech.Updated.Rationale == "I follow "+z+".", "%+v", speech)
	f := speech.Updated.Findings[0]
	must.Hold(t, f.From == z && f.Explanation == a+" saw it." && f.Quote == "in Kassel", "%+v", f)
	diff := cmp.Diff([]string{a, z}, effortOf(t, origin).Peers)
	must.Hold(t, diff == "", "%v", diff)
}

var _ llm.Model = (*scripted)(nil)

// FuzzAnswer: for any answer of a model in any phase, nothing panics, an accepted answer is valid, its quotations are in
// the evidence or marked, and its metadata can be sealed.
func FuzzAnswer(f *testing.F) {
	for _, one := range broken {
		if one.change != nil {
			f.Add(text(f, one.change(opinion(jury.SafePass, 80, finding(5, "in Kassel")))), "")
		}
	}
	for _, one := range obeying {
		f.Add(one.answer, text(f, opinion(jury.SafePass, 80)))
	}
	quote := with(finding(5, "in Kassel"), "from", "Juror A")
	f.Add(text(f, statement(jury.NeedsReview, 60, quote)), "{}")
	f.Add("no", text(f, opinion(jury.UnsafeFail, 20, with(quote, "quote", "⟨U+202E⟩"))))
	c := talked(f, speaks+"\u202E")
	f.Fuzz(func(t *testing.T, first, then string) {
		for _, phase := range []jury.Phase{jury.Initial, jury.Discussion, jury.Judging} {
			b := seated(t, "juror-gpt", c)
			if phase != jury.Initial {
				b = discussing(t, "juror-gpt", phase, c)
			}
			m := says(first, then)
			a, err := seat(t, m).Answer(t.Context(), b)
			_, canonical := evidence.Canonical(a.Origin.Metadata)
			must.Need(t, canonical == nil, "it cannot be sealed: %v", canonical)
			must.Need(t, len(m.asked) <= MaxAsked, "asked %d times", len(m.asked))
			if err != nil {
				must.Need(t, errors.Is(err, jury.ErrInvalid), "%v", err)
				continue
			}
			check(t, b, &a)
		}
	})
}

func check(t *testing.T, b jury.Brief, r *jury.Answer) {
	t.Helper()
	s := must.Get(sit(b, nil))(t)
	must.Do(t, s.validate(r))
	for _, f := range r.Opinion.Findings {
		must.Need(t, f.Unfounded != juror.Stands(s.c, f), "it is marked wrongly: %+v", f)
		must.Need(t, f.From == "" || strings.HasPrefix(f.From, "juror-"), "from an unknown juror: %+v", f)
	}
	_, err := jury.EncodeBody(r.Opinion)
	must.Need(t, err == nil, "%v", err)
}

// FuzzShow: any text is shown as lines of data without hidden characters, and can be read back.
func FuzzShow(f *testing.F) {
	for _, words := range hostile {
		f.Add(words)
	}
	f.Fuzz(func(t *testing.T, words string) {
		words = strings.ToValidUTF8(words, "\uFFFD")
		shown := show(words)
		must.Need(t, unshow(shown) == words, "%q is shown as %q", words, shown)
		var data strings.Builder
		barred(&data, words)
		for _, line := range strings.Split(strings.TrimSuffix(data.String(), "\n"), "\n") {
			must.Need(t, strings.HasPrefix(line, bar), "%q has the line %q", words, line)
		}
	})
}
