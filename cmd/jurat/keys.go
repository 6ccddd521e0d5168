package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/keyring"
)

type keysCmd struct {
	List keysListCmd `cmd:"" default:"withargs" help:"List every key of this installation."`
	New  keysNewCmd  `cmd:"" help:"Make the key of an actor who has none yet, or its second."`
}

type keysListCmd struct {
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// keyLine is a key as it is listed: everything but the private half.
type keyLine struct {
	Role      evidence.Role      `json:"role"`
	Name      string             `json:"name"`
	Algorithm evidence.Algorithm `json:"alg"`
	KeyID     evidence.KeyID     `json:"key_id"`
	Created   string             `json:"created"`
}

func lineOf(k *keyring.Key) keyLine {
	return keyLine{Role: k.Role, Name: k.Name, Algorithm: k.Algorithm, KeyID: k.KeyID, Created: k.Created.Format("2006-01-02T15:04:05Z")}
}

// Run lists keys.
func (c *keysListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		keys, err := i.Keys.Keys()
		if err != nil {
			return err
		}
		lines := []keyLine{}
		for _, k := range keys {
			lines = append(lines, lineOf(k))
		}
		return printKeys(io, c.JSON, lines)
	})
}

func printKeys(io stdio, asJSON bool, lines []keyLine) error {
	if asJSON {
		doc, err := json.Marshal(lines, jsontext.Multiline(true), jsontext.WithIndent("  "))
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(io.out, "%s\n", doc)
		return err
	}
	p := newPage(io.out)
	for _, k := range lines {
		p.line("%-10s %-9s %s  %s  %s", k.Role, k.Algorithm, k.KeyID, k.Created, inert(k.Name))
	}
	return p.err
}

type keysNewCmd struct {
	Role evidence.Role      `arg:"" help:"agent, reviewer, submitter, juror, judge or clerk." enum:"agent,reviewer,submitter,juror,judge,clerk"`
	Name string             `arg:"" help:"The actor's name, as in agent_id or reviewer_id."`
	Alg  evidence.Algorithm `help:"ES256, RS256 or Ed25519; or ML-DSA-65, the second key that the actor signs with beside one of these." default:"ES256" enum:"ES256,RS256,Ed25519,ML-DSA-65"`
}

// Run makes a key.
func (c *keysNewCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.withNew(ctx, io, keyFlags{}, func(i *installation.Installation) error {
		key, err := i.Keys.Create(c.Role, c.Name, c.Alg)
		if errors.Is(err, keyring.ErrExists) {
			return hint(err, "'jurat keys list' shows it")
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(io.out, key.KeyID)
		return err
	})
}
