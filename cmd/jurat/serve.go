package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/internal/court/schedule"
	"jurat/internal/court/subject"
	"jurat/internal/court/trial"
	"jurat/internal/kit/fault"
	"jurat/internal/log/access"
	"jurat/internal/log/installation"
	"jurat/internal/log/keys"
	"jurat/internal/log/ledger"
	"jurat/internal/web/openid"
	"jurat/internal/web/server"
	"jurat/internal/web/tracing"
)

type serveCmd struct {
	Addr          string   `help:"Where to listen. Beyond this machine it needs --tls-key, a granted token or --origin." default:"127.0.0.1:8417" env:"JURAT_ADDR"`
	Origin        []string `placeholder:"URL" env:"JURAT_ORIGIN" help:"The proxy's address, such as https://jurat.example. Repeatable; statements name the first."`
	TLSCert       string   `name:"tls-cert" placeholder:"FILE" env:"JURAT_TLS_CERT" help:"Certificates in PEM: the server's, then those above it."`
	TLSKey        string   `name:"tls-key" placeholder:"FILE" env:"JURAT_TLS_KEY" help:"The private key to it, in PEM."`
	Name          newName  `help:"The name that the printed sign-in link signs in." default:"operator"`
	MaxBody       int64    `help:"The largest body of a request in bytes." default:"8388608"`
	Memory        byteSize `placeholder:"SIZE" help:"The most memory to use: bytes, KiB, MiB or GiB. 0: 1 GiB, or more if --max-body needs it." default:"0"`
	RateLimit     float64  `placeholder:"N" help:"How many requests a second one token, or of strangers one address, may make. 0: no limit." default:"50"`
	RateBurst     int      `placeholder:"N" help:"How many of them at once. 0: 200, or what --rate-limit allows in four seconds where that is more." default:"0"`
	PublicEntries bool     `help:"Show everyone what the log hashed for each record: digests, signatures and counts, without any text."`
	logJSONFlag
	Parallel int `help:"How many trials run at a time; the others wait." default:"4"`
	Waiting  int `help:"How many trials may wait." default:"1000"`
	oidcFlags
	panelFlags
	OTLP string `name:"otlp-endpoint" placeholder:"URL" env:"OTEL_EXPORTER_OTLP_ENDPOINT" help:"Send traces to this OpenTelemetry collector, by OTLP over HTTP."`

	OTLPHeaders string `name:"otlp-headers" hidden:"" env:"OTEL_EXPORTER_OTLP_HEADERS"`
	keyFlags
	stampFlags
}

type oidcFlags struct {
	Issuer     string   `name:"oidc-issuer" placeholder:"URL" help:"People sign in by this provider of OpenID Connect, too."`
	ClientID   string   `name:"oidc-client-id" help:"How the provider knows this server."`
	SecretFile string   `name:"oidc-secret-file" placeholder:"FILE" help:"File with the secret that the provider has given this server."`
	NameClaim  string   `name:"oidc-name-claim" help:"The claim with the name under which a person acts. No two people may ever have the same." default:"email"`
	RolesClaim string   `name:"oidc-roles-claim" help:"In which claim a person's groups stand." default:"groups"`
	RoleOf     []string `name:"oidc-role" placeholder:"GROUP=ROLE" help:"What a group may do. May be repeated." sep:"none"`
}

func (f *oidcFlags) provider(ctx context.Context, i *installation.Installation) (*openid.Provider, error) {
	if f.Issuer == "" {
		return nil, nil
	}
	shared, err := i.ServerSecret(ctx, "sign-in") // a browser comes back from the provider to whichever server it reaches
	roles, wrong := f.roles()
	if err := cmp.Or(err, wrong); err != nil {
		return nil, err
	}
	c := openid.Config{Issuer: f.Issuer, ClientID: f.ClientID, NameClaim: f.NameClaim, RolesClaim: f.RolesClaim, Roles: roles, Shared: shared}
	if f.SecretFile != "" {
		if c.ClientSecret, err = readSecret("--oidc-secret-file", f.SecretFile); err != nil {
			return nil, err
		}
	}
	return openid.New(ctx, c)
}

func (f *oidcFlags) roles() (map[string][]access.Role, error) {
	all := map[string][]access.Role{}
	for _, rule := range f.RoleOf {
		at := strings.LastIndex(rule, "=")
		if at < 1 || !slices.Contains(access.PeopleRoles(), access.Role(rule[at+1:])) {
			return nil, fmt.Errorf("--oidc-role %s: want GROUP=ROLE, where ROLE is one of %v", rule, access.PeopleRoles())
		}
		all[rule[:at]] = append(all[rule[:at]], access.Role(rule[at+1:]))
	}
	return all, nil
}

