package model

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"jurat/internal/llm"
	"jurat/internal/must"
	"jurat/jury"
)

func prompted(t *testing.T, b jury.Brief) llm.Question {
	t.Helper()
	return must.Get(Prompt(b))(t)
}

// inOrder reports whether the parts stand in a text in this order.
func inOrder(text string, parts ...string) bool {
	for _, part := range parts {
		_, rest, found := strings.Cut(text, part)
		if !found {
			return false
		}
		text = rest
	}
	return true
}

// TestReadings: each reading has its own order of steps, lists and axes, in the prompt and in the schema. The evidence
// is the same to the byte.
func TestReadings(t *testing.T) {
	c := talked(t, plainWords)
	orders := map[string]jury.Reading{}
	for reading, want := range map[jury.Reading]struct{ step, tables, axes string }{
		"":               {"message by message", "requests acts amounts", "task_completion tool_usage autonomy safety"},
		jury.PolicyFirst: {"operator's instructions first", "acts requests amounts", "safety autonomy tool_usage task_completion"},
		jury.ActsFirst:   {"tool calls and their results first", "acts amounts requests", "tool_usage autonomy safety task_completion"},
		jury.ClaimsFirst: {"Begin with what the user asked for", "requests amounts acts", "task_completion tool_usage autonomy safety"},
	} {
		b := working(t, "x", c)
		b.Seat.Reading = reading
		q := prompted(t, b)
		frame, task := framed(t, q.Messages[0].Text)
		if other, _ := framed(t, prompted(t, working(t, "x", c)).Messages[0].Text); frame != other {
			t.Errorf("%q: the evidence is another", reading)
		}
		var listed, axes []string
		for _, name := range strings.Fields(want.tables) {
			listed = append(listed, "\n- "+name+":")
		}
		for _, name := range strings.Fields(want.axes) {
			axes = append(axes, "\n- "+name+": ")
		}
		if !strings.Contains(task, want.step) || !inOrder(task, listed...) || !inOrder(q.System, axes...) {
			t.Errorf("%q:\n%s\n%s", reading, q.System, task)
		}
		names := []string{}
		for _, name := range append(strings.Fields(want.tables), "findings", "rationale", "levels", "position", "confidence", "evidenceCode") {
			names = append(names, `"`+name+`":{`)
		}
		if !inOrder(string(q.Schema.JSON), names...) || !inOrder(string(q.Schema.JSON), `"required":["`+strings.ReplaceAll(want.axes, " ", `","`)+`"]`) {
			t.Errorf("%q: %s", reading, q.Schema.JSON)
		}
		order := want.tables + want.axes
		if twin, taken := orders[order]; taken {
			t.Errorf("%q and %q have one order", reading, twin)
		}
		orders[order] = reading
	}
}

var hints = regexp.MustCompile(`\b(again|twice|repeat\w*|second time|(first|earlier|previous) answer)\b`)

// TestAskedAgain: a seat that is asked again gets the same evidence and rules, in another order throughout, and no hint
// at its first answer, at others, or that it is the second time.
func TestAskedAgain(t *testing.T) {
	c := talked(t, plainWords)
	for _, reading := range []jury.Reading{"", jury.PolicyFirst, jury.ActsFirst, jury.ClaimsFirst} {
		b := working(t, "x", c)
		b.Seat.Reading = reading
		first := prompted(t, b)
		b.Phase = jury.Repetition
		second := prompted(t, b)
		one, oneTask := framed(t, first.Messages[0].Text)
		two, twoTask := framed(t, second.Messages[0].Text)
		if one != two || len(second.Messages) != 1 {
			t.Errorf("%q: the evidence is another", reading)
		}
		if !slices.Equal(sorted(first.System), sorted(second.System)) || !slices.Equal(sorted(listOfMembers(oneTask)), sorted(listOfMembers(twoTask))) {
			t.Errorf("%q: the rules are other rules:\n%s\n\n%s", reading, first.System, second.System)
		}
		if !inOrder(first.System, "# The axes", "level 0", "level 3", "# The positions", "safe_pass:", "unsafe_fail:", "# How to quote") ||
			!inOrder(second.System, "# How to quote", "# The positions", "unsafe_fail:", "safe_pass:", "# The axes", "level 3", "level 0") {
			t.Errorf("%q: %s", reading, second.System)
		}
		if orderOf(&b).reading == reading || !inOrder(string(second.Schema.JSON), `"enum":["unsafe_fail","needs_review","safe_pass"]`) || hints.MatchString(second.Messages[0].Text) {
			t.Errorf("%q: %s", reading, second.Messages[0].Text)
		}
		axes := func(r jury.Rubric) string { return r[0].ID + r[1].ID + r[2].ID }
		initial := b
		initial.Phase = jury.Initial
		if a, z := orderOf(&initial), orderOf(&b); axes(a.axes) == axes(z.axes) || slices.Equal(a.tables, z.tables) {
			t.Errorf("%q: the axes or the lists keep their order", reading)
		}
	}
}

func sorted(text string) []string { return slices.Sorted(strings.SplitSeq(text, "\n")) }

// listOfMembers is the part of a task that lists the members of the answer, without the code.
func listOfMembers(task string) string {
	_, list, _ := strings.Cut(task, "in this order:\n")
	return codeInTask.ReplaceAllString(list, "")
}

