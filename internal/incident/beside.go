package incident

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// reasons says why a person must see a verdict.
func (t tongue) reasons(list []jury.ReviewReason) string {
	var said []string
	for _, reason := range list {
		said = append(said, cmp.Or(t.Say("statement.must_see."+string(reason)), t.Say("statement.must_see", "reason", word(string(reason)))))
	}
	return t.join(said...)
}

// beside returns what a reader should know beside the verdict: who abstained, what the judge had found by itself, what the discussion did, who
// was moved by what, and how many votes the votes are worth. Nothing of it is stated unless verification proved the verdict: all of it follows
// from the same acts by the same rules.
func (w *writer) beside(acts []*evidence.Record) (paragraphs []string) {
	if w.report.Of(verify.Verdict).Status != verify.Proved {
		return nil
	}
	state, err := replayed(acts)
	if err != nil || !state.Judged {
		return nil // the report says so
	}
	r := &state.Result
	names := namesOf(state.Settings)
	for _, said := range []string{w.join(w.abstained(r, names), w.alone(r), w.afterTalk(r), w.worth(r)), w.talk(r, names)} {
		if said != "" {
			paragraphs = append(paragraphs, said)
		}
	}
	return paragraphs
}

func replayed(acts []*evidence.Record) (*jury.Replayed, error) {
	var list []jury.Act
	for _, r := range acts {
		a, err := jury.ReadAct(r)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	return jury.Replay(list)
}

// namesOf returns the quoted names of the seats by their ids.
func namesOf(s *jury.Settings) map[string]string {
	names := map[string]string{}
	for _, seat := range s.Seats {
		names[seat.JurorID] = strconv.Quote(cmp.Or(seat.RoleName, seat.JurorID))
	}
	return names
}

func (w *writer) abstained(r *jury.Result, names map[string]string) string {
	var said []string
	for _, id := range r.Abstentions {
		said = append(said, w.Say("statement.abstained", "juror", names[id]))
	}
	return w.join(said...)
}

func (w *writer) alone(r *jury.Result) string {
	if r.JudgeReading == nil {
		return ""
	}
	return w.Say("statement.judge_alone", "position", w.position(r.JudgeReading.Position), "score", r.JudgeReading.TotalScore)
}

func (w *writer) afterTalk(r *jury.Result) string {
	after := r.Phase3Judgment.AfterTalk
	if after == nil {
		return ""
	}
	return w.Say("statement.after_talk", "position", w.position(after.Position), "score", after.Score)
}

func (w *writer) worth(r *jury.Result) string {
	votes := r.EffectiveVotes
	if votes == nil {
		return ""
	}
	key := "statement.votes_assumed"
	if votes.Measured {
		key = "statement.votes_measured"
	}
	return w.Say(key, "votes", fmt.Sprintf("%.2f", votes.Votes))
}

// talk says how far the discussion moved the jurors, and who was moved by what.
func (w *writer) talk(r *jury.Result, names map[string]string) string {
	if r.Talk == nil {
		return ""
	}
	said := []string{w.Say("statement.talk", "changes", r.Talk.Changes, "majority", r.Talk.ToMajority, "conformity", fmt.Sprintf("%.2f", r.Talk.Conformity))}
	for _, c := range r.Changes {
		said = append(said, w.moved(c, names))
	}
	return w.join(said...)
}

func (w *writer) moved(c jury.Change, names map[string]string) string {
	var toward []string
	for _, id := range c.Toward {
		toward = append(toward, names[id])
	}
	how := "uncited"
	if len(c.Cites) > 0 {
		how = "citing"
	}
	if len(toward) == 0 {
		how += "_alone"
	}
	pairs := []any{"juror", names[c.JurorID], "from", w.position(c.From), "to", w.position(c.To), "round", c.RoundNumber, "toward", strings.Join(toward, ", ")}
	if len(c.Cites) > 0 {
		pairs = append(pairs, "message", c.Cites[0].Message, "quote", strconv.Quote(shortened(c.Cites[0].Quote)))
	}
	return w.Say("statement.moved."+how, pairs...)
}
