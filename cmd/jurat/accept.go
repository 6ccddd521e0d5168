package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger"
)

// accept takes in what its owner has signed.
func (c *sealCmd) accept(ctx context.Context, a *app, io stdio, doc []byte) error {
	signed, err := c.signed(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing record: %w", err), "'jurat seal --sign-only' makes what is taken in here; nothing was recorded")
	}
	if err := acts.Acceptable(&signed.Payload); err != nil {
		return fmt.Errorf("refusing record: %w", err)
	}
	return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error {
		done, err := actsOn(i).Accept(ctx, acts.Operator, signed)
		if err != nil {
			return actHint(err)
		}
		p := &signed.Payload
		switch {
		case !done.Bound:
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: this log has no record %q\n", p.ActionType, p.OriginalResponseID)
		case !done.Names.IsZero():
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: it is signed without the digest of record %q in saw, which is %s\n",
				p.ActionType, p.OriginalResponseID, done.Names)
		}
		return printSealed(ctx, io, i, done)
	})
}

// signed reads a record file, or puts together a payload and signatures from files of their own.
func (c *sealCmd) signed(doc []byte) (*evidence.Record, error) {
	if len(c.Signatures) == 0 {
		r, _, err := evidence.Read(doc)
		return r, err
	}
	var signatures [][]byte
	for _, file := range c.Signatures {
		signature, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		signatures = append(signatures, signature)
	}
	return client.Assemble(doc, signatures...)
}

// actHint says what can be done where an act is refused.
func actHint(err error) error {
	var duplicate *ledger.DuplicateError
	var field *evidence.FieldError
	switch {
	case errors.As(err, &duplicate):
		return hint(err, "'jurat log prove %s' prints the one in the log; what is new needs a record_id of its own", duplicate.RecordID)
	case errors.As(err, &field) && field.Field == "saw":
		return hint(fmt.Errorf("refusing payload: %w", err), "a sealed record has its digest in the member 'digest'; nothing was recorded")
	case errors.As(err, &field):
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields, 'jurat apart' what is always sealed apart; nothing was recorded")
	}
	return keyHint(err)
}

// keyHint says what can be done where a key stands in the way.
func keyHint(err error) error {
	const prepared = "sign it with 'jurat seal --sign-only --key FILE' where the key is, and seal what that prints"
	switch {
	case errors.Is(err, keys.ErrOwner):
		return hint(err, prepared)
	case errors.Is(err, keys.ErrNoKey):
		return hint(err, "'jurat keys rotate ROLE NAME' makes another; 'jurat keys list' shows what became of the old one")
	case errors.Is(err, keys.ErrEnded), errors.Is(err, keys.ErrIncomplete), errors.Is(err, keys.ErrForeign):
		return hint(err, "'jurat keys list' shows whose keys sign, and which together; nothing was recorded")
	case errors.Is(err, keys.ErrLost):
		return hint(err, "restore it from a backup of the data folder, or make another with 'jurat keys rotate ROLE NAME'")
	}
	return err
}
