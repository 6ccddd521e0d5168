package main

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/court/panel"
	"jurat/internal/kit/plural"
	"jurat/internal/kit/webhook"
	"jurat/internal/log/installation"
	"jurat/internal/tap/sealer"
	"jurat/internal/web/docket"
	"jurat/recorder"
)

type doctorCmd struct {
	URL       string `arg:"" optional:"" placeholder:"URL" help:"With --ready: the server's address. Default: as JURAT_ADDR has it, or http://127.0.0.1:8417."`
	Ready     bool   `xor:"what" help:"Only ask a server whether it is ready: for health checks of containers and scripts."`
	Recorders bool   `xor:"what" help:"Only say which recorders run, what they sealed and missed, and what waits."`
	Webhook   bool   `xor:"what" help:"Only send the webhook of the configuration a test message."`
	Config    string `placeholder:"FILE" env:"JURAT_CONFIG" help:"The jury's configuration. Default: jurat.yaml in the working directory, if it is there."`
	Network   bool   `help:"Also ask each time-stamping authority outside for one time stamp. A paid one counts it."`
	jsonFlag
	readyFlags
}

type state string

const (
	fine   state = "ok"
	look   state = "look"
	broken state = "broken"
)

type finding struct {
	About string `json:"about"`
	State state  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

type examination struct {
	Findings []finding `json:"findings"`
}

func (e *examination) add(about string, s state, what, do string) {
	e.Findings = append(e.Findings, finding{about, s, what, do})
}

func (e *examination) fail(about string, err error) {
	e.add(about, broken, oneLine(err), hintOf(err))
}

func (e *examination) code() error {
	worst := exitCode(0)
	for _, f := range e.Findings {
		worst = max(worst, map[state]exitCode{look: exitBad, broken: exitCannot}[f.State])
	}
	return coded(worst)
}

func (c *doctorCmd) Run(ctx context.Context, a *app, std stdio) error {
	switch {
	case c.URL != "" && !c.Ready:
		return errors.New("a server's address goes with --ready")
	case c.Ready:
		return c.ready(ctx, std)
	case c.Recorders:
		return c.recorders(ctx, a, std)
	case c.Webhook:
		return c.testWebhook(ctx, std)
	}
	var e examination
	b := thisBuild()
	e.add("program", fine, fmt.Sprintf("jurat %s, built by %s for %s", b.Version, b.Go, b.Platform), "")
	c.jury(&e)
	c.installation(ctx, a, &e)
	if err := ctx.Err(); err != nil {
		return err
	}
	return closing(e.code(), c.answer(std, e, nil, func(p *printer) { p.examined(e.Findings) }))
}

func (c *doctorCmd) jury(e *examination) {
	name, rule := c.Config, "named by --config or JURAT_CONFIG"
	if name == "" {
		name, rule = panel.DefaultFile, "found in the working directory"
	}
	file := &panel.File{}
	switch doc, err := os.ReadFile(name); {
	case errors.Is(err, fs.ErrNotExist) && c.Config == "":
		e.add("configuration", fine, "none: the default panel sits", "")
	case err != nil:
		e.fail("configuration", hint(err, "name a file that can be read, or leave --config and JURAT_CONFIG out"))
		return
	default:
		if file, err = panel.Parse(doc); err != nil {
			e.fail("configuration", hint(fmt.Errorf("%s: %w", name, err), "docs/configuration.md has every key; 'jurat init config FILE' writes one that is right"))
			return
		}
		e.add("configuration", fine, name+", "+rule, "")
	}
	plan, err := panel.NewPlan(file, panel.Wishes{Jurors: panel.Kind(os.Getenv("JURAT_JURORS"))}, os.Getenv)
	if err != nil {
		e.fail("jury", hint(err, "'jurat trial --help' says where keys are looked for"))
		return
	}
	c.keys(e, plan)
}

// keys says which seats have a key. It never shows one.
func (c *doctorCmd) keys(e *examination, plan *panel.Plan) {
	if plan.Offline && !plan.NoModel {
		e.add("jury", fine, "rules sit, as you asked", "")
		return
	}
	for _, text := range plan.Endings(time.Now()) {
		e.add("model", look, text, "set the successor in the configuration; 'jurat init config FILE' writes one with the present models")
	}
	for _, chair := range plan.Chairs() {
		about := "key"
		switch {
		case chair.Wanted != nil:
			e.add(about, look, fmt.Sprintf("%s: %s", chair.ID, oneLine(chair.Wanted)), howToGetAJury)
		case chair.KeyFrom != "":
			e.add(about, fine, fmt.Sprintf("%s: present (%s)", chair.ID, chair.KeyFrom), "")
		default:
			e.add(about, fine, fmt.Sprintf("%s: none is needed", chair.ID), "")
		}
	}
}

// installation looks at the data folder or the database, without making one.
func (c *doctorCmd) installation(ctx context.Context, a *app, e *examination) {
	where := a.config().Where()
	err := a.with(ctx, func(i *installation.Installation) error {
		size, err := i.Ledger.Size(ctx)
		if err != nil {
			return err
		}
		e.add("installation", fine, fmt.Sprintf("%s: a log of %s", where, plural.Of(size, "record")), "")
		if err := i.Ready(ctx); err != nil {
			e.fail("sealing", err)
		} else {
			e.add("sealing", fine, "the log accepts records, and the keys can be read", "")
		}
		if err := c.clock(ctx, i, e); err != nil {
			return err
		}
		recorders, err := statusOf(ctx, i, time.Now(), progress(a.std, "records looked at"))
		if err != nil {
			return err
		}
		e.Findings = append(e.Findings, recorders.Findings...)
		return c.authorities(ctx, i, e)
	})
	switch {
	case errors.Is(err, installation.ErrNone):
		e.add("installation", look, where+": there is none yet", hintOf(err))
	case err != nil:
		e.fail("installation", err)
	}
	disk(a.Data, e)
}

const (
	oddClock = time.Minute // how much the clock may be behind the last record
	freeDisk = 1 << 30     // bytes below which the doctor warns
)

func (*doctorCmd) clock(ctx context.Context, i *installation.Installation, e *examination) error {
	last, err := i.LastStamped(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	here, there := now.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)
	switch {
	case last.IsZero():
		e.add("clock", fine, here+"; no record is stamped to compare with", "")
	case last.Sub(now) > oddClock:
		e.add("clock", look, here+", which is before the last record was stamped ("+there+")",
			"set the clock by NTP: until it has caught up, records are stamped with the last record's time, or with one that is before it")
	default:
		e.add("clock", fine, here+"; the last record was stamped "+there, "")
	}
	return nil
}

func (c *doctorCmd) authorities(ctx context.Context, i *installation.Installation, e *examination) error {
	list, err := i.Timekeeper.List(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		e.add("authorities", look, "only the built-in one stamps: proved time is only as good as the operator's clock", "'jurat tsa NAME URL --root FILE' adds one")
	}
	for _, o := range list {
		if !c.Network {
			e.add("authorities", fine, o.Name+": "+o.URL+" (not asked: --network asks)", "")
		} else if err := o.Try(ctx); err != nil {
			e.add("authorities", look, o.Name+": "+oneLine(err), "records wait for its stamps: 'jurat log stamp' asks again; 'jurat tsa NAME --remove' stops asking it")
		} else {
			e.add("authorities", fine, o.Name+": "+o.URL+" answers, and its time stamp is valid", "")
		}
	}
	return nil
}

// disk looks at the folder, or at the nearest one above it that is there.
func disk(folder string, e *examination) {
	info, err := os.Stat(folder)
	if err == nil && info.Mode().Perm()&0o077 != 0 && ownersAlone {
		e.add("permissions", look, fmt.Sprintf("%s: others on this machine can enter it (mode %o)", folder, info.Mode().Perm()), "chmod 700 "+quote(folder))
	} else if err == nil {
		e.add("permissions", fine, folder+": only its owner can enter it", "")
	}
	at, err := filepath.Abs(folder)
	for ; err == nil && filepath.Dir(at) != at; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil {
			break
		}
	}
	free, err := freeBytes(at)
	switch {
	case err != nil:
		e.add("disk", look, at+": how much is free is not known: "+oneLine(err), "look yourself: nothing can be sealed on a full disk")
	case free < freeDisk:
		e.add("disk", look, fmt.Sprintf("%s: only %d MiB are free", at, free>>20), "make room: on a full disk nothing is sealed, and so nothing is done")
	default:
		e.add("disk", fine, fmt.Sprintf("%s: %d GiB are free", at, free>>30), "")
	}
}