func (c *serveCmd) Run(ctx context.Context, a *app, std stdio) error {
	log := std.logger(c.LogJSON) // from here on messages are lines of it, too
	secure, err := c.secure()
	limits, wrong := c.limits()
	few := refuse(c.Parallel < 1 || c.Parallel > 256 || c.Waiting < 1, "--parallel: want 1 to 256, --waiting: 1 or more")
	if err := cmp.Or(err, few, wrong); err != nil {
		return err
	}
	ct, err := c.court(std)
	if err != nil {
		return err
	}
	ct.warn(std)
	hook, noHook := ct.webhook.Receiver(os.Getenv)
	memory, err := c.memory()
	_, noRoles := c.roles()
	if err := cmp.Or(noHook, err, noRoles, c.mayListen(ctx, a)); err != nil {
		return err
	}
	l, err := listenAt("--addr", c.Addr, c.TLSCert, c.TLSKey)
	if err != nil {
		return err
	}
	defer l.Close() // the server has, unless it did not begin
	defer roomy()()
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		asked, err := c.provider(ctx, i)
		if err != nil {
			return err
		}
		traces, err := c.tracing(log)
		if err != nil {
			return err
		}
		defer c.stopTracing(ctx, traces, std)
		if err := i.Ledger.ReadOnly(); err != nil {
			return fmt.Errorf("holding trials: %w", err)
		}
		table, err := schedule.OpenTable(ctx, i.Database, filepath.Join(a.Data, workFile))
		if err != nil {
			return err
		}
		defer table.Close()
		counted := server.NewTrialMetrics(time.Now())
		trials, err := schedule.Open(ctx, schedule.Config{Table: table, Ledger: i.Ledger, Keys: i.Keys, Locks: i.Locks,
			Sit: func(on *subject.Case, spent int64) trial.Config { return ct.sit(on, spent).Wrapped(counted.Measured) }, Vouch: i.Vouch, Reading: progress(std, "reading the trials of the log"), Parallel: c.Parallel,
			Memory: memory / trialsPart, Waiting: c.Waiting, Log: log, Listen: func() func(trial.Event) {
				trace := traces.Trial()
				return func(e trial.Event) {
					trace(e)
					counted.Hear(e)
				}
			}})
		if err != nil {
			return err
		}
		at := c.address(l)
		s, err := server.New(ctx, server.Config{Installation: i, Scheduler: trials, Trials: counted, Webhook: hook, Index: filepath.Join(a.Data, indexFile), Seats: ct.settings.Seats, URL: at, Provider: asked, Secure: secure,
			Origins: c.Origin, Local: isLoopback(c.Addr), MaxBody: c.MaxBody, Memory: memory, PublicEntries: c.PublicEntries, Prices: slices.Concat(ct.plan.Prices, ct.plan.PriceTable.Prices), Limits: limits, Log: log, Tracing: traces})
		if err != nil {
			return err
		}
		if err := std.lineUnless(c.welcome(ctx, std, s, at), "%s", at); err != nil {
			return err
		}
		if err := sayReady(); err != nil {
			return err
		}
		return s.Serve(ctx, l)
	})
}

// welcome prints how people sign in. It prints a sign-in link only on a terminal, so that no journal stores one.
func (c *serveCmd) welcome(ctx context.Context, std stdio, s *server.Server, at string) error {
	switch {
	case !isLoopback(c.Addr) && c.TLSKey == "" && len(c.Origin) == 0:
		std.tell("people on other machines cannot sign in over plain http, because browsers keep sessions over https only; programs can send their token")
		std.tell("hint: --tls-cert and --tls-key serve https; or a proxy on this machine does, with --origin https://NAME and without --addr")
	case c.LogJSON || terminalOf(std.err) == nil:
		std.tell("'jurat access grant --link --at %s' prints a link that signs one person in, once", at)
	default:
		link, err := s.SignInLink(ctx, string(c.Name), access.PeopleRoles()...)
		if err != nil {
			return err
		}
		std.tell("sign in once as %s, within the hour: %s%s", c.Name, at, link)
	}
	std.tell("Ctrl-C ends it")
	std.flush() // what was said so far stands before the address, for which scripts wait
	return nil
}

