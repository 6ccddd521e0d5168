package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/reconcile"
	tally "jurat/verify/counted"
)

// seal seals what a comparison found, as an act of the operator: the recorder did not see the provider's account. It returns the record's id.
func (c *recordReconcileCmd) seal(ctx context.Context, i *installation.Installation, e *reconcile.Export, text []byte, calls *logged, r *reconciled) (string, error) {
	why, err := (&whyFlags{By: c.By}).why()
	if err != nil {
		return "", err
	}
	body := r.Statement(e, len(text))
	body.By, body.KeyHeld = why.By, c.KeyHeld
	body.Scope.Agent, body.Scope.Origin, body.Scope.Size = c.Agent, strings.TrimSuffix(c.Origin, "/"), calls.size
	body.Scope.SlackMS = (c.Slack + time.Millisecond - 1).Milliseconds()
	scope, err := tally.ScopeOf(body.Scope)
	if err != nil {
		return "", fmt.Errorf("--seal: the time of the comparison: %w", err)
	}
	if err := nothingExpired(ctx, i, r.From.Add(-c.Slack)); err != nil {
		return "", err
	}
	var sum tally.Sum
	for n := range calls.counted {
		if scope.Has(&calls.counted[n]) {
			sum.Add(&calls.counted[n])
		}
	}
	body.Calls = sum.Calls()
	var file jsontext.Value
	if c.Keep {
		if file, err = kept(text); err != nil {
			return "", err
		}
	}
	record, err := actsOn(i).Compared(ctx, body, file)
	if err != nil {
		return "", fmt.Errorf("--seal: %w", err)
	}
	return record.Payload.RecordID, nil
}

// kept is the file as a member of an act.
func kept(text []byte) (jsontext.Value, error) {
	if !utf8.Valid(text) {
		return nil, hint(errors.New("--keep-file: the file is not UTF-8"), "leave --keep-file out: the act has the file's digest; keep the file yourself")
	}
	return jsontext.AppendQuote(nil, text)
}

// nothingExpired returns an error if records that may be of that time were deleted. What they held cannot be counted, and whoever has them could contradict the act.
func nothingExpired(ctx context.Context, i *installation.Installation, since time.Time) error {
	book, err := i.Archivist.Book(ctx)
	if err != nil {
		return err
	}
	for _, e := range book.Expiries {
		before, err := evidence.ParseTime(e.Before)
		if err != nil {
			return fmt.Errorf("act %s: before: %w", e.ID, err)
		}
		if since.Before(before) {
			return hint(fmt.Errorf("--seal: records from before %s were deleted, as their time was over: the calls of this time cannot be counted whole", e.Before), "--from TIME, not before that")
		}
	}
	return nil
}