type recorderStatus struct {
	Here []sealer.Process  `json:"here"` // that run on this data folder, or died there
	Log  []docket.Recorder `json:"log"`
	examination
}

func statusOf(ctx context.Context, i *installation.Installation, now time.Time, progress func(done, total int64)) (recorderStatus, error) {
	s := recorderStatus{Here: []sealer.Process{}, examination: examination{Findings: []finding{}}}
	here, err := sealer.Look(ctx, recorder.Folder(i.Dir))
	if err != nil {
		return s, err
	}
	s.Here = append(s.Here, here...)
	if s.Log, err = docket.Recorders(ctx, i.Ledger, progress); err != nil {
		return s, err
	}
	for n := range s.Here {
		s.process(&s.Here[n], now)
	}
	for _, r := range s.Log {
		s.known(r)
	}
	return s, nil
}

func (s *recorderStatus) process(p *sealer.Process, now time.Time) {
	name := aboutRecorder(p.About.Recorder)
	waiting := fmt.Sprintf("%s under way, a journal of %s, %s of %s", plural.Of(p.Open, "call"), plural.Of(p.JournalBytes, "byte"), plural.Of(p.Copies, "copy"), plural.Of(p.CopyBytes, "byte"))
	waiting += pick(p.Damaged > 0, fmt.Sprintf(", %s of the journal that cannot be read", plural.Of(p.Damaged, "part")), "")
	switch {
	case !p.Running:
		s.add(name, look, "it died with "+waiting, "the next recorder on this data folder seals what became of the calls: start one, as 'jurat record proxy'")
	case p.State.Trouble != "":
		s.add(name, look, fmt.Sprintf("it runs, and cannot seal: %s; %s that ended, %s that passed without a record: %s", waiting, plural.Of(p.State.Waiting, "call"), plural.Of(p.State.Missed, "call"), p.State.Trouble),
			"'jurat doctor' says what is wrong with the log; what waits is sealed as soon as it seals again")
	case s.silent(p, now):
		s.add(name, look, "it runs, and its heartbeat is overdue: the last one was "+s.lastSign(p).UTC().Format(time.RFC3339), "see what it logs; restart it if it hangs: what is under way is sealed as lost then")
	default:
		s.add(name, fine, fmt.Sprintf("it runs since %s: %s sealed, %s", p.About.Began.UTC().Format(time.RFC3339), plural.Of(p.State.Sealed, "call"), waiting), "")
	}
}

