package server

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/court/acts"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/log/access"
	"jurat/internal/log/ledger/brief"
	"jurat/internal/web/find"
	"jurat/internal/web/openssl"
	"jurat/internal/web/pages"
	"jurat/internal/web/words"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// nextParameter is the page to open after signing in.
var nextParameter = Parameter{"next", "a path of this server to go to after signing in"}

const languageCookie = "lang"

// page answers with a page, and with the status that it asks for.
func (s *Server) page(w http.ResponseWriter, r *http.Request, c *Caller, p pages.Page) error {
	var doc bytes.Buffer
	if err := pages.Write(&doc, s.frame(w, r, c), p); err != nil {
		return err
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Add("Vary", "Accept-Language, Cookie")
	comeAgain(w.Header(), pages.Status(p))
	return writeDoc(w, r, pages.Status(p), "text/html; charset=utf-8", doc.Bytes())
}

// A form is a page that can say why what it sent was refused.
type form interface {
	pages.Page
	Refuse(*api.Problem)
}

func (s *Server) frame(w http.ResponseWriter, r *http.Request, c *Caller) pages.Frame {
	f := pages.Frame{Lang: s.language(r), Path: r.URL.RequestURI()}
	if chosen := r.URL.Query().Get(languageParameter.Name); chosen != "" && chosen == string(f.Lang) {
		http.SetCookie(w, &http.Cookie{Name: languageCookie, Value: chosen, Path: "/", MaxAge: int((365 * 24 * time.Hour).Seconds()), HttpOnly: true,
			Secure: s.config.Secure, SameSite: http.SameSiteStrictMode})
	}
	if changes(r) { // the answer to a form cannot be requested again by its address
		f.Path = r.URL.Path
	}
	if !c.Stranger() {
		f.Viewer = &pages.Viewer{Name: c.Name(), Form: c.FormKey(), Submits: c.Has(access.Submitter) || c.Has(access.Operator), Reviews: c.Has(access.Reviewer), Oversees: Overseers.admits(c), Operates: c.Has(access.Operator)}
	}
	return f
}

// language returns the chosen language, or else the one that the browser prefers.
func (s *Server) language(r *http.Request) words.Lang {
	accept, chosen := r.Header.Get("Accept-Language"), r.URL.Query().Get(languageParameter.Name)
	if chosen != "" && string(pages.Choose(chosen, "")) == chosen {
		return words.Lang(chosen)
	}
	if kept, err := r.Cookie(languageCookie); err == nil {
		return pages.Choose(kept.Value, accept)
	}
	return pages.Choose("", accept)
}

// signInPage asks for a token, or for one click if the visitor came by a link.
func (s *Server) signInPage(r *http.Request, c *Caller) (*pages.SignIn, error) {
	q := r.URL.Query()
	return s.signInForm(c, pages.SignIn{Link: q.Get("link"), Next: q.Get("next")}), nil
}

func (s *Server) signInForm(c *Caller, p pages.SignIn) *pages.SignIn {
	p.Form = c.FormKey()
	if s.config.Provider != nil {
		p.Provider = s.config.Provider.Issuer()
		p.OpenID = "/sign-in/provider?" + url.Values{"next": {ownPath(p.Next)}}.Encode()
	}
	return &p
}

// refusePage shows a person why a request failed. Who is not signed in gets the sign-in form if that may help.
func (s *Server) refusePage(w http.ResponseWriter, r *http.Request, c *Caller, p *api.Problem) {
	detail := p.Detail // the detail begins with the title's text
	if p.Hint != "" {
		detail += "\n" + p.Hint
	}
	var page pages.Page = &pages.Trouble{Code: p.Status, Detail: detail}
	if p.Status == http.StatusUnauthorized {
		page = s.signInForm(c, pages.SignIn{Refusal: pages.Refusal{Code: p.Status, Problem: detail}, Next: nextOf(r)})
	}
	if err := s.page(w, r, c, page); err != nil {
		s.config.Log.Error("writing a page of what is wrong", "error", err)
		w.WriteHeader(p.Status)
	}
}

func nextOf(r *http.Request) string {
	switch {
	case r.URL.Path == "/sign-in":
		return ownPath(r.PostForm.Get("next"))
	case changes(r):
		return "/"
	}
	return r.URL.RequestURI()
}

func asset(r *http.Request, _ *Caller) (*file, error) {
	content, media, found := pages.Asset(pages.AssetPrefix + r.PathValue("name"))
	if !found {
		return nil, fmt.Errorf("%w: there is no file of this name", api.ErrNotFound)
	}
	return &file{media: media, cache: "public, " + forEver, doc: content}, nil
}

type elsewhere string

func pageAt(path ...string) elsewhere {
	for i := range path {
		path[i] = url.PathEscape(path[i])
	}
	return elsewhere("/" + strings.Join(path, "/"))
}

// maxVerified is the longest chain that is verified whole to show one of its records; of a longer one, only the record is.
const maxVerified = 2000

// recordPage shows one record. The path may also have its digest, as records name each other.
func (s *Server) recordPage(r *http.Request, c *Caller) (pages.Page, error) {
	if strings.HasPrefix(r.PathValue("id"), "sha256:") {
		return s.byDigest(r, c)
	}
	record, err := s.provedRecord(r, c)
	if err != nil {
		return nil, err
	}
	report, belongs, whole, err := s.reportOn(r.Context(), c, record)
	if err != nil {
		return nil, err
	}
	page := pages.NewSealed(record, report, s.site())
	if len(whole) > 0 {
		page.Tried(whole[0])
	}
	if belongs != nil {
		page.Belongs(len(belongs.Indexes), belongs.Cut != nil)
	}
	return page, nil
}

// site is the address under which others reach the pages; "": the server knows none.
func (s *Server) site() words.Site {
	if len(s.config.Origins) == 0 {
		return ""
	}
	return words.Site(s.config.Origins[0])
}

func (s *Server) byDigest(r *http.Request, c *Caller) (pages.Page, error) {
	digest, err := evidence.ParseDigest(r.PathValue("id"))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrNotFound, err)
	}
	record, err := s.config.Installation.Ledger.RecordByDigest(r.Context(), digest)
	if record, err = s.named(r.Context(), c, "digest", record, err); err != nil {
		return nil, err
	}
	return pageAt("records", record.Payload.RecordID), nil
}

