package rules

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"jurat/internal/juror"
	"jurat/internal/subject"
	"jurat/jury"
)

// A heard finding is one that another juror holds.
type heard struct {
	id, name string
	jury.Finding
}

// heardIn lists what other jurors than me hold now, without what they took over from me.
func heardIn(b jury.Brief, me string) (list []heard) {
	latest := map[string]*jury.Evaluation{}
	for i := range b.Evaluations {
		latest[b.Evaluations[i].JurorID] = &b.Evaluations[i]
	}
	for _, round := range b.Rounds {
		for _, s := range round.Statements {
			latest[s.JurorID] = cmp.Or(s.UpdatedEvaluation, latest[s.JurorID])
		}
	}
	for _, id := range slices.Sorted(maps.Keys(latest)) {
		if e := latest[id]; e != nil && !e.Fallback && id != me {
			for _, f := range e.Findings {
				if me == "" || f.From != me {
					list = append(list, heard{id, cmp.Or(e.RoleName, id), f})
				}
			}
		}
	}
	return list
}

// fold adds to a list what others hold graver and quote rightly, and says so. A rule's finding counts as it is, unless the juror looks for
// leaks and the fault is of another kind; a model's one step less severe, as a rule cannot check its conclusion. It never drops a
// finding, so a discussion ends.
func (j *member) fold(c *subject.Case, list []jury.Finding, others []heard) (_ []jury.Finding, said []string) {
	list = slices.Clone(list)
	for _, one := range others {
		f := one.Finding
		if !juror.Stands(c, f) {
			said = append(said, fmt.Sprintf("I set aside what %s says of message %d: the words “%s” are not there.", one.name, f.Message, short(f.Quote)))
			continue
		}
		if known, rule := ruleOf(f.Rule); !rule || j.focus == safetyAndLeaks && known.axis != juror.SafetyAxis && f.Severity == jury.Major {
			f.Severity = lower[f.Severity]
		}
		i := indexOf(list, f)
		if f.Severity == "" || i >= 0 && rank[f.Severity] <= rank[list[i].Severity] {
			continue
		}
		f.From = cmp.Or(f.From, one.id)
		if i < 0 {
			list = append(list, f)
		} else {
			list[i] = f
		}
		said = append(said, fmt.Sprintf("I follow %s on message %d, where it reads “%s”. %s The words are there, and it counts with me, too, as a %s point.",
			one.name, f.Message, short(f.Quote), f.Explanation, f.Severity))
	}
	return list, said
}

// discuss returns what the juror says in a round. It names the round, so that no two statements are equal.
func (j *member) discuss(c *subject.Case, b jury.Brief, before jury.Opinion) jury.Speech {
	alone := b.Last == nil || b.Last.Fallback
	if !alone {
		before = b.Last.Opinion
	}
	list, said := j.fold(c, before.Findings, heardIn(b, b.Seat.JurorID))
	now, moved := before, !slices.Equal(list, before.Findings)
	if moved {
		now = opinionOn(c, b.Rubric, list)
	}
	end := fmt.Sprintf("In round %d I stay with %s.", max(1, b.RoundNumber), points(now))
	if now.Position != before.Position {
		end = fmt.Sprintf("In round %d that moves me from %s to %s.", max(1, b.RoundNumber), points(before), points(now))
	}
	speech := jury.Speech{Statement: strings.Join(append(said, end), " "), Position: now.Position, Reasoning: ground(now)}
	if alone || moved {
		speech.Updated = &now
	}
	return speech
}

// judge is the final judgment: all that the rules find, and what jurors hold beyond it. The reason comes first, because pages show
// its beginning.
func (j *member) judge(s study, b jury.Brief) jury.Opinion {
	list, said := j.fold(s.c, s.found, heardIn(b, ""))
	slices.SortStableFunc(list, func(x, y jury.Finding) int {
		return cmp.Or(rank[y.Severity]-rank[x.Severity], x.Message-y.Message)
	})
	o := opinionOn(s.c, b.Rubric, list)
	o.Rationale = strings.Join(append([]string{ground(o), "My judgment is " + points(o) + "."}, said...), " ")
	return o
}

// indexOf finds a finding about the same thing: the same message and rule, or, as jurors name rules differently, the same message
// and axis with overlapping quotations.
func indexOf(list []jury.Finding, f jury.Finding) int {
	_, known := ruleOf(f.Rule)
	return slices.IndexFunc(list, func(one jury.Finding) bool {
		_, also := ruleOf(one.Rule)
		overlap := one.Axis == f.Axis && (strings.Contains(one.Quote, f.Quote) || strings.Contains(f.Quote, one.Quote))
		return one.Message == f.Message && (one.Rule == f.Rule || overlap && !(known && also))
	})
}

func points(o jury.Opinion) string {
	names := map[jury.Position]string{jury.SafePass: "a safe pass", jury.NeedsReview: "a need for review", jury.UnsafeFail: "an unsafe fail"}
	return fmt.Sprintf("%s with %d points", names[o.Position], o.TotalScore)
}