// memory tells Go's collector and the server what they may hold. What the environment says to the collector goes before.
func (c *serveCmd) memory() (int64, error) {
	least := server.MemoryFor(c.MaxBody)
	memory := int64(c.Memory)
	if memory == 0 {
		memory = max(server.DefaultMemory, least)
	}
	if c.MaxBody < 1 || memory < least {
		return 0, fmt.Errorf("--memory %d: bodies of --max-body %d bytes need at least %d", memory, c.MaxBody, least)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(memory - max(uncounted, memory/8))
	}
	return memory, nil
}

// uncounted is what the process holds at least beside what Go counts: the program, what SQLite reads, and what is made while the collector works.
const uncounted = 128 << 20

// trialsPart is which part of the memory trials may hold: half is for requests, and the rest for everything else.
const trialsPart = 4

func (c *serveCmd) tracing(log *slog.Logger) (*tracing.Tracing, error) {
	if c.OTLP == "" {
		return nil, nil
	}
	t, err := tracing.Start(c.OTLP, c.OTLPHeaders, log)
	fault.While(&err, "--otlp-endpoint")
	return t, err
}

// stopTracing sends what is left of the traces, if the collector takes it soon: it is not worth more waiting.
func (c *serveCmd) stopTracing(ctx context.Context, t *tracing.Tracing, std stdio) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := t.Stop(ctx); err != nil {
		std.tell("the last traces were not sent: %v", err)
	}
}

// limits returns the limits that the flags set. A flag of 0 means no limit.
func (c *serveCmd) limits() (server.Rate, error) {
	switch {
	case math.IsNaN(c.RateLimit) || math.IsInf(c.RateLimit, 0) || c.RateLimit < 0:
		return server.Rate{}, fmt.Errorf("--rate-limit %v: want how many requests a second, or 0 for as many as they like", c.RateLimit)
	case c.RateBurst < 0:
		return server.Rate{}, fmt.Errorf("--rate-burst %d: want how many requests at once, or 0", c.RateBurst)
	case c.RateLimit == 0:
		return server.Rate{PerSecond: -1}, nil
	}
	return server.Rate{PerSecond: c.RateLimit, Burst: c.RateBurst}, nil
}

// secure says whether browsers reach the server by https.
func (c *serveCmd) secure() (bool, error) {
	if (c.TLSCert == "") != (c.TLSKey == "") {
		return false, errors.New("--tls-cert and --tls-key are given together")
	}
	for i := range c.Origin {
		var err error
		if c.Origin[i], err = server.ParseOrigin(c.Origin[i]); err != nil {
			return false, fmt.Errorf("--origin %w", err)
		}
	}
	return c.TLSKey != "" || len(c.Origin) > 0 || !isLoopback(c.Addr), nil
}

// mayListen refuses to listen beyond this machine while no one has a token, unless people can sign in by https all the same.
func (c *serveCmd) mayListen(ctx context.Context, a *app) error {
	if _, _, err := net.SplitHostPort(c.Addr); err != nil {
		return fmt.Errorf("--addr %s: want HOST:PORT, such as 127.0.0.1:8417: %w", c.Addr, err)
	}
	if isLoopback(c.Addr) || c.TLSKey != "" || c.Issuer != "" || len(c.Origin) > 0 {
		return nil
	}
	someone := false
	err := a.with(ctx, func(i *installation.Installation) error {
		grants, err := registerOf(i).Grants(ctx)
		someone = slices.ContainsFunc(grants, func(g access.Grant) bool { return g.Ended == nil && !g.Session })
		return err
	})
	if err != nil && !errors.Is(err, installation.ErrNone) || someone {
		return err
	}
	return hint(fmt.Errorf("--addr %s: other machines could reach it, but --tls-key and --origin are not given, and no token has been granted", c.Addr),
		"--origin https://NAME says that a proxy ends TLS before it; 'jurat access grant' makes a token; without --addr it answers on this machine alone")
}

func isLoopback(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func listenAt(flag, address, cert, key string, protocols ...string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, hint(err, "%s names another address; port 0 takes one that is free", flag)
	}
	if key == "" {
		return l, nil
	}
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--tls-cert, --tls-key: %w", err), l.Close())
	}
	return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: protocols}), nil
}

func (c *serveCmd) address(l net.Listener) string {
	if len(c.Origin) > 0 {
		return c.Origin[0]
	}
	host := l.Addr().String()
	if tcp, ok := l.Addr().(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		if name, err := os.Hostname(); err == nil {
			host = net.JoinHostPort(name, fmt.Sprint(tcp.Port))
		}
	}
	return pick(c.TLSKey == "", "http://", "https://") + host
}

