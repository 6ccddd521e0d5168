package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/court/acts"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/verify"
)

func (s *Server) submit(r *http.Request, c *Caller, asked *api.NewSubmission) (string, error) {
	on, err := s.caseFrom(r.Context(), c, asked)
	if err != nil {
		return "", refusedEvidence(err)
	}
	keyed, err := acts.KeyedID(c, r.Header.Get(api.IdempotencyKey), "submission")
	if err != nil {
		return "", err
	}
	id, err := s.scheduler.SubmitOnce(r.Context(), schedule.Order{ID: keyed, Submitter: c.Name(), Case: on})
	return id, err
}

// entered makes a Handler that answers with a submission, as lists have it. do returns its id.
func (s *Server) entered(status int, do func(*http.Request, *Caller) (string, error)) Handler {
	return func(w http.ResponseWriter, r *http.Request, c *Caller) error {
		id, err := do(r, c)
		if err != nil {
			return err
		}
		e, err := s.scheduler.Entry(r.Context(), id)
		if err != nil {
			return err
		}
		w.Header().Set("Location", "/v1/submissions/"+id)
		return writeJSON(w, r, status, e.Described())
	}
}

// toCourt makes a Handler of a form that leads to the page of a trial. do returns its id.
func toCourt(s *Server, do func(*http.Request, *Caller) (string, error)) Handler {
	return shown(s, func(r *http.Request, c *Caller) (elsewhere, error) {
		id, err := do(r, c)
		return pageAt("submissions", id), err
	})
}

// chainFile returns a chain of the log for a jury, as a bundle, if the caller may read all of it. What is sealed apart stays so, because in the
// evidence of a trial it could never be erased: to show it, the caller submits the records with their disclosures. Of a recorded chain the bundle
// has those texts that the caller may see.
func (s *Server) chainFile(ctx context.Context, c *Caller, id string, recorded bool) ([]byte, error) {
	records, err := s.readableChain(ctx, c, id, recorded)
	if err != nil {
		return nil, unnamed(err)
	}
	if recorded && !slices.ContainsFunc(records, func(r *evidence.Record) bool { return r.Payload.Observed != nil }) {
		return nil, unrecorded()
	}
	bundle, err := s.config.Installation.Ledger.Prove(ctx, records...)
	if err != nil {
		return nil, err
	}
	return bundle.Marshal()
}

func (s *Server) listSubmissions(r *http.Request, c *Caller) (page api.Submissions, err error) {
	limit, err := number(r, "limit", pageLimit, maxPageLimit)
	if err != nil {
		return page, err
	}
	entries, more, err := s.scheduler.Entries(r.Context(), r.URL.Query().Get("after"), int(limit), s.visible(c))
	if errors.Is(err, trial.ErrUnknown) {
		return page, fmt.Errorf("%w: after: not a cursor of this list", api.ErrMalformed)
	}
	page.Submissions = []api.Submission{}
	for i := range entries {
		page.Submissions = append(page.Submissions, entries[i].Described())
	}
	if more {
		page.Next = entries[len(entries)-1].ID
	}
	return page, err
}

// visible selects the trials that a list shows to a caller: those that they may read, without regard to what is public.
func (s *Server) visible(c *Caller) func(*trial.Summary) bool {
	all := acts.ReadsEverything(c)
	return func(t *trial.Summary) bool { return all || acts.IsSubmitter(c, t.Submitter) }
}

func (s *Server) getSubmission(r *http.Request, c *Caller) (answer api.Submission, err error) {
	ctx, id := r.Context(), r.PathValue("id")
	e, err := s.scheduler.Entry(ctx, id)
	if err != nil {
		return answer, err
	}
	t, err := trial.Reopen(ctx, s.config.Installation.Ledger, id)
	if err != nil {
		return answer, err
	}
	answer = entryFor(c, &e)
	answer.Votes, answer.Result = &t.Votes, &t.State().Result
	return answer, nil
}

func (s *Server) goOn(r *http.Request, c *Caller) (string, error) {
	id := r.PathValue("id")
	return id, s.scheduler.Retry(r.Context(), id, c.Name(), "asked for in the courtroom or over the API")
}

func (s *Server) cancel(r *http.Request, c *Caller, asked *api.Cancellation) (string, error) {
	id := r.PathValue("id")
	reason, err := givenReason(asked.Reason)
	if err != nil {
		return id, err
	}
	return id, s.scheduler.Cancel(r.Context(), id, c.Name(), reason)
}

const maxReason = 1000

// givenReason returns a reason without the spaces around it. It refuses one that is empty or too long.
func givenReason(reason string) (string, error) {
	reason, err := checkedReason(reason)
	if err != nil || reason == "" {
		return "", fmt.Errorf("%w: reason: want 1 to %d bytes", api.ErrInvalid, maxReason)
	}
	return reason, nil
}

