package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"jurat/evidence"
	"jurat/internal/acts"
	"jurat/internal/installation"
)

type sealCmd struct {
	File       string   `arg:"" optional:"" default:"-" help:"A payload in JSON, or a record that its owner has signed; - is standard input."`
	Signatures []string `name:"signature" placeholder:"FILE" help:"The owner's signature over FILE, which is canonical. Repeat it for a second one."`
	signFlags
	keyFlags
	stampFlags
	Apart    []string `help:"Seal this field apart: prompt, or /metadata/user_id. Only now: later it cannot be. May be given several times." placeholder:"POINTER" sep:"none"`
	Provable []string `help:"Seal this field apart so that 'jurat prove' can show properties of its value: /metadata/amount=decimal:2. May be given several times." placeholder:"POINTER=KIND" sep:"none"`
}

// Run seals one payload.
func (c *sealCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.SignOnly {
		return c.sign(ctx, io)
	}
	if len(c.Key)+len(c.Token)+len(c.Public) > 0 || c.Prepare {
		return hint(errors.New("--key, --token, --prepare and --public go with --sign-only"), "what an installation seals is signed with the keys that it has")
	}
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	if len(c.Signatures) > 0 || evidence.BeginsAsRecord(doc) {
		if len(c.Apart)+len(c.Provable) > 0 {
			return hint(errors.New("--apart, --provable: what its owner has signed stays as it is; the owner seals apart before signing"),
				"'jurat seal --sign-only' takes the same flags")
		}
		return c.accept(ctx, a, io, doc)
	}
	draft, err := evidence.ParseDraft(doc)
	if err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "'docs/format.md' lists the fields; nothing was recorded")
	}
	if err := acts.Sealable(&draft.Payload); err != nil {
		return hint(fmt.Errorf("refusing payload: %w", err), "acts of a trial are sealed by 'jurat trial' alone")
	}
	pointers, err := readPointers("--apart", c.Apart)
	if err != nil {
		return err
	}
	provable, err := readProvable(c.Provable)
	if err != nil {
		return err
	}
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		done, err := actsOn(i).Seal(ctx, acts.Order{By: acts.Operator, Apart: pointers, Provable: provable}, draft)
		if err != nil {
			return actHint(err)
		}
		if !done.Bound {
			fmt.Fprintf(io.err, "jurat: hint: the %s is not bound to what it is about: this log has no record %q\n",
				draft.ActionType, draft.OriginalResponseID)
		}
		return printSealed(ctx, io, i, done)
	})
}

// actsOn are the acts on an installation's log.
func actsOn(i *installation.Installation) *acts.Acts {
	return acts.New(acts.Config{Ledger: i.Ledger, Keys: i.Keys, Disclose: i.Apart.Disclose, Now: time.Now})
}

func printSealed(ctx context.Context, io stdio, i *installation.Installation, done *acts.Done) error {
	catchUp(ctx, io, i)
	proved, err := i.Ledger.ProveOne(ctx, done.Record)
	if err != nil {
		return err
	}
	id := done.Record.Payload.RecordID
	if done.Before {
		fmt.Fprintf(io.err, "jurat: hint: record %s was in the log already; nothing was added\n", id)
	}
	return hint(io.print(proved), "record %s is in the log; 'jurat log prove %s' prints it", id, id)
}