func aboutRecorder(name string) string {
	return "recorder" + pick(name == "" || name == "recorder", "", " "+name)
}

func (s *recorderStatus) lastSign(p *sealer.Process) time.Time {
	last := p.About.Began
	for _, r := range s.Log {
		if at, err := time.Parse(time.RFC3339, r.Heartbeat); r.Name == p.About.Recorder && err == nil && at.After(last) {
			last = at
		}
	}
	return last
}

func (s *recorderStatus) silent(p *sealer.Process, now time.Time) bool {
	return p.About.Heartbeat > 0 && now.Sub(s.lastSign(p)) > 2*time.Duration(p.About.Heartbeat)*time.Millisecond+time.Minute
}

// known says what is to be done about a recorder that the log knows and this folder does not.
func (s *recorderStatus) known(r docket.Recorder) {
	switch {
	case slices.ContainsFunc(s.Here, func(p sealer.Process) bool { return p.About.Recorder == r.Name }):
	case r.Started == "":
		s.add(aboutRecorder(r.Name), look, "the log has acts of it, and no start", "'jurat records --action recorder_event' lists them")
	case r.Stopped != "":
		after := pick(r.Counted, ", after "+plural.Of(r.Calls, "call"), "")
		s.add(aboutRecorder(r.Name), fine, "it stopped at "+r.Stopped+after+": "+r.Reason, "")
	default:
		s.add(aboutRecorder(r.Name), look, "it began at "+r.Started+", sealed no stop, and does not run here", "unless it runs elsewhere, it died: start one where it ran")
	}
}