func (s *Server) getCase(w http.ResponseWriter, r *http.Request, c *Caller) error {
	id := r.PathValue("id")
	g, err := s.gather(r.Context(), c, id, s.config.Installation.Ledger.Briefs().Gather)
	if err != nil {
		return err
	}
	return s.sendCase(w, r, c, g, id+".jurat")
}

func (s *Server) mayReadTrial(ctx context.Context, c *Caller, id string) error {
	if err := s.isTrial(ctx, c, id); err != nil {
		return err
	}
	return s.acts.MayReadTrial(ctx, c, id)
}

// readsTrial refuses callers that may not read the trial of the path.
func (s *Server) readsTrial(r *http.Request, c *Caller) error {
	return s.mayReadTrial(r.Context(), c, r.PathValue("id"))
}

// readsFromHere refuses them, too, and pages of other sites before it looks for the trial.
func (s *Server) readsFromHere(r *http.Request, c *Caller) error {
	if err := s.sameOrigin(r); err != nil {
		return err
	}
	return s.readsTrial(r, c)
}

// managesTrial refuses callers that may not cancel or resume it.
func (s *Server) managesTrial(r *http.Request, c *Caller) error {
	if err := s.isTrial(r.Context(), c, r.PathValue("id")); err != nil {
		return err
	}
	return s.acts.MayManage(r.Context(), c, r.PathValue("id"))
}

// isTrial returns an error for an id that no trial has. A stranger gets the same error for a missing and for a private
// trial. It reads no record, because thousands may begin to watch at once.
func (s *Server) isTrial(ctx context.Context, c *Caller, id string) error {
	_, err := s.scheduler.Entry(ctx, id)
	if !errors.Is(err, trial.ErrUnknown) {
		return err
	}
	if c.Stranger() {
		return acts.NotPublic()
	}
	return fmt.Errorf("%w: the log has no trial %q", api.ErrNotFound, id)
}

// entryFor returns a submission as the caller may see it. Why it was broken off or cancelled, by whom, and who has taken it is for callers
// that are concerned with it: the reason may describe this machine, so it is not public.
func entryFor(c *Caller, e *schedule.Entry) api.Submission {
	out := e.Described()
	if !acts.ReadsEverything(c) && !acts.IsSubmitter(c, e.Submitter) {
		out.Reason, out.CancelledBy, out.Taken = "", "", nil
	}
	return out
}

// caseFrom makes a case from one kind of evidence. refusedEvidence says what its errors mean.
func (s *Server) caseFrom(ctx context.Context, c *Caller, n *api.NewSubmission) (*subject.Case, error) {
	kinds := 0
	for _, there := range []bool{n.Conversation != nil, n.Records != nil, n.ChainID != "", n.Recorded != ""} {
		if there {
			kinds++
		}
	}
	switch {
	case kinds != 1:
		return nil, fmt.Errorf("%w: want one of conversation, records, chainId and recorded", api.ErrInvalid)
	case n.Conversation == nil && n.Format != "":
		return nil, fmt.Errorf("%w: format goes with a conversation", api.ErrInvalid)
	case n.Conversation != nil:
		form, err := subject.ParseForm(n.Format)
		if err != nil {
			return nil, fmt.Errorf("%w: format: %w", api.ErrInvalid, err)
		}
		return subject.NewAs(form, n.AgentCard, n.Conversation)
	}
	file := []byte(n.Records) // in whatever spelling the caller's JSON library wrote
	var err error
	if n.Records == nil {
		file, err = s.chainFile(ctx, c, cmp.Or(n.ChainID, n.Recorded), n.Recorded != "")
	}
	if err != nil {
		return nil, err
	}
	trusted, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	on, _, err := subject.ReadSealed(bytes.NewReader(file), verify.Options{Trust: trusted}, n.AgentCard)
	return on, err
}

// formID returns a record id made of the form's key and evidence: sending a form twice, as by a double click, creates one trial.
func formID(r *http.Request, submitter string, on *subject.Case) string {
	key := r.PostFormValue("key")
	if key == "" || len(key) > acts.MaxKey {
		return ""
	}
	return evidence.RecordIDFor(key, "jurat form", submitter, key, on.Digest().String())
}

