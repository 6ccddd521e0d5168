package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/acts"
	"jurat/internal/pages"
)

// severalForm decides each marked case of the queue as if it were decided alone, or takes it, gives it back or assigns it. It then shows
// the queue, and what happened to each. A case that is refused does not stop the others. If the same form comes again, it creates no
// second record.
func (s *Server) severalForm(w http.ResponseWriter, r *http.Request, c *Caller) error {
	form := pages.Several{Draft: pages.Draft{Key: r.PostFormValue("key"), Reason: unix.Replace(r.PostFormValue("reason"))},
		Decision: r.PostForm.Get("decision"), To: r.PostForm.Get("to"), Marked: r.PostForm["case"]}
	if form.Decides() && !c.Has(access.Reviewer) {
		return fmt.Errorf("%w: a decision is for %v, and %q is %v", api.ErrForbidden, Deciders.Roles, c.Name(), c.grant.Roles)
	}
	var err error
	if form.Show, err = pages.ReadShown(r.PostForm.Get("show")); err != nil {
		return fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	seen, wrong := form.Check()
	var results []pages.Result
	for _, one := range seen {
		results = append(results, s.doMarked(r.Context(), c, one, &form))
	}
	desk, err := s.desk(r.Context(), c, form.Show)
	if err != nil {
		return err
	}
	desk.Answer(results, form)
	status := http.StatusOK
	if wrong != nil {
		p := problemOf(wrong)
		status, desk.Problem = p.Status, problemText(p)
	}
	return s.page(w, r, c, status, desk)
}

// doMarked does with one of several cases what the form says, and says what happened.
func (s *Server) doMarked(ctx context.Context, c *Caller, seen pages.Seen, form *pages.Several) pages.Result {
	result := pages.Result{Record: seen.Verdict, Did: form.Decision, To: form.To}
	err := s.doSeen(ctx, c, seen, form, &result)
	if err == nil {
		return result
	}
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.config.Log.LogAttrs(ctx, slog.LevelError, "one of several cases failed", slog.String("record", seen.Verdict), slog.Any("error", err))
	}
	s.refusals.note(ctx, "POST /reviews", c, p)
	result.Problem = problemText(p)
	return result
}

func (s *Server) doSeen(ctx context.Context, c *Caller, seen pages.Seen, form *pages.Several, result *pages.Result) error {
	review, err := s.decidable(ctx, c, seen.Verdict)
	if err != nil {
		return err
	}
	p := &review.Record.Payload
	if !inTrial(p.ChainID) || p.ActionType != evidence.FinalJudgment {
		return fmt.Errorf("%w: record %s is not a verdict: decide on it on its own page", api.ErrInvalid, p.RecordID)
	}
	e, err := s.scheduler.Entry(ctx, p.ChainID)
	if err != nil {
		return ofScheduler(err)
	}
	result.Subject, review.Draft.Reason = e.Agent, form.Reason
	still := func(ctx context.Context) error { return s.stillWaits(ctx, p.ChainID, seen) }
	if form.Decides() {
		return s.sealDecision(ctx, c, acts.Order{By: c, Key: form.Key, Still: still}, review, form.Decision)
	}
	if err := still(ctx); err != nil {
		return err
	}
	switch form.Decision {
	case pages.Assign:
		return s.take(ctx, c, p.ChainID, api.Taking{Reviewer: form.To})
	case pages.GiveBack:
		return s.giveBack(ctx, c, p.ChainID, api.GivingBack{})
	}
	return s.take(ctx, c, p.ChainID, api.Taking{})
}

// stillWaits refuses a case that is not as the page showed it.
func (s *Server) stillWaits(ctx context.Context, id string, seen pages.Seen) error {
	e, err := s.scheduler.Entry(ctx, id)
	switch {
	case err != nil:
		return ofScheduler(err)
	case e.Outcome == nil || pages.SeenOf(e.Outcome) == seen && !e.NeedsPerson():
		return fmt.Errorf("%w: the case does not wait for a person", api.ErrConflict)
	case pages.SeenOf(e.Outcome) != seen && e.Outcome.Decision != nil:
		return fmt.Errorf("%w: %q decided on this case after the page was loaded: look at it again", api.ErrConflict, e.Outcome.Decision.Reviewer)
	case pages.SeenOf(e.Outcome) != seen:
		return fmt.Errorf("%w: the case is not as the page showed it: load the page again", api.ErrConflict)
	}
	return nil
}
