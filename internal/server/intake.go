package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"jurat/api"
	"jurat/evidence"
	"jurat/examples"
	"jurat/internal/acts"
	"jurat/internal/subject"
	"jurat/verify"
	"jurat/verify/trust"
)

// evidenceSources are where evidence comes from that is not in the request.
type evidenceSources struct {
	Trust func(context.Context) (*trust.Trust, error)          // by which records are verified
	Chain func(ctx context.Context, id string) ([]byte, error) // a chain of the log as a bundle, if the caller may read it
	// Recorded returns a chain that recorders sealed as a bundle, if the caller may read it, with the texts that are sealed apart that the
	// caller may see.
	Recorded func(ctx context.Context, chain string) ([]byte, error)
}

// caseFrom makes a case from one kind of evidence. refusedEvidence says what its errors mean.
func caseFrom(ctx context.Context, n *api.NewSubmission, from evidenceSources) (*subject.Case, error) {
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
	switch {
	case n.ChainID != "":
		file, err = from.Chain(ctx, n.ChainID)
	case n.Recorded != "":
		file, err = from.Recorded(ctx, n.Recorded)
	}
	if err != nil {
		return nil, err
	}
	trusted, err := from.Trust(ctx)
	if err != nil {
		return nil, err
	}
	on, _, err := subject.ReadSealed(bytes.NewReader(file), verify.Options{Trust: trusted}, n.AgentCard)
	return on, err
}

// formID returns a record id derived from the form's key. Sending a form twice, as by a double click, creates one
// trial. Other evidence in the same form creates another.
func formID(r *http.Request, submitter string, on *subject.Case) string {
	key := r.PostFormValue("key")
	if key == "" || len(key) > acts.MaxKey {
		return ""
	}
	return evidence.RecordIDFor(key, "jurat form", submitter, key, on.Digest().String())
}

// formCase reads the case in a form: an example, the two documents, or records.
func formCase(r *http.Request, from evidenceSources) (*subject.Case, error) {
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
	return caseFrom(r.Context(), &n, from)
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

// exampleCase returns one of the examples as a case.
func exampleCase(name string) (*subject.Case, error) {
	card, conversation, err := examples.Read(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", api.ErrInvalid, err)
	}
	return subject.New(card, conversation)
}

// refusedEvidence says what is wrong with evidence, and where.
func refusedEvidence(err error) error {
	var at *subject.Error
	if errors.As(err, &at) {
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

// memberOf returns the member of a submission's body that an error is about.
func memberOf(e *subject.Error) string {
	switch e.File {
	case subject.CardFile:
		return "/agentCard" + e.Pointer
	case subject.ConversationFile:
		return "/conversation" + e.Pointer
	}
	return e.Pointer
}