// provedRecord returns a record with its proofs, and with the disclosures that the caller may see.
func (s *Server) provedRecord(r *http.Request, c *Caller) (*evidence.Record, error) {
	record, err := s.disclosed(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return s.config.Installation.Ledger.ProveOne(r.Context(), record)
}

// reportOn verifies a record by this installation's own trust. If the caller may read its chain, it verifies all that
// belongs to the record, because alone it proves less, and returns that as well; otherwise it returns nil for it. whole
// are the records that were verified together.
func (s *Server) reportOn(ctx context.Context, c *Caller, record *evidence.Record) (report *verify.Report, belongs *brief.Gathered, whole []*evidence.Record, err error) {
	g, err := s.gather(ctx, c, record.Payload.RecordID, s.config.Installation.Ledger.Briefs().GatherRecord)
	if err == nil && len(g.Indexes) <= maxVerified && (len(g.Indexes) > 1 || record.Payload.ChainID != "") {
		if whole, err = s.readableCase(ctx, c, g); err == nil {
			report, whole, err = s.verified(ctx, whole)
			return report, g, whole, err
		}
	}
	if err != nil && problemOf(err).Status >= http.StatusInternalServerError {
		return nil, nil, nil, err
	}
	trusted, err := s.config.Installation.Trust(ctx)
	return verify.Record(record, verify.Options{Trust: trusted}), g, nil, err
}

// verified adds proofs to a chain and verifies it by this installation's own trust.
func (s *Server) verified(ctx context.Context, chain []*evidence.Record) (*verify.Report, []*evidence.Record, error) {
	bundle, err := s.config.Installation.Ledger.Prove(ctx, chain...)
	if err != nil {
		return nil, nil, err
	}
	trusted, err := s.config.Installation.Trust(ctx)
	return verify.Bundle(bundle, verify.Options{Trust: trusted}), bundle.Records, err
}

func (s *Server) chainPage(r *http.Request, c *Caller) (*pages.Chain, error) {
	id := r.PathValue("chain_id")
	page, err := pageNumber(r)
	if err != nil {
		return nil, err
	}
	g, err := s.gather(r.Context(), c, id, s.config.Installation.Ledger.Briefs().Gather)
	if err != nil {
		return nil, unnamed(err)
	}
	chain, err := s.readableCase(r.Context(), c, g)
	if err != nil {
		return nil, unnamed(err)
	}
	report, records, err := s.verified(r.Context(), chain)
	if err != nil {
		return nil, err
	}
	shown := pages.NewChain(id, records, report, int(page))
	shown.Cut = g.Cut != nil
	return shown, nil
}

// recordBundle sends a record as a case file, with all that belongs to it. Without its chain the file would be
// refuted, because the log counts the missing records.
func (s *Server) recordBundle(w http.ResponseWriter, r *http.Request, c *Caller) error {
	record, err := s.readable(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return err
	}
	g, err := s.gather(r.Context(), c, record.Payload.RecordID, s.config.Installation.Ledger.Briefs().GatherRecord)
	if err != nil {
		return err
	}
	return s.sendCase(w, r, c, g, record.Payload.RecordID+".jurat")
}

func (s *Server) recordOpenSSL(r *http.Request, c *Caller) (*file, error) {
	record, err := s.provedRecord(r, c)
	if err != nil {
		return nil, err
	}
	trusted, err := s.config.Installation.Trust(r.Context())
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	_, err = openssl.Write([]*evidence.Record{record}, trusted, func(name string, content []byte) error {
		header := &zip.FileHeader{Name: name, Method: zip.Deflate}
		header.SetMode(0o644)
		if name == openssl.Script {
			header.SetMode(0o755)
		}
		out, err := archive.CreateHeader(header)
		if err != nil {
			return err
		}
		_, err = out.Write(content)
		return err
	})
	err = errors.Join(err, archive.Close())
	return &file{media: "application/zip", name: record.Payload.RecordID + ".zip", doc: packed.Bytes()}, err
}

// attach makes browsers save an answer under a name, which must have no characters that need quoting.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", name))
}