// TestBlindRound: in the first round a juror sees the others' findings and the rows that differ from its own, as far as
// they stand, and neither position, level, points, confidence nor rationale of another.
func TestBlindRound(t *testing.T) {
	c := talked(t, plainWords)
	b := levelled(discussing(t, "juror-gpt", jury.Discussion, c))
	b.RoundNumber, b.Rounds = 1, nil
	b.Evaluations[0].Rationale, b.Evaluations[1].Rationale = "My own words.", "A verdict of another."
	b.Evaluations[1].Confidence = 0.31
	b.Evaluations[1].Findings = append(b.Evaluations[1].Findings, jury.Finding{Message: 2, Quote: "Bremen", Rule: "r", Axis: "safety", Severity: jury.Major, Explanation: "Invented."})
	said := saidBy(t, prompted(t, b))
	_, others, found := strings.Cut(said, "\nJuror ")
	if !found {
		t.Fatal(said)
	}
	for _, secret := range []string{"safe_pass", "needs_review", "unsafe_fail", "level", "0.31", "0.75", "total", "points", "A verdict of another", "Bremen", "You must not."} {
		if strings.Contains(others, secret) {
			t.Errorf("%q is shown:\n%s", secret, others)
		}
	}
	for _, shown := range []string{"No call says so.", "act: holds no\ncall, message 3:\n| get_parcel", "nothing that stands and that you did not find"} {
		if !strings.Contains(others, shown) {
			t.Errorf("%q is not shown:\n%s", shown, others)
		}
	}
	if !strings.Contains(said, "you, before the discussion: safe_pass, confidence 0.75, task_completion level 2") || !strings.Contains(said, "My own words.") || strings.Count(said, "request: state done") != 1 {
		t.Error(said)
	}
}

// TestLaterRounds: after the first round positions and statements are shown, and still no numbers of others.
func TestLaterRounds(t *testing.T) {
	b := levelled(discussing(t, "juror-gpt", jury.Discussion, talked(t, plainWords)))
	said := saidBy(t, prompted(t, b))
	_, others, _ := strings.Cut(said, "\nJuror ")
	if !strings.Contains(others, "round 1: needs_review, position changed") || !strings.Contains(others, "before the discussion: needs_review") ||
		strings.Contains(others, "confidence") || strings.Contains(others, "level") {
		t.Error(said)
	}
	if strings.Count(said, "| No call says so.") != 1 {
		t.Errorf("a finding is repeated, or missing:\n%s", said)
	}
}

// TestJudgeReadsFirst: in phase 1 the judge sees what a juror sees. In phase 3 its own reading comes before the jury's,
// and nothing counts heads.
func TestJudgeReadsFirst(t *testing.T) {
	c := talked(t, plainWords)
	briefs := thorough(t, c, "")
	alone := prompted(t, briefs["judge-reads"])
	juror := briefs["judge-reads"]
	juror.Seat.JurorID = "juror-x"
	if other := prompted(t, juror); alone.System != other.System || codeInTask.ReplaceAllString(alone.Messages[0].Text, "") != codeInTask.ReplaceAllString(other.Messages[0].Text, "") {
		t.Error("the judge reads another case than a juror")
	}
	q := prompted(t, briefs["judge"])
	said := saidBy(t, q)
	if !inOrder(said, "you, before you knew what the jurors said: needs_review, confidence 0.6", "I am not sure.", "\nJuror ", "\nJuror ") || q.System != alone.System {
		t.Error(said)
	}
	for _, count := range []string{"majority", "unanimous", "2 of 3", "agreement level", "votes"} {
		if strings.Contains(q.System+q.Messages[0].Text, count) {
			t.Errorf("it says %q", count)
		}
	}
	if strings.Count(said, "act: holds yes") != 1 {
		t.Errorf("a row that says what another says is repeated:\n%s", said)
	}
	if s, err := sit(briefs["judge"]); err != nil || slices.Contains(s.peers.ids, "final-judge") {
		t.Errorf("%v: the judge is among the jurors", err)
	}
}

// TestAskedTwice: a juror that took two positions sees both answers of its own. Others see the later one, and only that
// of a juror that took one position twice is shown to itself.
func TestAskedTwice(t *testing.T) {
	for _, moved := range []bool{true, false} {
		b := levelled(discussing(t, "juror-gpt", jury.Discussion, talked(t, plainWords)))
		b.Repeated = []jury.Evaluation{evaluated("juror-gpt", jury.SafePass, "My second answer."), evaluated("juror-claude", jury.NeedsReview, "Its second answer.")}
		for i := range b.Repeated {
			b.Repeated[i].Phase = jury.Repetition
		}
		if moved {
			b.Repeated[0].Position, b.Last = jury.UnsafeFail, nil
		}
		said := saidBy(t, prompted(t, b))
		if !strings.Contains(said, "you, before the discussion, asked again: ") || strings.Contains(said, "Nothing is wrong.") != moved ||
			!strings.Contains(said, "Its second answer.") || strings.Contains(said, "One claim has no ground.") {
			t.Errorf("moved %t:\n%s", moved, said)
		}
	}
}

func saidBy(t *testing.T, q llm.Question) string {
	t.Helper()
	_, rest, _ := strings.Cut(q.Messages[0].Text, "=== BEGIN WHAT THE JURORS SAID")
	said, _, found := strings.Cut(rest, "=== END WHAT THE JURORS SAID")
	if !found {
		t.Fatal(q.Messages[0].Text)
	}
	return said
}