func (c *doctorCmd) recorders(ctx context.Context, a *app, std stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		s, err := statusOf(ctx, i, time.Now(), progress(std, "records looked at"))
		return closing(s.code(), c.answer(std, s, err, func(p *printer) { p.recorders(s) }))
	})
}

// calls says how many calls a recorder has sealed since its start; of one elsewhere, by its heartbeats and end. Ends of earlier programs lack the last calls.
func (s *recorderStatus) calls(r docket.Recorder) string {
	runs, here := false, int64(0)
	for _, proc := range s.Here {
		if proc.Running && proc.About.Recorder == r.Name {
			runs, here = true, here+proc.State.Sealed
		}
	}
	switch {
	case runs:
		return fmt.Sprint(max(r.Calls, here))
	case r.Counted:
		return fmt.Sprint(r.Calls)
	case r.Calls > 0:
		return fmt.Sprintf("≥ %d", r.Calls)
	}
	return "-"
}

func (p *printer) recorders(s recorderStatus) {
	if len(s.Findings) == 0 {
		p.line("No recorder has sealed here. 'jurat record run' and 'jurat record proxy' begin one.")
		return
	}
	p.examined(s.Findings)
	t := table{heads: []head{{name: "recorder"}, {name: "mode", rank: 1}, {name: "started", rank: 2}, {name: "heartbeat", rank: 3}, {name: "calls", right: true}, {name: "missed", right: true}, {name: "lost", right: true}}}
	for _, r := range s.Log {
		t.row(r.Name, string(r.Mode), r.Started, r.Heartbeat, s.calls(r), fmt.Sprint(r.Missed), fmt.Sprint(r.Lost))
	}
	p.line("")
	p.table(&t)
	p.text("", "calls: sealed since the start; of a recorder that does not run here, by its heartbeats and its end (≥: at least). missed: passed without a record, ever. lost: in a crash, among its last "+fmt.Sprint(docket.NewestCalls)+" records.")
	for _, proc := range s.Here {
		p.lineIf(proc.About.Agent != "", "%s records the agent %s where no token says another.", proc.About.Recorder, proc.About.Agent)
	}
}

func (p *printer) examined(list []finding) {
	colours := map[state]string{fine: green, look: yellow, broken: red}
	wide := 13
	for _, f := range list {
		wide = max(wide, columns(f.About))
	}
	for _, f := range list {
		p.line("%s %s %s", p.paint(colours[f.State], fmt.Sprintf("%-7s", f.State)), f.About+strings.Repeat(" ", wide-columns(f.About)), f.What)
		p.text(strings.Repeat(" ", 9+wide), f.Do)
	}
}

type readyFlags struct {
	Timeout time.Duration `default:"5s" help:"With --ready: how long to wait for the answer."`

	Addr   string `hidden:"" default:"127.0.0.1:8417" env:"JURAT_ADDR"` // these are the variables of 'jurat serve'
	TLSKey string `name:"tls-key" hidden:"" env:"JURAT_TLS_KEY"`
}