// formCase reads the case in a form: an example, the two documents, or records.
func (s *Server) formCase(r *http.Request, c *Caller) (*subject.Case, error) {
	if name := r.PostFormValue("example"); name != "" {
		return exampleCase(name)
	}
	var n api.NewSubmission
	for name, member := range map[string]*[]byte{"card": (*[]byte)(&n.AgentCard), "conversation": (*[]byte)(&n.Conversation), "bundle": (*[]byte)(&n.Records)} {
		content, err := upload(r, name)
		if err != nil {
			return nil, err
		}
		if len(content) > 0 {
			*member = content
		}
	}
	if n.AgentCard == nil && n.Conversation == nil && n.Records == nil {
		return nil, fmt.Errorf("%w: no file was chosen: give agent-card.json and conversation.json, or sealed records of an agent", api.ErrInvalid)
	}
	return s.caseFrom(r.Context(), c, &n)
}

// upload reads one file of a form; nil if none was chosen.
func upload(r *http.Request, name string) ([]byte, error) {
	file, _, err := r.FormFile(name)
	if errors.Is(err, http.ErrMissingFile) || errors.Is(err, http.ErrNotMultipart) {
		return nil, nil
	}
	if err != nil {
		return nil, malformed(err)
	}
	defer file.Close()
	content, err := io.ReadAll(shallowReader(file))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, malformed(err))
	}
	return content, memoryAccountOf(r.Context()).Take(r.Context(), max((bodyFactor-4)*int64(len(content)), valueSize*int64(evidence.Values(content))))
}

func exampleCase(name string) (*subject.Case, error) {
	card, conversation, err := examples.Read(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return subject.New(card, conversation)
}

func refusedEvidence(err error) error {
	if at, is := errors.AsType[*subject.Error](err); is {
		p := api.NewProblem(fmt.Errorf("%w: %w", api.ErrInvalid, err))
		p.Field, p.Hint = memberOf(at), "nothing was recorded"
		return p
	}
	for _, refused := range []error{subject.ErrRefuted, subject.ErrTrial, subject.ErrNoActs, subject.ErrTooMuch, verify.ErrNotOurs} {
		if errors.Is(err, refused) {
			return fmt.Errorf("%w: records: %w", api.ErrInvalid, err)
		}
	}
	return err
}

func memberOf(e *subject.Error) string {
	switch e.File {
	case subject.CardFile:
		return "/agentCard" + e.Pointer
	case subject.ConversationFile:
		return "/conversation" + e.Pointer
	}
	return e.Pointer
}

func (s *Server) judgeSocket(w http.ResponseWriter, r *http.Request, c *Caller) error {
	return s.stream(w, r, c, r.URL.Query().Get("after"), s.live.WebSocket)
}

func (s *Server) judgeEvents(w http.ResponseWriter, r *http.Request, c *Caller) error {
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	return s.stream(w, r, c, after, s.live.Events)
}

func (s *Server) stream(w http.ResponseWriter, r *http.Request, c *Caller, after string,
	tell func(http.ResponseWriter, *http.Request, schedule.Watch) error) error {
	id := r.PathValue("id")
	seq, err := seqOf(after)
	if err != nil {
		return err
	}
	may, err := s.mayStill(r.Context(), c, id)
	if err != nil {
		return err
	}
	r, end := s.live.While(r, may)
	defer end()
	s.streaming.Add(1)
	defer s.streaming.Done()
	return tell(w, r, func(ctx context.Context) (*schedule.Watching, error) { return s.scheduler.Watch(ctx, id, seq) })
}

// mayStill returns a check whether the caller may still read the trial: a token can end, and a trial can become private.
func (s *Server) mayStill(ctx context.Context, c *Caller, id string) (func(context.Context) error, error) {
	own, err := s.acts.Submitted(ctx, c, id)
	if err != nil {
		return nil, err
	}
	own = own || acts.ReadsEverything(c)
	return func(ctx context.Context) error {
		if !c.Stranger() {
			if err := s.stillGranted(ctx, c); own || err != nil {
				return err
			}
		}
		public, err := s.access.Public(ctx, access.What{Chain: id})
		if err == nil && !public {
			return schedule.ErrBarred
		}
		return err
	}, nil
}

func (s *Server) stillGranted(ctx context.Context, c *Caller) error {
	_, err := s.access.Who(ctx, c.token)
	if errors.Is(err, access.ErrExpired) || errors.Is(err, access.ErrRevoked) {
		return schedule.ErrBarred
	}
	return err
}

// sameOrigin refuses connections from pages of other sites. Browsers would send our cookies and let those pages read
// the answers. A client that is not a browser sends no origin.
func (s *Server) sameOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(s.config.Origins, origin) {
		return nil
	}
	if from, err := url.Parse(origin); err == nil && from.Host != "" && strings.EqualFold(from.Host, r.Host) {
		return nil
	}
	return fmt.Errorf("%w: the page that connects is of %q", api.ErrCrossOrigin, origin)
}
