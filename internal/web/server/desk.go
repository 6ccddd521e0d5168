package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/internal/court/acts"
	"jurat/internal/court/schedule"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/names"
	"jurat/internal/web/pages"
)

// deskLimit is how many trials the desk lists: the oldest ones.
const deskLimit = 200

func (s *Server) deskPage(r *http.Request, c *Caller) (*pages.Desk, error) {
	show, err := pages.ReadShown(r.URL.Query().Get("show"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	return s.desk(r.Context(), c, show)
}

func (s *Server) desk(ctx context.Context, c *Caller, show pages.Shown) (*pages.Desk, error) {
	visible := s.visible(c)
	open, err := s.scheduler.Oldest(ctx, deskLimit, func(t *trial.Summary) bool { return visible(t) && t.NeedsPerson() && shows(show, t, c) })
	if err != nil {
		return nil, err
	}
	decided, _, err := s.scheduler.Entries(ctx, "", trialsPerPage, func(t *trial.Summary) bool {
		return visible(t) && t.Outcome != nil && t.Outcome.Decision != nil
	})
	if err != nil {
		return nil, err
	}
	desk := pages.NewDesk(briefs(open), briefs(decided), c.Name())
	desk.Show, desk.May, desk.Assigns = show, c.Has(access.Reviewer), c.Has(access.Operator)
	desk.Form.Key, err = evidence.NewRecordID(s.config.Now(), nil)
	return desk, err
}

func shows(show pages.Shown, t *trial.Summary, c *Caller) bool {
	switch now := t.Taken(); show {
	case pages.ShowMine:
		return now != nil && names.Same(now.Reviewer, c.Name())
	case pages.ShowUnassigned:
		return now == nil
	}
	return true
}

// neighbours returns the verdicts before and after a trial's in the queue of this reviewer, as a ring; "": no other one waits.
func (s *Server) neighbours(ctx context.Context, c *Caller, id string) (before, after string, err error) {
	visible := s.visible(c)
	queue, err := s.scheduler.Oldest(ctx, deskLimit, func(t *trial.Summary) bool {
		return t.ID == id || !names.Same(t.Submitter, c.Name()) && visible(t) && t.NeedsPerson()
	})
	at := slices.IndexFunc(queue, func(e schedule.Entry) bool { return e.ID == id })
	switch n := len(queue); {
	case err != nil || n == 0 || n == 1 && at == 0:
		return "", "", err
	case at < 0: // it is behind the oldest ones
		return queue[n-1].Outcome.Verdict.Record, queue[0].Outcome.Verdict.Record, nil
	default:
		return queue[(at+n-1)%n].Outcome.Verdict.Record, queue[(at+1)%n].Outcome.Verdict.Record, nil
	}
}

func briefs(entries []schedule.Entry) (list []pages.Summary) {
	for _, e := range entries {
		list = append(list, pages.Summary{Summary: e.Summary, State: e.State})
	}
	return list
}

func (s *Server) reviewOf(r *http.Request, c *Caller) (*pages.Review, error) {
	review, err := s.decidable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	if review.Draft.Key, err = evidence.NewRecordID(s.config.Now(), nil); err != nil {
		return nil, err
	}
	review.May = c.Has(access.Reviewer)
	switch err := s.acts.NotOwnWork(r.Context(), c.Name(), review.Record.Payload.RecordID); {
	case errors.Is(err, api.ErrOwnWork):
		review.Own = true
	case err != nil:
		return nil, err
	}
	return review, s.around(r.Context(), c, review)
}

func (s *Server) decidable(ctx context.Context, c *Caller, id string) (*pages.Review, error) {
	record, err := s.disclosed(ctx, c, id)
	if err != nil {
		return nil, err
	}
	review, err := pages.NewReview(record)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrConflict, err)
	}
	return review, nil
}

// around adds what the chain says about the record: its subject, and earlier decisions on it.
func (s *Server) around(ctx context.Context, c *Caller, review *pages.Review) error {
	p := &review.Record.Payload
	review.Subject = p.Actor()
	if p.ChainID == "" {
		return nil
	}
	chain, err := s.config.Installation.Ledger.Chain(ctx, p.ChainID)
	if err != nil {
		return err
	}
	for _, other := range chain {
		if other.Payload.OriginalResponseID != p.RecordID || s.mayRead(ctx, c, other) != nil {
			continue
		}
		if other, err = s.disclosedTo(ctx, c, other); err != nil {
			return err
		}
		review.Reviews = append(review.Reviews, pages.NewDecision(other, nil))
	}
	if !inTrial(p.ChainID) {
		return nil
	}
	e, err := s.scheduler.Entry(ctx, p.ChainID)
	if err != nil {
		return err
	}
	review.Trial, review.Subject, review.Waits, review.Taken = p.ChainID, e.Agent, e.NeedsPerson(), e.Taken()
	if p.ActionType != evidence.FinalJudgment {
		return nil
	}
	if review.Court, err = s.wholeCourt(ctx, c, p.ChainID); err != nil {
		return err
	}
	review.Reviews = review.Court.Human
	review.Previous, review.Next, err = s.neighbours(ctx, c, p.ChainID)
	return err
}

