package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/internal/importing"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
	"jurat/internal/recording"
)

type importCmd struct {
	Files       []string `arg:"" name:"file" help:"Results, logs, conversations or session files."`
	Agent       string   `required:"" placeholder:"NAME" help:"The agent whose acts the files tell of."`
	From        string   `placeholder:"FORMAT" help:"The format, if the content does not show it: promptfoo, inspect, openai, responses, anthropic, gemini, a2a, claude-code, codex, otel."`
	Name        string   `placeholder:"NAME" help:"The name of conversations that have none of their own. Default: that of the file, without its extension."`
	Skip        bool     `help:"Pass over entries that cannot be read or were changed since they were imported. Without this, nothing is sealed if there are any."`
	DryRun      bool     `name:"dry-run" help:"List what would be sealed, and seal nothing."`
	Recorder    string   `placeholder:"NAME" default:"importer" help:"The name of the recorder that imports. It signs with keys of its own, never with the agent's."`
	InTheRecord bool     `name:"in-the-record" help:"Seal what was said in the record itself. Then it can never be erased."`
	jsonFlag
	keyFlags
	stampFlags
}

type importedFile struct {
	File    string            `json:"file"`
	Format  importing.Format  `json:"format"`
	Bytes   int64             `json:"bytes"`
	SHA256  evidence.Digest   `json:"sha256"`
	Sealed  int               `json:"sealed"`
	Found   importing.Tally   `json:"found"`
	Faults  []string          `json:"faults"`
	Chains  []string          `json:"chains"`            // the first of those with something new
	Entries []importing.Entry `json:"entries,omitempty"` // with --dry-run, the first of what would be sealed

	file *importing.File
}

const (
	mostListed = 10_000 // entries that --dry-run --json lists
	mostChains = 10
)

func (c *importCmd) Run(ctx context.Context, a *app, io stdio) error {
	format, err := importing.ParseFormat(c.From)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	err = cmp.Or(flagName("--agent", c.Agent), flagName("--recorder", c.Recorder))
	if err == nil && c.Name != "" {
		err = flagName("--name", c.Name)
	}
	switch {
	case err != nil:
		return err
	case c.Agent == c.Recorder:
		return errors.New("--recorder: the recorder is a witness, and cannot have the name of the agent")
	}
	var files []*importedFile
	for _, path := range c.Files {
		file, err := importing.Open(path, format)
		if err != nil {
			return err
		}
		files = append(files, &importedFile{File: file.Name, Format: file.Format, Bytes: file.Size, SHA256: file.SHA256, Faults: []string{}, Chains: []string{}, file: file})
	}
	if err := c.look(ctx, a, io, files); err != nil {
		return err
	}
	if c.DryRun || !anyNew(files) {
		return c.report(io, files, false)
	}
	return a.withStamps(ctx, io, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		err := c.seal(ctx, io, i, files)
		return errors.Join(err, c.report(io, files, err != nil))
	})
}

// look checks the files against the log, if there is one. A file that is refused makes none.
func (c *importCmd) look(ctx context.Context, a *app, io stdio, files []*importedFile) error {
	err := a.with(ctx, func(i *installation.Installation) error { return c.check(ctx, io, i, files) })
	if errors.Is(err, installation.ErrNone) {
		return c.check(ctx, io, nil, files)
	}
	return err
}

func (c *importCmd) options(i *installation.Installation) importing.Options {
	return importing.Options{Agent: c.Agent, Name: c.Name, Recorder: c.Recorder, Version: version(), Skip: c.Skip,
		Chain: func(name string) string { return recording.ChainOf(c.Agent, name) },
		Sealed: func(ctx context.Context, id string) (*importing.Sealed, error) {
			if i == nil {
				return nil, nil
			}
			r, err := i.Ledger.Record(ctx, id)
			switch {
			case errors.Is(err, ledger.ErrNotFound):
				return nil, nil
			case errors.Is(err, ledger.ErrExpired):
				return new(importing.Sealed), nil
			case err != nil:
				return nil, err
			}
			o := r.Payload.Observed
			if o == nil || o.Request == nil {
				return nil, fmt.Errorf("record %s is no imported act: its id is taken", id)
			}
			return &importing.Sealed{Bytes: o.Request.Bytes, SHA256: o.Request.SHA256}, nil
		}}
}

// check reads the files to their ends. It returns an error if something is wrong in one of them and is not to be passed over.
func (c *importCmd) check(ctx context.Context, io stdio, i *installation.Installation, files []*importedFile) error {
	wrong := 0
	for _, f := range files {
		o := c.options(i)
		tell := sinceLast(io, f.File)
		o.Progress = func(done, _ int64) { tell("%s read", plural.Of(done, "exchange")) }
		o.Each = f.note(c.DryRun)
		var err error
		if f.Found, err = importing.Check(ctx, f.file, o); err != nil {
			return hint(err, "nothing was sealed")
		}
		for _, fault := range f.Found.Faults {
			f.Faults = append(f.Faults, fault.Error())
			io.tell("%s", oneLine(fault))
		}
		faults := f.Found.Wrong + f.Found.Changed
		more := faults - len(f.Found.Faults)
		io.tellIf(more > 0, "%s: and %d more", f.File, more)
		wrong += faults
	}
	if wrong > 0 && !c.Skip && !c.DryRun {
		return hint(fmt.Errorf("%s cannot be imported; nothing was sealed", plural.Of(wrong, "entry")), "--skip passes over them")
	}
	return nil
}

