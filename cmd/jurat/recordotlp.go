package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/access"
	"jurat/internal/installation"
	"jurat/internal/recording"
	"jurat/internal/relay"
	"jurat/internal/telemetry"
	"jurat/recorder"
)

type recordOTLPCmd struct {
	Listen  string            `default:"127.0.0.1:4318" placeholder:"ADDR" help:"Where to listen. An address beyond this machine needs --tls-key, as requests carry tokens and texts."`
	Agent   string            `placeholder:"NAME" help:"Whose telemetry comes without a token. Without this or --service, every request needs a token of 'jurat access grant NAME agent'."`
	Service map[string]string `placeholder:"NAME=AGENT" help:"Whose telemetry it is if it comes without a token from the program that calls itself NAME (service.name). May be given several times."`
	Chain   string            `placeholder:"NAME" help:"One chain for all acts that name none. Default: each conversation has its own, or else each trace."`
	listenFlags
	logJSONFlag
	Recorder    string        `name:"recorder" placeholder:"NAME" default:"recorder" help:"The recorder's own name. It signs with keys of its own, never with an agent's."`
	InTheRecord bool          `name:"in-the-record" help:"Seal what was told in the record itself. Then it can never be erased."`
	Heartbeat   time.Duration `placeholder:"TIME" default:"5m" help:"How often the recorder seals that it is there, so that silence has a date."`
	keyFlags
	stampFlags
}

// Run records until it is interrupted.
func (c *recordOTLPCmd) Run(ctx context.Context, a *app, io stdio) error {
	if err := c.check(); err != nil {
		return err
	}
	l, err := listenAt("--listen", c.Listen, c.TLSCert, c.TLSKey, "h2", "http/1.1")
	if err != nil {
		return err
	}
	defer l.Close() //nolint:errcheck // the server has, unless it did not begin
	defer roomy()()
	log := io.logger(c.LogJSON)
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		settings, err := c.settings()
		if err != nil {
			return err
		}
		r, err := recording.Open(ctx, recording.Config{Log: actsOn(i).Observations(), Name: c.Recorder, Folder: recorder.Folder(i.Dir), Mode: relay.Closed, Vantage: evidence.Telemetry,
			InTheRecord: c.InTheRecord, Version: version(), Configuration: settings, Heartbeat: c.Heartbeat, Tell: log})
		if err != nil {
			return err
		}
		h := telemetry.New(telemetry.Config{Report: r.Report, Agent: c.Agent, Services: c.Service, Chain: c.Chain, Hosts: lowered(c.Host), Log: log,
			WhoIs: recorder.AgentOf(access.New(access.Config{Ledger: i.Ledger, Keys: i.Keys}))})
		io.flush()
		reason := "it could not say where it listens"
		if err = io.line("%s", address(l, c.TLSKey)); err == nil {
			err, reason = serveOTLP(ctx, l, h, log), "it was interrupted"
		}
		if counts := h.Counts(); counts != "" {
			reason += "; " + counts
		}
		return errors.Join(err, r.Close(context.WithoutCancel(ctx), reason))
	})
}

// serveOTLP serves until the context ends. HTTP/2 comes without TLS, too: so an exporter by gRPC gets an answer, and the log says what it needs instead.
func serveOTLP(ctx context.Context, l net.Listener, h http.Handler, log *slog.Logger) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	return serveBy(ctx, l, h, log, protocols)
}

// check refuses flags before anything is made.
func (c *recordOTLPCmd) check() error {
	err := errors.Join(flagName("--recorder", c.Recorder), mayListen("--listen", c.Listen, c.TLSCert, c.TLSKey))
	if c.Agent != "" {
		err = errors.Join(err, flagName("--agent", c.Agent), checkChain(c.Agent, c.Chain))
	}
	for service, agent := range c.Service {
		if strings.TrimSpace(service) == "" {
			err = errors.Join(err, hint(errors.New("--service: the program has no name"), "--service NAME=AGENT, with the service.name that it sends"))
		}
		err = errors.Join(err, flagName("--service "+service, agent), checkChain(agent, c.Chain))
	}
	return err
}

// checkChain refuses a name that makes no chain.
func checkChain(agent, name string) error {
	if name == "" {
		return nil
	}
	if err := recording.CheckChain(agent, name); err != nil {
		return fmt.Errorf("--chain: %w", err)
	}
	return nil
}

// settings is the digest of what a reader may ask about.
func (c *recordOTLPCmd) settings() (evidence.Digest, error) {
	doc, err := json.Marshal(map[string]any{"protocol": "otlp", "agent": c.Agent, "services": c.Service, "chain": c.Chain, "in_the_record": c.InTheRecord})
	if err != nil {
		return evidence.Digest{}, err
	}
	form, err := evidence.Canonical(doc)
	return evidence.DigestOf(form), err
}
