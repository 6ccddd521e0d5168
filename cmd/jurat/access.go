package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/docket"
	"jurat/internal/installation"
	"jurat/internal/keys"
	"jurat/internal/ledger"
	"jurat/internal/server"
)

type accessCmd struct {
	List    accessListCmd    `cmd:"" default:"withargs" help:"List who may do what; with --all also who could once."`
	Grant   accessGrantCmd   `cmd:"" help:"Make a token for an agent or a person, or a link to sign in by; let an agent add to another's chain."`
	Revoke  accessRevokeCmd  `cmd:"" help:"End a token, and every session that was opened with it."`
	Publish accessPublishCmd `cmd:"" help:"Let everyone read a chain, a record that is in no chain, or what the log shows of an agent; or undo that."`
}

func registerOf(i *installation.Installation) *access.Register {
	return access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys})
}

type accessGrantCmd struct {
	Name  newName       `arg:"" optional:"" help:"The agent's agent_id, or the person's name; reviews will have it as reviewer_id. With --link by default operator."`
	Role  []access.Role `arg:"" optional:"" help:"agent; or one or more of submitter, reviewer, auditor, operator. With --link by default all of these, so name one for anybody but yourself."`
	For   time.Duration `help:"How long the token is valid." default:"2160h"`
	Chain string        `xor:"what" placeholder:"CHAIN" help:"Make no token, and let this agent add to a chain that another has begun."`
	Link  bool          `xor:"what" help:"Print a link that signs this person in, once, in a browser."`
	At    string        `placeholder:"URL" help:"With --link: where browsers reach the server." default:"http://127.0.0.1:8417"`
	whenWhyFlags
}

func (c *accessGrantCmd) Run(ctx context.Context, a *app, io stdio) error {
	if c.Link {
		return c.link(ctx, a, io)
	}
	why, err := c.why()
	if err != nil {
		return err
	}
	if c.Chain != "" {
		if c.Name == "" || c.Role != nil {
			return errors.New("--chain goes with an agent's name alone")
		}
		return a.with(ctx, func(i *installation.Installation) error {
			return registerOf(i).Admit(ctx, c.Chain, string(c.Name), why.Reason, why.By)
		})
	}
	order := access.Order{Name: string(c.Name), Roles: c.Role, For: c.For, Reason: why.Reason, By: why.By}
	if err := order.Check(); err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		token, g, err := registerOf(i).Grant(ctx, order)
		if err != nil {
			return err
		}
		fmt.Fprintf(io.err, "jurat: %s may act as %v until %s; 'jurat access revoke %s' ends it\n",
			g.Name, g.Roles, g.Until.UTC().Format(keyTime), g.Token)
		return io.line("%s", token)
	})
}

func (c *accessGrantCmd) link(ctx context.Context, a *app, io stdio) error {
	at, err := url.Parse(c.At)
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || strings.TrimSuffix(at.Path, "/") != "" || at.RawQuery != "" {
		return fmt.Errorf("--at %s: want a server's URL, such as https://jurat.example", c.At)
	}
	order := access.Order{Name: cmp.Or(string(c.Name), "operator"), Roles: c.Role, For: time.Hour}
	if len(order.Roles) == 0 {
		order.Roles = access.PeopleRoles()
	}
	if err := order.Check(); err != nil {
		return err
	}
	if order.Has(access.Agent) {
		return errors.New("--link: an agent does not sign in by a browser; leave --link out to make its token")
	}
	return a.with(ctx, func(i *installation.Installation) error {
		path, err := server.SignInPath(ctx, i, time.Now(), order.Name, order.Roles...)
		if err != nil {
			return err
		}
		return io.line("%s%s", strings.TrimSuffix(c.At, "/"), path)
	})
}

type accessListCmd struct {
	All bool `help:"Sessions that were opened with a token, and what has ended, too."`
	jsonFlag
}

func (c *accessListCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		lines, err := registerOf(i).List(ctx, c.All)
		if err != nil {
			return err
		}
		t := table{heads: []head{{name: "token", rank: 1}, {name: "roles", rank: 2}, {name: "until", rank: 3}, {name: "state"}, {name: "name"}}}
		for _, g := range lines.Grants {
			session := ""
			if g.Session {
				session = " (session of a browser)"
			}
			t.row(g.Token, strings.Join(g.Roles, ","), g.NotAfter, g.State, g.Name+session)
			t.below(fmt.Sprintf("%s: %s", g.By, g.Reason), "")
		}
		return c.answer(io, lines, func(p *printer) {
			p.table(&t)
			for _, chain := range lines.Public {
				p.line("everybody reads the chain %s", chain)
			}
			for _, agent := range lines.Agents {
				p.line("everybody reads the reputation of the agent %s", agent)
			}
		})
	})
}

type accessRevokeCmd struct {
	Token string `arg:"" help:"The token's id as 'jurat access list' shows it, or the token itself."`
	whyFlags
}

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
		return registerOf(i).Revoke(ctx, id, why.Reason, why.By)
	})
}

type accessPublishCmd struct {
	Chain string `arg:"" name:"chain-or-record" help:"The chain_id; of a trial, its id; of a record in no chain, the record's id; with --agent, the agent's name."`
	Agent bool   `help:"It is an agent: show its reputation to everyone."`
	Undo  bool   `help:"From now on, only people with a role for it may read it."`
	whyFlags
}

func (c *accessPublishCmd) Run(ctx context.Context, a *app, _ stdio) error {
	why, err := c.why()
	if err != nil {
		return err
	}
	if c.Agent {
		return a.with(ctx, func(i *installation.Installation) error { return c.agent(ctx, i, why) })
	}
	return a.with(ctx, func(i *installation.Installation) error { return c.chain(ctx, i, why) })
}

func (c *accessPublishCmd) agent(ctx context.Context, i *installation.Installation, why keys.Why) error {
	known, err := docket.KnowsAgent(ctx, i.Ledger, c.Chain)
	if err != nil {
		return err
	}
	if !known && !c.Undo {
		return unknownAgent(fmt.Errorf("the log has no record of an agent %q, and no judgment about one", c.Chain))
	}
	return registerOf(i).SetPublicAgent(ctx, c.Chain, !c.Undo, why.Reason, why.By)
}

func (c *accessPublishCmd) chain(ctx context.Context, i *installation.Installation, why keys.Why) error {
	records, _, err := i.Ledger.InChain(ctx, c.Chain, 0)
	if err != nil {
		return err
	}
	if len(records) > 0 {
		return registerOf(i).SetPublic(ctx, c.Chain, !c.Undo, why.Reason, why.By)
	}
	record, err := i.Ledger.Record(ctx, c.Chain)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return hint(fmt.Errorf("the log has no chain and no record %q", c.Chain), "name a chain_id, a trial, or the id of a record that is in no chain")
	case err != nil:
		return err
	case record.Payload.ChainID != "":
		return hint(fmt.Errorf("record %s is in the chain %q, which is read as a whole or not at all", c.Chain, record.Payload.ChainID), "name the chain")
	}
	return registerOf(i).SetPublicRecord(ctx, c.Chain, !c.Undo, why.Reason, why.By)
}