func (f *importedFile) note(list bool) func(importing.Entry) {
	return func(e importing.Entry) {
		if len(f.Chains) < mostChains && !slices.Contains(f.Chains, e.Chain) {
			f.Chains = append(f.Chains, e.Chain)
		}
		if list && len(f.Entries) < mostListed {
			f.Entries = append(f.Entries, e)
		}
	}
}

func sinceLast(io stdio, what string) func(format string, args ...any) {
	last := time.Now()
	return func(format string, args ...any) {
		if time.Since(last) >= time.Second {
			last = time.Now()
			io.tell("%s: %s", what, fmt.Sprintf(format, args...))
		}
	}
}

func (c *importCmd) seal(ctx context.Context, io stdio, i *installation.Installation, files []*importedFile) (err error) {
	list := make([]any, len(files))
	for i, f := range files {
		list[i] = map[string]any{"file": f.File, "sha256": f.SHA256.String(), "format": f.Format}
	}
	r, err := secondHand(ctx, i, recording.Config{Name: c.Recorder, InTheRecord: c.InTheRecord, Tell: io.logger(false)},
		map[string]any{"agent": c.Agent, "files": list, "in_the_record": c.InTheRecord, "name": c.Name, "skip": c.Skip})
	if err != nil {
		return err
	}
	ending := context.WithoutCancel(ctx) // what was begun is sealed, however this ends
	defer func() { err = errors.Join(err, r.Close(ending, c.reason(files, err))) }()
	for _, f := range files {
		if f.Found.New == 0 {
			continue
		}
		o := c.options(i)
		done := progress(io, f.File+": exchanges sealed")
		sealed := int64(0)
		o.Seal = func(ctx context.Context, id string, act observed.Act) error {
			_, err := r.Report(ctx, recording.Report{Agent: c.Agent, Chain: strings.TrimPrefix(act.ChainID, recording.ChainOf(c.Agent, "")), Act: act, ID: id,
				OtherID: evidence.RecordIDFor("", id, act.Request.SHA256.String())})
			return err
		}
		o.Each = func(importing.Entry) { sealed++; done(sealed, int64(f.Found.New)) }
		tally, err := importing.Seal(ctx, f.file, o)
		f.Sealed = tally.New
		if err != nil {
			return hint(err, "what was sealed stands; the same command goes on from there")
		}
	}
	return nil
}

func anyNew(files []*importedFile) bool {
	return slices.ContainsFunc(files, func(f *importedFile) bool { return f.Found.New > 0 })
}

func (c *importCmd) reason(files []*importedFile, err error) string {
	sealed := 0
	for _, f := range files {
		sealed += f.Sealed
	}
	return fmt.Sprintf("imported %s of %s%s", plural.Of(sealed, "exchange"), plural.Of(len(files), "file"), pick(err != nil, ", and did not come to the end", ""))
}

func (c *importCmd) report(io stdio, files []*importedFile, failed bool) error {
	return c.answer(io, map[string][]*importedFile{"files": files}, func(p *printer) { c.told(io, p, files, failed) })
}

func (c *importCmd) told(io stdio, p *printer, files []*importedFile, failed bool) {
	example := ""
	for _, f := range files {
		t, count := &f.Found, f.Sealed
		if c.DryRun {
			count = t.New
		}
		p.line("%s: %s, %s in %s: %d %s, %d already sealed%s", f.File, f.Format, plural.Of(t.Entries, "exchange"), plural.Of(t.Chains, "conversation"), count, pick(c.DryRun, "to seal", "sealed"), t.Known, passedOver(t))
		for _, e := range f.Entries {
			p.line("  %s  %s  %s, %s%s", e.Chain, e.Place, plural.Of(e.Prompt+e.Answers, "message"), plural.Of(e.Bytes, "byte"), more(e))
		}
		if len(f.Entries) == 0 {
			for _, chain := range f.Chains {
				p.line("  %s", chain)
			}
		}
		if example == "" && len(f.Chains) > 0 {
			example = f.Chains[0]
		}
	}
	io.tellIf(example != "" && !c.DryRun && !failed && anyNew(files), "hint: 'jurat records --show %s' shows what was imported, 'jurat trial --recorded %s' tries it", quote(example), quote(example))
}

func passedOver(t *importing.Tally) string {
	var r remarks
	r.add(t.Wrong > 0, "%d that cannot be read", t.Wrong)
	r.add(t.Changed > 0, "%d that were changed", t.Changed)
	return r.behind(", ")
}

func more(e importing.Entry) string {
	var r remarks
	r.add(e.SaidAt != "", "said at %s", e.SaidAt)
	r.add(e.Model != "", "%s", e.Model)
	return r.behind(", ")
}
