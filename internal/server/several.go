package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"jurat/api"
	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/pages"
	"jurat/internal/server/wire"
)

// several is a form that decides several cases of the queue.
type several struct {
	pages.Draft
	decision string
	marked   []string
}

// decideSeveral decides each marked case of the queue as if it were decided alone, and then shows the queue, and what happened to
// each. A case that is refused does not stop the others. If the same form comes again, it creates no second record.
func (s *Server) decideSeveral(w http.ResponseWriter, r *http.Request, c *Caller) error {
	form := several{Draft: pages.Draft{Key: r.PostFormValue("key"), Reason: unix.Replace(r.PostFormValue("reason"))},
		decision: r.PostForm.Get("decision"), marked: r.PostForm["case"]}
	seen, wrong := form.check()
	var results []pages.Result
	for _, one := range seen {
		results = append(results, s.decideMarked(r.Context(), c, one, form))
	}
	desk, err := s.desk(r.Context(), c)
	if err != nil {
		return err
	}
	desk.Answer(results, form.Reason, form.marked)
	status := http.StatusOK
	if wrong != nil {
		p := wire.Problem(wrong)
		status, desk.Problem = p.Status, problemText(p)
	}
	return s.page(w, r, c, status, desk)
}

// check returns the marked cases if the form decides on them. It returns an error if the form lacks something.
func (f *several) check() ([]pages.Seen, error) {
	switch {
	case f.decision == pages.LookAgain:
		return nil, nil
	case !slices.Contains(pages.DecisionsAtOnce(), f.decision):
		return nil, fmt.Errorf("%w: field decision: want one of %q, not %q", api.ErrInvalid, pages.DecisionsAtOnce(), evidence.Abbreviate(f.decision))
	case f.Key == "":
		return nil, fmt.Errorf("%w: field key: is missing; load the page again", api.ErrInvalid)
	case strings.TrimSpace(f.Reason) == "":
		return nil, fmt.Errorf("%w: field reason: a decision needs a reason", api.ErrInvalid)
	}
	seen, err := pages.ReadMarked(f.marked)
	if err != nil {
		return nil, fmt.Errorf("%w: field case: %w", api.ErrInvalid, err)
	}
	return seen, nil
}

// decideMarked decides one of several cases, and says what happened.
func (s *Server) decideMarked(ctx context.Context, c *Caller, seen pages.Seen, form several) pages.Result {
	result := pages.Result{Record: seen.Verdict}
	err := s.decideSeen(ctx, c, seen, form, &result)
	if err == nil {
		return result
	}
	p := wire.Problem(err)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.config.Log.LogAttrs(ctx, slog.LevelError, "one of several decisions failed", slog.String("record", seen.Verdict), slog.Any("error", err))
	}
	s.refusals.Note(ctx, "POST /reviews", c.refusedAs(), p)
	result.Problem = problemText(p)
	return result
}

func (s *Server) decideSeen(ctx context.Context, c *Caller, seen pages.Seen, form several, result *pages.Result) error {
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
	return s.sealDecision(ctx, c, acts.Order{By: c, Key: form.Key, Still: func(ctx context.Context) error { return s.stillWaits(ctx, p.ChainID, seen) }}, review, form.decision)
}

// stillWaits refuses a decision on a case that is not as the reviewer saw it.
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
