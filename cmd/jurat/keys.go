package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/keys"
)

type keysCmd struct {
	List   keysListCmd   `cmd:"" default:"withargs" help:"List every key of this installation, with who holds it and what became of it."`
	New    keysNewCmd    `cmd:"" help:"Make a key for an actor, or take in the public key of an agent or reviewer who holds the private one."`
	Rotate keysRotateCmd `cmd:"" help:"Put a new key in the place of an actor's present one."`
	Revoke keysRevokeCmd `cmd:"" help:"End a key that others may have signed with, or one that is out of use."`
	Rewrap keysRewrapCmd `cmd:"" help:"Wrap every secret in the database under the first wrapping key of the file, or make such a key."`
}

type keysListCmd struct {
	History bool `help:"What the log says was done to keys, by whom and why."`
	jsonFlag
}

// keyLine is a key as it is listed: everything but the private half.
type keyLine struct {
	Role      evidence.Role      `json:"role"`
	Name      string             `json:"name"`
	Algorithm evidence.Algorithm `json:"alg"`
	KeyID     evidence.KeyID     `json:"key_id"`
	Created   string             `json:"created"`
	Custody   string             `json:"custody"`
	State     string             `json:"state"`
	Token     string             `json:"token,omitempty"` // where the key is, if it is on a token
}

const keyTime = "2006-01-02T15:04:05Z"

// keyLines lists the keys that the log speaks of, and those in files of which it says nothing.
func keyLines(history *keys.History, files []*keys.Held, now time.Time) []keyLine {
	lines := []keyLine{}
	for _, k := range history.Keys() {
		lines = append(lines, keyLine{Role: k.Role, Name: k.Name, Algorithm: k.Algorithm, KeyID: k.KeyID,
			Created: k.From.UTC().Format(keyTime), Custody: k.Custody, State: k.State(now)})
	}
	for _, k := range files {
		if history.Key(k.KeyID) == nil {
			lines = append(lines, keyLine{Role: k.Role, Name: k.Name, Algorithm: k.Algorithm, KeyID: k.KeyID,
				Created: k.Created.UTC().Format(keyTime), Custody: operator.CustodyOperator, State: "active"})
		}
	}
	for n := range lines {
		if held := slices.IndexFunc(files, func(k *keys.Held) bool { return k.KeyID == lines[n].KeyID }); held >= 0 {
			lines[n].Token = files[held].Token
		}
	}
	sort.SliceStable(lines, func(i, j int) bool {
		a, b := &lines[i], &lines[j]
		if order := strings.Compare(string(a.Role)+"\x00"+a.Name, string(b.Role)+"\x00"+b.Name); order != 0 {
			return order < 0
		}
		return a.Created < b.Created
	})
	return lines
}

// Run lists keys.
func (c *keysListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		if c.History {
			return c.history(ctx, i, io)
		}
		history, err := i.Ledger.Keys(ctx)
		if err != nil {
			return err
		}
		files, err := i.Keys.Keys(ctx)
		if err != nil {
			return err
		}
		lines := keyLines(history, files, time.Now())
		if c.JSON {
			return io.json(lines)
		}
		p := newPrinter(io.out)
		t := table{heads: []head{{name: "role"}, {name: "algorithm"}, {name: "key", rank: 1}, {name: "signs since", rank: 4}, {name: "custody", rank: 3}, {name: "state", rank: 2}, {name: "name"}}}
		for _, k := range lines {
			t.row(k.Role, k.Algorithm, k.KeyID, k.Created, k.Custody, k.State, k.Name)
			if k.Token != "" {
				t.below("on a token: "+k.Token, "")
			}
		}
		p.table(&t)
		return p.err
	})
}

// eventLine is a key event as it is printed.
type eventLine struct {
	Record    string                `json:"record_id"`
	Timestamp string                `json:"timestamp"`
	Event     operator.KeyEventBody `json:"event"`
}

// history prints the chain of key events.
func (c *keysListCmd) history(ctx context.Context, i *installation.Installation, io stdio) error {
	events, err := i.Ledger.KeyEvents(ctx)
	if err != nil {
		return err
	}
	lines := []eventLine{}
	for _, e := range events {
		lines = append(lines, eventLine{Record: e.Record.Payload.RecordID, Timestamp: e.Record.Payload.Timestamp, Event: e.Body})
	}
	if c.JSON {
		return io.json(lines)
	}
	p := newPrinter(io.out)
	t := table{heads: []head{{name: "time", rank: 3}, {name: "event"}, {name: "role"}, {name: "algorithm", rank: 2}, {name: "key", rank: 1}, {name: "name"}}}
	for _, l := range lines {
		e := l.Event
		t.row(l.Timestamp, e.Event, e.Role, e.Algorithm, e.KeyID, e.Name)
		if !e.Replaces.IsZero() {
			t.below(fmt.Sprintf("in the place of %s", e.Replaces), "")
		}
		if !e.Card.IsZero() {
			t.below(fmt.Sprintf("with the agent card %s", e.Card), "")
		}
		if e.Protection != nil {
			t.below(protectionLine(*e.Protection), "")
		}
		t.below(fmt.Sprintf("from %s, held by the %s; %s: %s", e.From, e.Custody, e.By, e.Reason), "")
	}
	p.table(&t)
	return p.err
}

// protectionLine says how a key is kept, and whose word that is.
func protectionLine(p operator.Protection) string {
	line := "as the operator says, kept by " + p.Kind
	for _, part := range []struct{ name, text string }{{"", p.Manufacturer}, {"", p.Model}, {"serial number ", p.Serial}} {
		if part.text != "" {
			line += ", " + part.name + part.text
		}
	}
	if p.Local {
		line += "; made there"
	}
	if p.NeverExtractable {
		line += "; never extractable"
	}
	return line
}
