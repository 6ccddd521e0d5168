package client

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"net/url"

	"github.com/go-json-experiment/json"

	"jurat/api"
	"jurat/evidence"
)

// Submit puts an agent before the jury. It returns when the submission is sealed. The trial starts when its turn
// comes.
func (c *Client) Submit(ctx context.Context, n api.NewSubmission) (*api.Submission, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	return read[api.Submission](c.ask(ctx, http.MethodPost, "/v1/submissions", body))
}

// Submission returns the state of a submission, the votes, and the result so far.
func (c *Client) Submission(ctx context.Context, id string) (*api.Submission, error) {
	return read[api.Submission](c.ask(ctx, http.MethodGet, submissionPath(id, ""), nil))
}

// Cancel stops a trial that has no verdict. The log records the caller and the reason. A juror that was already asked
// still answers.
func (c *Client) Cancel(ctx context.Context, id, reason string) (*api.Submission, error) {
	body, err := json.Marshal(api.Cancellation{Reason: reason})
	if err != nil {
		return nil, err
	}
	return read[api.Submission](c.ask(ctx, http.MethodPost, submissionPath(id, "/cancel"), body))
}

// Resume continues a trial that was broken off or cancelled.
func (c *Client) Resume(ctx context.Context, id string) (*api.Submission, error) {
	return read[api.Submission](c.ask(ctx, http.MethodPost, submissionPath(id, "/resume"), nil))
}

// Submissions iterates over the submissions that the token may see, the newest first. It ends after an error.
func (c *Client) Submissions(ctx context.Context) iter.Seq2[api.Submission, error] {
	return func(yield func(api.Submission, error) bool) {
		for cursor := ""; ; {
			page, err := read[api.Submissions](c.ask(ctx, http.MethodGet, "/v1/submissions?after="+url.QueryEscape(cursor), nil))
			if err != nil {
				yield(api.Submission{}, err)
				return
			}
			for _, s := range page.Submissions {
				if !yield(s, nil) {
					return
				}
			}
			if cursor = page.Next; cursor == "" {
				return
			}
		}
	}
}

// CaseFile reads every record of a trial, proved against one checkpoint. Verify it with your own trust file.
func (c *Client) CaseFile(ctx context.Context, id string) (*evidence.Bundle, error) {
	doc, err := c.ask(ctx, http.MethodGet, submissionPath(id, "/case"), nil)
	if err != nil {
		return nil, err
	}
	return evidence.ParseBundle(doc)
}

func submissionPath(id, rest string) string { return "/v1/submissions/" + url.PathEscape(id) + rest }

// read decodes an answer. It ignores unknown members, which a later server may have added.
func read[T any](doc []byte, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	value := new(T)
	if err := json.Unmarshal(doc, value); err != nil {
		return nil, fmt.Errorf("reading the server's answer: %w", evidence.Steady(err))
	}
	return value, nil
}
