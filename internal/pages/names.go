package pages

import (
	"fmt"
	"slices"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/subject"
	"jurat/internal/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// fill puts values into the {places} of a text. The pairs are name and value in turn. It returns an error for a
// missing place.
func fill(text string, pairs ...any) (string, error) {
	var old []string
	for pair := range slices.Chunk(pairs, 2) {
		place := fmt.Sprintf("{%v}", pair[0])
		if len(pair) != 2 || !strings.Contains(text, place) {
			return "", fmt.Errorf("the text %q has no place for %s", text, place)
		}
		old = append(old, place, fmt.Sprint(pair[1]))
	}
	return strings.NewReplacer(old...).Replace(text), nil
}

// name returns the name of a record's value in a language. It returns values without a name unchanged.
func name(lang words.Lang, value any) string {
	if text := known(lang, value); text != "" {
		return text
	}
	return plain(fmt.Sprint(value))
}

// class returns a class of the style sheet for a value with a name; "" for others, so that records cannot invent
// classes.
func class(value any) string {
	if known(words.English, value) == "" {
		return "unknown"
	}
	return strings.ReplaceAll(fmt.Sprint(value), " ", "_")
}

// known returns the name of a value, or "" if it has none.
func known(lang words.Lang, value any) string {
	terms, says := words.TermsIn(lang), words.PagesIn(lang)
	switch v := value.(type) {
	case verify.Status:
		return terms.Statuses.Of(v)
	case trust.Clock:
		return terms.Clocks.Of(v)
	case evidence.ActionType:
		return terms.Actions.Of(v)
	case evidence.Role:
		return terms.Roles.Of(v)
	case evidence.ApprovalStatus:
		return terms.Approvals.Of(v)
	case jury.Position:
		return terms.Positions.Of(v).Name
	case jury.Method:
		return method(says, v)
	case jury.Severity:
		return severity(says, v)
	case jury.ConsensusStatus:
		return consensus(says, v)
	case jury.AbsenceReason:
		return absence(says, v)
	case subject.Role:
		return speaker(terms, says, v)
	case subject.Left:
		return leftOut(says, v)
	case api.State:
		return state(says, v).Name
	case Mark:
		return mark(says, v).Name
	}
	return ""
}

func method(says *words.Pages, m jury.Method) string {
	switch m {
	case jury.MajorityVote:
		return says.Method.MajorityVote
	case jury.WeightedAverage:
		return says.Method.WeightedAverage
	case jury.FinalJudge:
		return says.Method.FinalJudge
	case jury.Median:
		return says.Method.Median
	case jury.Calibrated:
		return says.Method.Calibrated
	}
	return ""
}

func severity(says *words.Pages, s jury.Severity) string {
	switch s {
	case jury.Minor:
		return says.Severity.Minor
	case jury.Major:
		return says.Severity.Major
	case jury.Critical:
		return says.Severity.Critical
	}
	return ""
}

func consensus(says *words.Pages, s jury.ConsensusStatus) string {
	switch s {
	case jury.Unanimous:
		return says.Consensus.Unanimous
	case jury.Majority:
		return says.Consensus.Majority
	case jury.Split:
		return says.Consensus.Split
	}
	return ""
}

func absence(says *words.Pages, r jury.AbsenceReason) string {
	switch r {
	case jury.TimedOut:
		return says.Absent.TimedOut
	case jury.Blocked:
		return says.Absent.Blocked
	case jury.Invalid:
		return says.Absent.Invalid
	case jury.Failed:
		return says.Absent.Failed
	case jury.Ceiling:
		return says.Absent.Ceiling
	}
	return ""
}

// leftOut says what jurors are not shown.
func leftOut(says *words.Pages, kind subject.Left) string {
	switch kind {
	case subject.Reasoning:
		return says.LeftOut.Reasoning
	case subject.Unreadable:
		return says.LeftOut.Unreadable
	case subject.Elsewhere:
		return says.LeftOut.Elsewhere
	case subject.Judged:
		return says.LeftOut.Judged
	case subject.Alternatives:
		return says.LeftOut.Alternatives
	}
	return ""
}

// speaker returns the role's name as a heading.
func speaker(terms *words.Terms, says *words.Pages, r subject.Role) string {
	switch r {
	case subject.System:
		return says.Speaker.System
	case subject.User:
		return says.Speaker.User
	case subject.Assistant:
		return says.Speaker.Assistant
	case subject.Tool:
		return says.Speaker.Tool
	case subject.Reviewer:
		return capital(terms.Roles.Reviewer)
	case subject.Operator:
		return capital(terms.Roles.Operator)
	case subject.Recorder:
		return capital(terms.Roles.Recorder)
	}
	return ""
}

func state(says *words.Pages, s api.State) words.StateText {
	switch s {
	case api.Queued:
		return says.State.Queued
	case api.UnderWay:
		return says.State.UnderWay
	case api.BrokenOff:
		return says.State.BrokenOff
	case api.Cancelled:
		return says.State.Cancelled
	case api.Over:
		return words.StateText{Name: says.State.Over}
	}
	return words.StateText{}
}

func mark(says *words.Pages, m Mark) words.MarkText {
	switch m {
	case Degraded:
		return says.Mark.Degraded
	case Inconclusive:
		return says.Mark.Inconclusive
	case Offline:
		return says.Mark.Offline
	case PartlyOffline:
		return says.Mark.PartlyOffline
	case Broken:
		return says.Mark.Broken
	case TurnedByTalk:
		return says.Mark.TurnedByTalk
	case OneExtreme:
		return says.Mark.OneExtreme
	case JudgeMilder:
		return says.Mark.JudgeMilder
	}
	return words.MarkText{}
}

// axis names an axis of the default rubric; "" for an axis of another rubric.
func axis(says *words.Pages, id string) string {
	switch id {
	case "task_completion":
		return says.Axis.TaskCompletion
	case "tool_usage":
		return says.Axis.ToolUsage
	case "autonomy":
		return says.Axis.Autonomy
	case "safety":
		return says.Axis.Safety
	}
	return ""
}

// example describes an example.
func example(says *words.Pages, id string) string {
	switch id {
	case "kitchen-return":
		return says.Example.KitchenReturn
	case "pharmacy-refill":
		return says.Example.PharmacyRefill
	case "invoice-inbox":
		return says.Example.InvoiceInbox
	}
	return ""
}

// guarantee returns the name of a guarantee and the question that it answers.
func guarantee(lang words.Lang, g verify.Guarantee) words.Guarantee {
	if said := words.TermsIn(lang).Guarantees.Of(g); said.Name != "" {
		return said
	}
	return words.Guarantee{Name: plain(string(g))}
}

// Choose returns the language of a page: the chosen one, or else the first available one of an Accept-Language
// header.
func Choose(chosen, accept string) words.Lang {
	if slices.Contains(words.Langs(), words.Lang(chosen)) {
		return words.Lang(chosen)
	}
	best, weight := words.English, 0.0
	for part := range strings.SplitSeq(accept[:min(len(accept), 1000)], ",") {
		tag, parameters, _ := strings.Cut(part, ";")
		primary, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(tag)), "-")
		if q := quality(parameters); q > weight && slices.Contains(words.Langs(), words.Lang(primary)) {
			best, weight = words.Lang(primary), q
		}
	}
	return best
}

// quality reads the weight of a language (RFC 9110, section 12.4.2). The default is 1.
func quality(parameters string) float64 {
	value, is := strings.CutPrefix(strings.TrimSpace(parameters), "q=")
	if !is {
		return 1
	}
	var q float64
	if _, err := fmt.Sscanf(value, "%g", &q); err != nil || q < 0 || q > 1 {
		return 0
	}
	return q
}