type readiness struct {
	URL    string `json:"url"`
	Ready  bool   `json:"ready"`
	Reason string `json:"reason,omitempty"`
}

func (c *doctorCmd) ready(ctx context.Context, std stdio) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	if c.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: want a time above 0, such as 5s", c.Timeout)
	}
	found := readiness{URL: server.String()}
	if err := c.ask(ctx, server); ctx.Err() != nil {
		return ctx.Err()
	} else if err != nil {
		found.Reason = err.Error()
	}
	found.Ready = found.Reason == ""
	return closing(when(!found.Ready, exitBad), c.answer(std, found, nil, func(p *printer) {
		p.lineIf(found.Ready, "ready: %s", found.URL)
		p.lineIf(!found.Ready, "not ready: %s: %s", found.URL, found.Reason)
	}))
}

// maxReadyAnswer is more than a server says about itself, in bytes.
const maxReadyAnswer = 64 << 10

func (c *doctorCmd) ask(ctx context.Context, server *url.URL) error {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	if isLoopback(net.JoinHostPort(server.Hostname(), "0")) {
		// The certificate names the host that people type. Nothing secret is sent, and what listens on this machine's port is the server.
		transport.TLSClientConfig = &tls.Config{InsecureSkipVerify: true}
	}
	asker, err := client.NewClient(client.Config{URL: server.String(), HTTP: &http.Client{Transport: transport}, MaxAnswer: maxReadyAnswer})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	err = asker.Ready(ctx)
	var failed *url.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s", c.Timeout)
	case errors.As(err, &failed):
		return fmt.Errorf("no server answers there: %w", failed.Err)
	}
	return err
}

func (c *doctorCmd) server() (*url.URL, error) {
	if c.URL == "" {
		return c.own()
	}
	at := c.URL
	if _, port, err := net.SplitHostPort(at); err == nil {
		if _, err := strconv.ParseUint(port, 10, 16); err == nil {
			at = "http://" + at // as JURAT_ADDR has it
		}
	}
	u, err := url.Parse(at)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the server's address %q: want http:// or https:// and a host, such as http://127.0.0.1:8417", c.URL)
	}
	u.Path = ""
	return u, nil
}

// own is the address of the server that has the same environment as this command.
func (c *doctorCmd) own() (*url.URL, error) {
	host, port, err := net.SplitHostPort(c.Addr)
	if err != nil || port == "" || port == "0" {
		return nil, hint(fmt.Errorf("JURAT_ADDR %q names no port", c.Addr), "name the server's address: jurat doctor --ready http://127.0.0.1:8417")
	}
	switch ip := net.ParseIP(host); { // a server that listens on all addresses listens on this machine's own, too
	case host == "" || ip != nil && ip.IsUnspecified() && ip.To4() != nil:
		host = "127.0.0.1"
	case ip != nil && ip.IsUnspecified():
		host = "::1"
	}
	return &url.URL{Scheme: pick(c.TLSKey == "", "http", "https"), Host: net.JoinHostPort(host, port)}, nil
}

type hookTest struct {
	Host   string         `json:"host"` // without the path, which may hold a secret
	ID     string         `json:"id"`   // the header webhook-id
	Sent   jsontext.Value `json:"sent"`
	Status int            `json:"status,omitzero"` // of the answer; absent: there was none
	Millis int64          `json:"millis"`
	Taken  bool           `json:"taken"`
	Why    string         `json:"why,omitzero"` // why it was not taken
	Do     string         `json:"do,omitzero"`
}

func (c *doctorCmd) testWebhook(ctx context.Context, std stdio) error {
	name := cmp.Or(c.Config, panel.DefaultFile)
	file, err := parsed(name, panel.Parse)
	if err == nil && file.Webhook == nil {
		err = fmt.Errorf("%s: it names no webhook", name)
	}
	var receiver *webhook.Receiver
	if err == nil {
		receiver, err = file.Webhook.Receiver(os.Getenv)
	}
	if err != nil {
		return hint(fmt.Errorf("--config: %w", err), "docs/configuration.md shows such a file")
	}
	done, err := sendTest(ctx, file.Webhook, receiver)
	return closing(when(!done.Taken, exitBad), c.answer(std, done, err, func(p *printer) { p.sent(done) }))
}

