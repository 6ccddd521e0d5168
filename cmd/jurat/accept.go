package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/keyhistory"
	"jurat/internal/keyring"
	"jurat/internal/ledger"
)

// accept takes in what its owner has signed.
func (c *sealCmd) accept(ctx context.Context, a *app, io stdio, doc []byte) error {
	signed, err := c.signed(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing record: %w", err), "'jurat sign' makes what is taken in here; nothing was recorded")
	}
	if role := signed.Payload.Role(); !keyhistory.MayOwn(role) {
		return fmt.Errorf("refusing record: field action_type: %s is an act of a %s, whose key is the operator's", signed.Payload.ActionType, role)
	}
	return a.withStampers(ctx, c.TSA, func(i *installation.Installation) error {
		draft, err := evidence.NewDraft(signed.Payload)
		if err != nil {
			return err
		}
		if err := asSet(i, draft); err != nil {
			return err
		}
		if err := bound(ctx, io, i, draft); err != nil {
			return err
		}
		sealed, err := i.Ledger.Accept(ctx, signed)
		var duplicate *ledger.DuplicateError
		if errors.As(err, &duplicate) {
			return hint(err, "'jurat log prove %s' prints the one in the log; what is new needs a record_id of its own", duplicate.RecordID)
		}
		if err != nil {
			return keyHint(err)
		}
		return printSealed(ctx, io, i, sealed)
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

// asSet refuses what is signed with a text in it that is always to be sealed apart of this actor: it would be part of every
// proof, and no erasure could reach it.
func asSet(i *installation.Installation, signed *evidence.Draft) error {
	open, err := i.Apart(signed, nil)
	if err != nil || len(open) == 0 {
		return err
	}
	return hint(fmt.Errorf("refusing record: field %s: of %q it is to be sealed apart ('jurat apart list'), and it is signed as it is", open[0], signed.Actor()),
		"its owner seals it apart before signing, with sealed_apart as 'docs/format.md' has it; nothing was recorded")
}

// bound says where a review that is signed already names nothing by digest, which nobody but its owner can change, and
// refuses it where it names something else than it says.
func bound(ctx context.Context, io stdio, i *installation.Installation, signed *evidence.Draft) error {
	as, err := bind(ctx, io, i, signed)
	if err == nil && len(as.Saw) > len(signed.Saw) {
		fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: it is signed without the digest of record %q in saw, which is %s\n",
			signed.ActionType, signed.OriginalResponseID, as.Saw[0])
	}
	return err
}

// keyHint says what can be done where a key stands in the way.
func keyHint(err error) error {
	const prepared = "sign it with 'jurat sign --key FILE' where the key is, and seal what that prints"
	switch {
	case errors.Is(err, keyring.ErrOwner):
		return hint(err, prepared)
	case errors.Is(err, keyring.ErrNoKey):
		return hint(err, "'jurat keys rotate ROLE NAME' makes another; 'jurat keys list' shows what became of the old one")
	case errors.Is(err, keyhistory.ErrEnded), errors.Is(err, keyhistory.ErrIncomplete), errors.Is(err, keyhistory.ErrForeign):
		return hint(err, "'jurat keys list' shows whose keys sign, and which together; nothing was recorded")
	case errors.Is(err, keyring.ErrLost):
		return hint(err, "restore it from a backup of the data folder, or make another with 'jurat keys rotate ROLE NAME'")
	}
	return err
}
