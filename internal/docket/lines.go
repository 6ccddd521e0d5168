package docket

import (
	"fmt"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/find"
	"jurat/internal/inorder"
	"jurat/internal/trial"
	"jurat/verify"
	"jurat/verify/trust"
)

// Line is a trial in a list.
func Line(s *trial.Summary) api.TrialLine {
	l := api.TrialLine{ID: s.ID, Agent: s.Agent, Submitter: s.Submitter, Submitted: evidence.FormatTime(s.Submitted), Last: evidence.FormatTime(s.Last),
		NeedsPerson: s.NeedsPerson(), Degraded: s.Degraded, Offline: s.Offline, Case: s.Case.String()}
	if now := s.Taken(); now != nil {
		l.Taken = &api.Taken{Reviewer: now.Reviewer, Since: evidence.FormatTime(now.At), By: now.By, Reason: now.Reason}
	}
	if s.Over {
		l.State = api.Over
	}
	if o := s.Outcome; o != nil {
		score := o.Verdict.Score
		l.Verdict, l.Score, l.Outcome, l.By, l.Inconclusive = o.Verdict.Position, &score, o.Position, o.By, o.Verdict.Inconclusive
		if o.Decision != nil {
			l.Reviewer = o.Decision.Reviewer
		}
	}
	return l
}

// List is a page of trials, without what the index could not see.
func List(found *find.Listed) api.TrialList {
	c := found.Counts
	list := api.TrialList{Trials: []api.TrialLine{}, Next: found.Next,
		Counts: api.TrialCounts{Total: c.Total, AtMost: c.AtMost, Verdicts: c.Verdicts, Outcomes: c.Outcomes, NeedsPerson: c.Needs}}
	for i := range found.Trials {
		list.Trials = append(list.Trials, Line(&found.Trials[i]))
	}
	return list
}

// Hits is a page of records. Who said it and when is verified by a trust file, on all cores. trials are those whose outcomes
// the reader may see; visible selects them, nil: all. Its error is that of a panic while a record is verified.
func Hits(found *find.Found, by *trust.Trust, trials *trial.Index, visible func(*trial.Summary) bool) (api.HitList, error) {
	list := api.HitList{Hits: []api.Hit{}, Next: found.Next}
	err := inorder.Each(found.Hits, func(h find.Hit) (api.Hit, error) { return hit(&h, by), nil }, func(h api.Hit) error {
		if t, is := trials.Get(h.Chain); is && (visible == nil || visible(&t)) {
			h.Outcome = t.Outcome
		}
		list.Hits = append(list.Hits, h)
		return nil
	})
	if err != nil {
		return api.HitList{}, fmt.Errorf("verifying what was found: %w", err)
	}
	return list, nil
}

func hit(found *find.Hit, by *trust.Trust) api.Hit {
	p := &found.Record.Payload
	h := api.Hit{Record: p.RecordID, Action: string(p.ActionType), Role: string(p.Role()), Actor: p.Actor(), Chain: p.ChainID, Claimed: p.Timestamp,
		Place: found.Pointer, Said: found.Pointer != "" && found.Said(), Line: found.Excerpt, Status: string(verify.Proved)}
	if p.Observed != nil {
		h.Agent = p.Observed.Agent
	}
	report := verify.Record(found.Record, verify.Options{Trust: by})
	for _, g := range []verify.Guarantee{verify.Content, verify.Authentication, verify.Time} {
		if f := report.Of(g); f.Status != verify.Proved {
			h.Status, h.Why = string(f.Status), string(g)+" is "+string(f.Status)+": "+f.Reason
			return h
		}
	}
	if at, ok := report.Answers().TimeOf(p.RecordID); ok {
		h.Proved, h.Authority, h.Clock = evidence.FormatTime(at.Time), at.Authority, string(at.Clock)
	}
	return h
}