func sendTest(ctx context.Context, w *panel.Webhook, to *webhook.Receiver) (hookTest, error) {
	now := time.Now()
	body, err := json.Marshal(map[string]any{"type": "webhook.test", "timestamp": evidence.FormatTime(now), "data": map[string]any{}}, json.Deterministic(true))
	at, wrong := url.Parse(w.URL)
	if err := cmp.Or(err, wrong); err != nil {
		return hookTest{}, err
	}
	t := hookTest{Host: at.Scheme + "://" + at.Host, ID: "test-" + rand.Text(), Sent: body}
	t.Status, err = to.Send(ctx, t.ID, now, body)
	t.Millis, t.Taken = time.Since(now).Milliseconds(), err == nil
	if ctx.Err() != nil {
		return t, ctx.Err()
	}
	if err != nil {
		t.Why, t.Do = err.Error(), hookAdvice(w, t.Status, err)
	}
	return t, nil
}

func is[E error](err error) bool {
	_, is := errors.AsType[E](err)
	return is
}

func hookAdvice(w *panel.Webhook, status int, err error) string {
	timeout, isNet := errors.AsType[net.Error](err)
	for _, about := range []struct {
		is bool
		do string
	}{
		{errors.Is(err, webhook.ErrInward) && w.Inward, "Link-local addresses stay closed. Give the receiver an address of the private network, or a public one."},
		{errors.Is(err, webhook.ErrInward), "If the receiver is in your own network, write inward: true beside its url. If not, ask why its name leads there."},
		{errors.Is(err, webhook.ErrGone), "The receiver wants no more messages, and the server stops this kind. Subscribe anew there, and correct the url."},
		{is[*net.DNSError](err), "This machine does not find the name. Correct the url, or the name server of this machine."},
		{is[x509.UnknownAuthorityError](err) || is[x509.HostnameError](err) || is[x509.CertificateInvalidError](err), "The certificate is not good for this name. " +
			"Mend it there, or name the file of your own authority in SSL_CERT_FILE, here and for the server."},
		{errors.Is(err, syscall.ECONNREFUSED), "Nothing listens there. Start the receiver, or correct the port in the url."},
		{isNet && timeout.Timeout(), "The receiver did not answer within 20 s. Look for a firewall, or let the receiver answer before it works on the message."},
		{!is[*webhook.RefusedError](err), "The connection did not come about, or broke. Look at the receiver's log."},
		{status >= 300 && status < 400, "Redirects are not followed. Write the address that the receiver redirects to as url."},
		{slices.Contains([]int{http.StatusUnauthorized, http.StatusForbidden, http.StatusBadRequest}, status), "If the receiver says that the signature is wrong: " +
			"give it the secret that this file names, and set both clocks right. Otherwise its log says what it lacks."},
		{status == http.StatusNotFound || status == http.StatusMethodNotAllowed, "The receiver takes no messages at this path. Correct the url."},
		{status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable, "The receiver is busy. The server tries again after a pause; try later."},
	} {
		if about.is {
			return about.do
		}
	}
	return "The receiver failed. Look for the message's id in its log."
}

func (p *printer) sent(t hookTest) {
	p.line("sent to %s, webhook-id %s:", t.Host, t.ID)
	p.text("  ", string(t.Sent))
	took := fmt.Sprintf("after %.1f s", float64(t.Millis)/1000)
	if t.Taken {
		p.line("taken, with status %d, %s", t.Status, took)
		return
	}
	p.warning("", "not taken, "+took+": "+strings.TrimSuffix(t.Why, "."))
	p.text("", t.Do)
}