// decide compares a draft with the original, or seals a decision and opens the next verdict that waits. If that is refused, the page shows
// the draft and why. It reads the log once, so that no second reading can fail and hide what was sealed.
func (s *Server) decide(r *http.Request, c *Caller) (pages.Page, error) {
	review, err := s.reviewOf(r, c)
	if err != nil {
		return nil, err
	}
	id := review.Record.Payload.RecordID
	if review.Own {
		return nil, fmt.Errorf("%w: record %s", api.ErrOwnWork, id)
	}
	review.Draft = draftOf(r, review)
	review.Compare()
	next := id
	switch decision := r.PostFormValue("decision"); decision {
	case "compare":
		return review, nil
	case pages.Take:
		err = s.take(r.Context(), c, review.Trial, api.Taking{})
	case pages.GiveBack:
		err = s.giveBack(r.Context(), c, review.Trial, api.GivingBack{})
	default:
		next = cmp.Or(review.Next, next)
		err = s.sealDecision(r.Context(), acts.Order{By: c, Key: review.Draft.Key}, review, decision)
	}
	if err == nil {
		return pageAt("reviews", next), nil
	}
	if _, sealed := errors.AsType[*toldError](err); !sealed && problemOf(err).Status == http.StatusInternalServerError {
		return nil, err
	}
	review.Refuse(s.noted(r.Context(), "POST /reviews/{id}", c, id, err))
	return review, nil
}

// noted counts the refusal of a case that a page shows beside the form, and logs it if the server is the reason.
func (s *Server) noted(ctx context.Context, route string, c *Caller, record string, err error) *api.Problem {
	p := problemOf(err)
	if p.Status >= http.StatusInternalServerError && ctx.Err() == nil {
		s.config.Log.LogAttrs(ctx, slog.LevelError, "a case failed", slog.String("route", route), slog.String("record", record), slog.Any("error", err))
	}
	s.refusals.note(route, c, p)
	return p
}

// unix makes the line breaks of a form those of a record. Browsers send every line break as CR LF.
var unix = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func draftOf(r *http.Request, review *pages.Review) pages.Draft {
	d := pages.Draft{Key: cmp.Or(r.PostFormValue("key"), review.Draft.Key), Text: unix.Replace(r.PostFormValue("text")), Reason: unix.Replace(r.PostFormValue("reason"))}
	if d.Text == unix.Replace(review.Editable.Text) {
		d.Text = review.Editable.Text
	}
	if review.Editable.Position != "" {
		d.Text = review.Editable.Text // the form cannot change it
	}
	return d
}

// sealDecision seals the decision, and then, for an agent's answer that it approves, the delivery. If the same form
// comes again, for example because the first answer was lost, it finds both records and creates none.
func (s *Server) sealDecision(ctx context.Context, o acts.Order, review *pages.Review, decision string) error {
	asked, err := review.Asked(decision)
	if err != nil {
		return err
	}
	decided, err := s.count(s.acts.Review(ctx, o, review.Record, asked))
	if err != nil {
		return err
	}
	if asked.ApprovalStatus == string(evidence.Rejected) || review.Record.Payload.Role() != evidence.RoleAgent {
		return nil
	}
	if _, err := s.count(s.acts.Deliver(ctx, o, review.Record, decided.Record.Payload.RecordID)); err != nil {
		sealed := "the decision is sealed as record " + decided.Record.Payload.RecordID + ", but the answer is not delivered yet"
		return &toldError{sealed, err} // else a person might decide once more
	}
	return nil
}

// severalForm decides each marked case of the queue as if it were decided alone, or takes it, gives it back or assigns it. It then shows
// the queue, and what happened to each. A case that is refused does not stop the others. If the same form comes again, it creates no
// second record.
func (s *Server) severalForm(r *http.Request, c *Caller) (*pages.Desk, error) {
	form := pages.Several{Draft: pages.Draft{Key: r.PostFormValue("key"), Reason: unix.Replace(r.PostFormValue("reason"))},
		Decision: r.PostForm.Get("decision"), To: r.PostForm.Get("to"), Marked: r.PostForm["case"]}
	if form.Decides() && !c.Has(access.Reviewer) {
		return nil, fmt.Errorf("%w: a decision is for %v, and %q is %v", api.ErrForbidden, Deciders.Roles, c.Name(), c.grant.Roles)
	}
	var err error
	if form.Show, err = pages.ReadShown(r.PostForm.Get("show")); err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrMalformed, err)
	}
	seen, wrong := form.Check()
	var results []pages.Result
	for _, one := range seen {
		results = append(results, s.doMarked(r.Context(), c, one, &form))
	}
	desk, err := s.desk(r.Context(), c, form.Show)
	if err != nil {
		return nil, err
	}
	desk.Answer(results, form)
	if wrong != nil {
		desk.Refuse(problemOf(wrong))
	}
	return desk, nil
}

