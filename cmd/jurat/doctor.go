package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"jurat/internal/config"
	"jurat/internal/installation"
	"jurat/internal/plural"
)

type doctorCmd struct {
	URL       string `arg:"" optional:"" placeholder:"URL" help:"With --ready: the server's address, such as https://jurat.example. Default: where 'jurat serve' listens in the same environment, or http://127.0.0.1:8417."`
	Ready     bool   `xor:"what" help:"Only ask a server whether it is ready: for health checks of containers and scripts."`
	Recorders bool   `xor:"what" help:"Only say which recorders run, what they sealed and missed, and what waits."`
	Webhook   bool   `xor:"what" help:"Only send the webhook of the configuration a test message."`
	Config    string `placeholder:"FILE" env:"JURAT_CONFIG" help:"The jury's configuration. Default: jurat.yaml in the working directory, if it is there."`
	Network   bool   `help:"Also ask each time-stamping authority outside for one time stamp. A paid one counts it."`
	jsonFlag
	readyFlags
}

// State is how well something is.
type state string

const (
	fine   state = "ok"
	look   state = "look"
	broken state = "broken"
)

// A finding is what the doctor says of one thing.
type finding struct {
	About string `json:"about"`
	State state  `json:"state"`
	What  string `json:"what"`
	Do    string `json:"do,omitempty"`
}

// An examination is what was found so far.
type examination struct {
	Findings []finding `json:"findings"`
}

func (e *examination) add(about string, s state, what, do string) {
	e.Findings = append(e.Findings, finding{about, s, what, do})
}

// fail adds an error, with the advice that comes with it.
func (e *examination) fail(about string, err error) {
	err = advise(err)
	var h hinted
	errors.As(err, &h)
	e.add(about, broken, oneLine(err), h.hint)
}

// code is the exit code.
func (e *examination) code() error {
	worst := exitCode(0)
	for _, f := range e.Findings {
		switch f.State {
		case broken:
			worst = exitCannot
		case look:
			worst = max(worst, exitBad)
		}
	}
	if worst == 0 {
		return nil
	}
	return worst
}

// Run examines, or does what the flags say.
func (c *doctorCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.URL != "" && !c.Ready:
		return errors.New("a server's address goes with --ready")
	case c.Ready:
		return c.ready(ctx, io)
	case c.Recorders:
		return c.recorders(ctx, a, io)
	case c.Webhook:
		return c.testWebhook(ctx, io)
	}
	var e examination
	b := thisBuild()
	e.add("program", fine, fmt.Sprintf("jurat %s, built by %s for %s", b.Version, b.Go, b.Platform), "")
	c.jury(&e)
	c.installation(ctx, a, &e)
	if err := ctx.Err(); err != nil {
		return err
	}
	if c.JSON {
		return closing(e.code(), io.json(e))
	}
	p := newPrinter(io.out)
	p.examined(e.Findings)
	return closing(e.code(), p.err)
}

// jury looks at the configuration, and at the keys that its seats need.
func (c *doctorCmd) jury(e *examination) {
	name, rule := c.Config, "named by --config or JURAT_CONFIG"
	if name == "" {
		name, rule = config.DefaultFile, "found in the working directory"
	}
	file := &config.File{}
	switch doc, err := os.ReadFile(name); {
	case errors.Is(err, fs.ErrNotExist) && c.Config == "":
		e.add("configuration", fine, "none: the default panel sits", "")
	case err != nil:
		e.fail("configuration", hint(err, "name a file that can be read, or leave --config and JURAT_CONFIG out"))
		return
	default:
		if file, err = config.Parse(doc); err != nil {
			e.fail("configuration", hint(fmt.Errorf("%s: %w", name, err), "docs/configuration.md has every key; 'jurat init config FILE' writes one that is right"))
			return
		}
		e.add("configuration", fine, name+", "+rule, "")
	}
	plan, err := config.NewPlan(file, config.Wishes{Jurors: config.Kind(os.Getenv("JURAT_JURORS"))}, os.Getenv)
	if err != nil {
		e.fail("jury", hint(err, "'jurat trial --help' says where keys are looked for"))
		return
	}
	c.keys(e, plan)
}

// keys says which seats have a key. It never shows one.
func (c *doctorCmd) keys(e *examination, plan *config.Plan) {
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
		recorders, err := statusOf(ctx, i, time.Now(), progress(a.io, "records looked at"))
		if err != nil {
			return err
		}
		e.Findings = append(e.Findings, recorders.Findings...)
		return c.authorities(ctx, i, e)
	})
	switch {
	case errors.Is(err, installation.ErrNone):
		var h hinted
		errors.As(advise(err), &h)
		e.add("installation", look, where+": there is none yet", h.hint)
	case err != nil:
		e.fail("installation", err)
	}
	disk(a.Data, e)
}

const (
	oddClock = time.Minute // how much the clock may be behind the last record
	freeDisk = 1 << 30     // bytes below which the doctor warns
)

// clock compares this machine's clock with the time stamps of the last record.
func (*doctorCmd) clock(ctx context.Context, i *installation.Installation, e *examination) error {
	last, err := i.LastStamped(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	switch {
	case last.IsZero():
		e.add("clock", fine, now.UTC().Format(time.RFC3339)+"; no record is stamped to compare with", "")
	case last.Sub(now) > oddClock:
		e.add("clock", look, fmt.Sprintf("%s, which is before the last record was stamped (%s)", now.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)),
			"set the clock by NTP: until it has caught up, records are stamped with the last record's time, or with one that is before it")
	default:
		e.add("clock", fine, fmt.Sprintf("%s; the last record was stamped %s", now.UTC().Format(time.RFC3339), last.UTC().Format(time.RFC3339)), "")
	}
	return nil
}

// authorities says which authorities outside stamp, and with --network whether they answer.
func (c *doctorCmd) authorities(ctx context.Context, i *installation.Installation, e *examination) error {
	list, err := i.Timekeeper.List(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		e.add("authorities", look, "only the built-in one stamps: time is proved only as far as the operator's own clock is trusted", "'jurat tsa NAME URL --root FILE' adds one")
	}
	for _, o := range list {
		if !c.Network {
			e.add("authorities", fine, o.Name+": "+o.URL+" (not asked: --network asks)", "")
		} else if err := o.Try(ctx); err != nil {
			e.add("authorities", look, o.Name+": "+oneLine(err), "records wait for its time stamps meanwhile: 'jurat log stamp' asks again; 'jurat tsa NAME --remove' stops asking it")
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