const trialsPerPage = 20

func (s *Server) home(r *http.Request, c *Caller) (*pages.Home, error) {
	h := &pages.Home{Hidden: c.Stranger(), Key: rand.Text()}
	if !c.Stranger() {
		entries, more, err := s.scheduler.Entries(r.Context(), r.URL.Query().Get("before"), trialsPerPage, s.visible(c))
		if errors.Is(err, trial.ErrUnknown) {
			return nil, fmt.Errorf("%w: before: not one of the listed trials", api.ErrMalformed)
		}
		if err != nil {
			return nil, err
		}
		h.Trials = briefs(entries)
		if more {
			h.Older = "/?" + url.Values{"before": {entries[len(entries)-1].ID}}.Encode()
		}
	}
	h.Panel, h.Rules = whoSits(s.config.Seats)
	for _, name := range examples.Names() {
		on, err := exampleCase(name)
		if err != nil {
			return nil, err
		}
		h.Examples = append(h.Examples, pages.Example{ID: name, Agent: on.Card.Name})
	}
	return h, nil
}

// whoSits returns the models in the seats, and whether rules fill all seats.
func whoSits(seats []jury.Seat) (models []string, rules bool) {
	for _, seat := range seats {
		if seat.Provider != jury.Offline {
			models = append(models, seat.Model)
		}
	}
	return models, len(seats) > 0 && len(models) == 0
}

func (s *Server) courtPage(r *http.Request, c *Caller) (*pages.Court, error) {
	id := r.PathValue("id")
	// The state is read before the records: otherwise a page could call a trial over without showing its end.
	e, err := s.scheduler.Entry(r.Context(), id)
	if err != nil {
		return nil, err
	}
	court, err := s.courtOf(r, c, id)
	if err != nil {
		return nil, err
	}
	if court.State != api.Over {
		if court.State = e.State; court.State == api.Over { // it has ended meanwhile, in another process
			court.State = api.UnderWay
		}
		court.Events = "/v1/submissions/" + url.PathEscape(id) + "/events?after=" + fmt.Sprint(court.Acts)
		told := entryFor(c, &e)
		court.Ahead, court.Reason, court.By, court.Next = e.Ahead, told.Reason, told.CancelledBy, e.Next
		may := acts.Manages(c, e.Submitter)
		court.Resume = may && (court.State == api.BrokenOff || court.State == api.Cancelled)
		court.Cancel = may && e.Cancelled == nil && !e.Over
	}
	court.Proof, err = s.proofOf(r.Context())
	return court, err
}