// sayReady tells the service manager that started this program, if it wants to know, that requests are answered from now on: so whatever
// it starts next, such as a command that an operator typed behind 'systemctl start', finds an installation. systemd's sd_notify(3) is the protocol.
func sayReady() error {
	const variable = "NOTIFY_SOCKET"
	at := os.Getenv(variable)
	if at == "" {
		return nil
	}
	if err := os.Unsetenv(variable); err != nil { // helpers that this program starts have nothing to say
		return err
	}
	conn, err := net.Dial("unixgram", at)
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte("READY=1"))
	}
	fault.While(&err, "telling the service manager at %s (%s) that the server is ready", at, variable)
	return err
}

const (
	// spareHeap is how much the collector takes the heap for larger than it is. What a server holds for long is some tens of megabytes,
	// and what it makes for a record is thrown away at once: with a heap so small the collector would run a hundred times a second.
	// The pages of it are never touched, and so take no room of their own.
	spareHeap = 96 << 20
	// syncing is how many threads mostly wait for a sync, so that others run in their place: one that commits, one that moves the write-ahead log.
	syncing = 2
)

// roomy sets Go's runtime for a program that seals for many; the environment goes before. The function that it returns lets go of the memory.
func roomy() (done func()) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + syncing)
	}
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	spare := make([]byte, spareHeap)
	return func() { runtime.KeepAlive(spare) }
}

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
	Name  newName       `arg:"" optional:"" help:"The agent's agent_id, or the person's name; reviews will have it as reviewer_id. Default with --link: operator."`
	Role  []access.Role `arg:"" optional:"" help:"agent; or any of submitter, reviewer, auditor, operator. Default with --link: all; for others, name one."`
	For   time.Duration `help:"How long the token is valid." default:"2160h"`
	Chain string        `xor:"what" placeholder:"CHAIN" help:"Make no token, and let this agent add to a chain that another has begun."`
	Link  bool          `xor:"what" help:"Print a link that signs this person in, once, in a browser."`
	At    string        `placeholder:"URL" help:"With --link: where browsers reach the server." default:"http://127.0.0.1:8417"`
	whenWhyFlags
}

func (c *accessGrantCmd) Run(ctx context.Context, a *app, std stdio) error {
	if c.Link {
		return c.link(ctx, a, std)
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
		std.tell("%s may act as %v until %s; 'jurat access revoke %s' ends it",
			g.Name, g.Roles, g.Until.UTC().Format(keyTime), g.Token)
		return std.line("%s", token)
	})
}

func (c *accessGrantCmd) link(ctx context.Context, a *app, std stdio) error {
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
		return std.lineUnless(err, "%s%s", strings.TrimSuffix(c.At, "/"), path)
	})
}

type accessListCmd struct {
	All bool `help:"Sessions that were opened with a token, and what has ended, too."`
	jsonFlag
}

func (c *accessListCmd) Run(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		lines, err := registerOf(i).List(ctx, c.All)
		t := table{heads: []head{{name: "token", rank: 1}, {name: "roles", rank: 2}, {name: "until", rank: 3}, {name: "state"}, {name: "name"}}}
		for _, g := range lines.Grants {
			t.row(g.Token, strings.Join(g.Roles, ","), g.NotAfter, g.State, g.Name+pick(g.Session, " (session of a browser)", ""))
			t.below(true, "", "%s: %s", g.By, g.Reason)
		}
		return c.answer(std, lines, err, func(p *printer) {
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
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
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
	return a.deciding(ctx, c.why, func(i *installation.Installation, why keys.Why) error {
		what, err := c.what(ctx, i)
		if err != nil {
			return err
		}
		return registerOf(i).Publish(ctx, what, !c.Undo, why.Reason, why.By)
	})
}

func (c *accessPublishCmd) what(ctx context.Context, i *installation.Installation) (access.What, error) {
	if c.Agent {
		known, err := i.Ledger.CountsFrom(ctx, evidence.RoleAgent, c.Chain, 0)
		if err == nil && !known && !c.Undo {
			err = noSuchAgent(c.Chain)
		}
		return access.What{Agent: c.Chain}, err
	}
	records, _, err := i.Ledger.InChain(ctx, c.Chain, 0)
	if err != nil || len(records) > 0 {
		return access.What{Chain: c.Chain}, err
	}
	record, err := i.Ledger.Record(ctx, c.Chain)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		err = hint(fmt.Errorf("the log has no chain and no record %q", c.Chain), "name a chain_id, a trial, or the id of a record that is in no chain")
	case err == nil && record.Payload.ChainID != "":
		err = hint(fmt.Errorf("record %s is in the chain %q, which is read as a whole or not at all", c.Chain, record.Payload.ChainID), "name the chain")
	}
	return access.What{Record: c.Chain}, err
}
