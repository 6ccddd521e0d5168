package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/installation"
)

type accessCmd struct {
	List      accessListCmd      `cmd:"" default:"withargs" help:"List who may do what, and who could."`
	Grant     accessGrantCmd     `cmd:"" help:"Make a token for an agent or a person."`
	Revoke    accessRevokeCmd    `cmd:"" help:"End a token, and every session that was opened with it."`
	Publish   accessPublishCmd   `cmd:"" help:"Have everybody read a chain."`
	Unpublish accessUnpublishCmd `cmd:"" help:"Have nobody read a chain any more who has no role for it."`
}

// Help is shown by 'jurat access --help'.
func (*accessCmd) Help() string {
	return `Every change is a sealed record of the operator's in the chain operator-access, and counts at once, also for a server that
runs. The log has the SHA-256 of a token, from which nobody finds the token.`
}

// registerOf is the register of an installation.
func registerOf(i *installation.Installation) *access.Register {
	return access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys})
}

type accessGrantCmd struct {
	Name string        `arg:"" help:"agent_id of the agent, or the person's name, as reviews will say it in reviewer_id."`
	Role []access.Role `arg:"" help:"agent; or of submitter, reviewer, auditor, operator one or more."`
	For  time.Duration `help:"How long it is good." default:"2160h"`
	whyFlags
}

// Help is shown by 'jurat access grant --help'.
func (*accessGrantCmd) Help() string {
	return `Prints the token once; it is stored nowhere. An agent has its own records sealed with it, a person signs in with it or
sends it as a header:

    jurat access grant logistics-agent-v1 agent --reason "it goes into production"
    curl -H "Authorization: Bearer $TOKEN" --data @payload.json http://127.0.0.1:8417/v1/records`
}

// Run makes a token.
func (c *accessGrantCmd) Run(ctx context.Context, a *app, io stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	return a.withNew(ctx, io, keyFlags{}, func(i *installation.Installation) error {
		token, g, err := registerOf(i).Grant(ctx, access.Order{Name: c.Name, Roles: c.Role, For: c.For, Reason: why.Reason, By: why.By})
		if err != nil {
			return err
		}
		fmt.Fprintf(io.err, "jurat: %s may act as %v until %s; 'jurat access revoke %s' ends it\n",
			inert(g.Name), g.Roles, g.Until.UTC().Format(keyTime), g.Token)
		_, err = fmt.Fprintln(io.out, token)
		return err
	})
}

type accessListCmd struct {
	All  bool `help:"Sessions of browsers, and what has ended, too."`
	JSON bool `name:"json" help:"Print the list as JSON."`
}

// grantLine is a grant as it is listed.
type grantLine struct {
	Token    evidence.Digest `json:"token"`
	Name     string          `json:"name"`
	Roles    []access.Role   `json:"roles"`
	Since    string          `json:"since"`
	NotAfter string          `json:"not_after"`
	State    string          `json:"state"`
	Session  bool            `json:"session"`
	By       string          `json:"by"`
	Reason   string          `json:"reason"`
}

type accessLines struct {
	Grants []grantLine `json:"grants"`
	Public []string    `json:"public_chains"`
}

// Run lists grants and public chains.
func (c *accessListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		lines, err := c.lines(ctx, registerOf(i))
		if err != nil {
			return err
		}
		if c.JSON {
			return io.printJSON(lines)
		}
		p := newPage(io.out)
		for _, g := range lines.Grants {
			p.line("%s  %s  until %s  %-8s %s", g.Token, strings.Join(roleNames(g.Roles), ","), g.NotAfter, g.State, inert(g.Name))
			p.text("    ", inert(fmt.Sprintf("%s: %s", g.By, g.Reason)))
		}
		for _, chain := range lines.Public {
			p.line("everybody reads the chain %s", inert(chain))
		}
		return p.err
	})
}

func (c *accessListCmd) lines(ctx context.Context, r *access.Register) (accessLines, error) {
	lines := accessLines{Grants: []grantLine{}, Public: []string{}}
	grants, err := r.Grants(ctx)
	if err != nil {
		return lines, err
	}
	for _, g := range grants {
		line := grantLine{Token: g.Token, Name: g.Name, Roles: g.Roles, Since: g.Since.UTC().Format(keyTime),
			NotAfter: g.Until.UTC().Format(keyTime), State: stateOf(g.Ended), Session: g.Session, By: g.By, Reason: g.Reason}
		if c.All || g.Ended == nil && !line.Session {
			lines.Grants = append(lines.Grants, line)
		}
	}
	chains, err := r.PublicChains(ctx)
	lines.Public = append(lines.Public, chains...)
	return lines, err
}

func stateOf(ended error) string {
	switch {
	case errors.Is(ended, access.ErrRevoked):
		return "revoked"
	case errors.Is(ended, access.ErrExpired):
		return "expired"
	}
	return "good"
}

func roleNames(roles []access.Role) (names []string) {
	for _, r := range roles {
		names = append(names, string(r))
	}
	slices.Sort(names)
	return names
}

type accessRevokeCmd struct {
	Token string `arg:"" help:"The token's id as 'jurat access list' shows it, or the token itself."`
	whyFlags
}

// Run ends a token.
func (c *accessRevokeCmd) Run(ctx context.Context, a *app, _ stdio) error {
	id, err := evidence.ParseDigest(c.Token)
	if err != nil {
		id = access.IDOf(c.Token)
	}
	why, err := c.why()
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		err := registerOf(i).Revoke(ctx, id, why.Reason, why.By)
		if errors.Is(err, access.ErrUnknown) {
			return hint(err, "'jurat access list --all' shows every token there ever was")
		}
		return err
	})
}

type accessPublishCmd struct {
	Chain string `arg:"" help:"The chain_id; of a trial, its id."`
	whyFlags
}

// Help is shown by 'jurat access publish --help'.
func (*accessPublishCmd) Help() string {
	return `From now on everybody who reaches the server reads the records of this chain, present and future, with all texts that are
not sealed apart. What was read can never be called back.`
}

// Run makes a chain public.
func (c *accessPublishCmd) Run(ctx context.Context, a *app, _ stdio) error {
	return setPublic(ctx, a, c.Chain, true, c.whyFlags)
}

type accessUnpublishCmd struct {
	Chain string `arg:"" help:"The chain_id; of a trial, its id."`
	whyFlags
}

// Run ends that a chain is public.
func (c *accessUnpublishCmd) Run(ctx context.Context, a *app, _ stdio) error {
	return setPublic(ctx, a, c.Chain, false, c.whyFlags)
}

func setPublic(ctx context.Context, a *app, chain string, public bool, flags whyFlags) error {
	why, err := flags.why()
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		return registerOf(i).SetPublic(ctx, chain, public, why.Reason, why.By)
	})
}