// proofOf says what the proof of a trial on this server rests on, by the trust file that the server gives out.
func (s *Server) proofOf(ctx context.Context) (*pages.Proof, error) {
	trusted, err := s.config.Installation.Trust(ctx)
	if err != nil {
		return nil, err
	}
	p := &pages.Proof{Witnesses: len(trusted.Witnesses), Quorum: trusted.Quorum}
	for i := range trusted.Authorities {
		if trusted.Authorities[i].Clock == trust.Independent {
			p.Clocks++
		}
	}
	return p, nil
}

// courtOf returns the courtroom, or with ?after= only what is new since that record. New parts come from the read
// model that all watchers share, in a time that does not grow with the trial.
func (s *Server) courtOf(r *http.Request, c *Caller, id string) (court *pages.Court, err error) {
	if after, err := strconv.Atoi(r.URL.Query().Get("after")); err == nil {
		err := s.scheduler.Look(r.Context(), id, func(v *trial.View) { court = pages.NewNews(v, after) })
		if court != nil || err != nil {
			return court, err
		}
	}
	return s.wholeCourt(r.Context(), c, id)
}

func (s *Server) submitForm(r *http.Request, c *Caller) (elsewhere, error) {
	on, err := s.formCase(r, c)
	return s.begin(r, c, on, err)
}

// begin takes a submission from a form, and leads to its courtroom. err says why the case could not be read.
func (s *Server) begin(r *http.Request, c *Caller, on *subject.Case, err error) (elsewhere, error) {
	id := ""
	if err == nil {
		id, err = s.scheduler.SubmitOnce(r.Context(), schedule.Order{ID: formID(r, c.Name(), on), Submitter: c.Name(), Case: on})
	}
	return pageAt("submissions", id), refusedEvidence(err)
}

func (s *Server) stopByForm(r *http.Request, c *Caller) (string, error) {
	return s.cancel(r, c, &api.Cancellation{Reason: r.PostFormValue("reason")})
}

func (s *Server) wholeCourt(ctx context.Context, c *Caller, id string) (*pages.Court, error) {
	records, err := s.readableChain(ctx, c, id, true)
	if err != nil {
		return nil, err
	}
	return pages.NewCourt(records)
}

func (s *Server) messagePage(r *http.Request, c *Caller) (*pages.Whole, error) {
	court, err := s.wholeCourt(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(r.PathValue("number"))
	var page *pages.Whole
	if err == nil {
		page = court.WholeMessage(number)
	}
	if page == nil {
		return nil, fmt.Errorf("%w: the conversation of this trial shows %d messages, and none has this number", api.ErrNotFound, len(court.Messages))
	}
	return page, nil
}

func (s *Server) mentionsPage(r *http.Request, c *Caller) (*pages.Mentions, error) {
	court, err := s.wholeCourt(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	page := &pages.Mentions{Trial: r.PathValue("id"), Query: r.URL.Query().Get("find")}
	query := find.Fold(page.Query)
	if query == "" {
		page.Refusal = pages.Refusal{Code: http.StatusBadRequest, Problem: "find: give what to look for"}
		return page, nil
	}
	page.Find(court, func(text string) (string, bool) { return find.Excerpt(text, query) })
	return page, nil
}

func (s *Server) memberPage(r *http.Request, c *Caller) (*pages.Whole, error) {
	record, err := s.disclosed(r.Context(), c, r.PathValue("id"))
	if err != nil {
		return nil, err
	}
	page := pages.WholeMember(record, r.URL.Query().Get("name"))
	if page == nil {
		return nil, fmt.Errorf("%w: name: the record's payload has no member of this name", api.ErrNotFound)
	}
	return page, nil
}