// doMarked does with one of several cases what the form says, and says what happened.
func (s *Server) doMarked(ctx context.Context, c *Caller, seen pages.Seen, form *pages.Several) pages.Result {
	result := pages.Result{Record: seen.Verdict, Did: form.Decision, To: form.To}
	if err := s.doSeen(ctx, c, seen, form, &result); err != nil {
		result.Problem = pages.ProblemText(s.noted(ctx, "POST /reviews", c, seen.Verdict, err))
	}
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
		return err
	}
	result.Subject, review.Draft.Reason = e.Agent, form.Reason
	still := func(ctx context.Context) error { return s.stillWaits(ctx, p.ChainID, seen) }
	if form.Decides() {
		return s.sealDecision(ctx, acts.Order{By: c, Key: form.Key, Still: still}, review, form.Decision)
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
		return err
	case e.Outcome == nil || pages.SeenOf(e.Outcome) == seen && !e.NeedsPerson():
		return fmt.Errorf("%w: the case does not wait for a person", api.ErrConflict)
	case pages.SeenOf(e.Outcome) != seen && e.Outcome.Decision != nil:
		return fmt.Errorf("%w: %q decided on this case after the page was loaded: look at it again", api.ErrConflict, e.Outcome.Decision.Reviewer)
	case pages.SeenOf(e.Outcome) != seen:
		return fmt.Errorf("%w: the case is not as the page showed it: load the page again", api.ErrConflict)
	}
	return nil
}

var assigners = Who{Roles: []access.Role{access.Reviewer, access.Operator}}

func (s *Server) postTaking(r *http.Request, c *Caller, asked *api.Taking) (string, error) {
	id := r.PathValue("id")
	return id, s.take(r.Context(), c, id, *asked)
}

func (s *Server) postGivingBack(r *http.Request, c *Caller, asked *api.GivingBack) (string, error) {
	id := r.PathValue("id")
	return id, s.giveBack(r.Context(), c, id, *asked)
}

// take records that the caller has taken a trial, or, if another reviewer is named, that an operator has assigned it. An operator who names
// a reviewer also takes it from another. Its errors are those of the caller's rights and of the Scheduler, and api.ErrInvalid.
func (s *Server) take(ctx context.Context, c *Caller, id string, asked api.Taking) error {
	if err := s.mayReadTrial(ctx, c, id); err != nil {
		return err
	}
	reason, err := checkedReason(asked.Reason)
	if err != nil {
		return err
	}
	to, named := c.Name(), strings.TrimSpace(asked.Reviewer)
	to = cmp.Or(named, to)
	if err := s.acts.MayTake(ctx, c, to, id); err != nil {
		return err
	}
	if named != "" {
		if to, err = s.reviewer(ctx, named); err != nil {
			return err
		}
	}
	err = s.scheduler.Take(ctx, id, to, c.Name(), reason)
	if errors.Is(err, schedule.ErrTaken) && named != "" && c.Has(access.Operator) {
		err = s.scheduler.GiveBack(ctx, id, c.Name(), reason, func(trial.Change) error { return nil })
		if err == nil || errors.Is(err, schedule.ErrNotTaken) {
			err = s.scheduler.Take(ctx, id, to, c.Name(), reason)
		}
	}
	return err
}

// giveBack records that the reviewer who has a trial gives it back. Its errors are those of take, and of acts.MayGiveBack.
func (s *Server) giveBack(ctx context.Context, c *Caller, id string, asked api.GivingBack) error {
	if err := s.mayReadTrial(ctx, c, id); err != nil {
		return err
	}
	reason, err := checkedReason(asked.Reason)
	if err != nil {
		return err
	}
	return s.scheduler.GiveBack(ctx, id, c.Name(), reason, func(now trial.Change) error { return acts.MayGiveBack(c, now.Reviewer) })
}

func checkedReason(reason string) (string, error) {
	if reason = strings.TrimSpace(reason); len(reason) > maxReason {
		return "", fmt.Errorf("%w: field reason: want at most %d bytes", api.ErrInvalid, maxReason)
	}
	return reason, nil
}

// reviewer returns the name, as the log has it, of a person who can decide now.
func (s *Server) reviewer(ctx context.Context, name string) (string, error) {
	grants, err := s.access.Grants(ctx)
	if err != nil {
		return "", err
	}
	for i := range grants {
		if g := &grants[i]; g.Ended == nil && g.Has(access.Reviewer) && names.Same(g.Name, name) {
			return g.Name, nil
		}
	}
	return "", fmt.Errorf("%w: field reviewer: no person of this name has a valid token or session of a reviewer", api.ErrInvalid)
}
