package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/observed"
	"jurat/evidence/scitt"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/plural"
	"jurat/internal/log/installation"
	"jurat/internal/log/ledger"
	"jurat/internal/tap/importing"
	"jurat/internal/tap/sealer"
	"jurat/internal/web/openssl"
	"jurat/verify"
	"jurat/verify/trust"
)

type exportCmd struct {
	File     string   `arg:"" help:"A record file or a case file; - is standard input."`
	OpenSSL  string   `name:"openssl" xor:"to" placeholder:"DIR" help:"Write what openssl needs to this folder; made if it is missing."`
	SCITT    string   `name:"scitt" xor:"to" placeholder:"OUT" help:"Write a SCITT Signed Statement with a receipt of the log (COSE, RFC 9943 and 9942): a record to this file, each record of a case file into this folder."`
	Withhold []string `xor:"to" placeholder:"POINTER" sep:"none" help:"Write the file without this text sealed apart: prompt, /metadata/user_id. May be repeated."`
	Record   string   `placeholder:"ID" help:"With --withhold: only of the record with this id. Default: of every record in the file."`
	Out      string   `placeholder:"FILE" help:"With --withhold: the file to write, which must not be there. Default: standard output."`
	Trust    string   `help:"With --openssl: the trust file whose public keys and authorities are written. Default: this installation's own."`
	Key      string   `placeholder:"FILE" help:"With --scitt: the private key (PKCS #8 in PEM) that signs. Default: this installation's operator's."`
}

func (c *exportCmd) Run(ctx context.Context, a *app, std stdio) error {
	none := refuse(c.OpenSSL+c.SCITT == "" && c.Withhold == nil, "missing flags: --openssl=DIR, --scitt=OUT or --withhold=POINTER")
	err := cmp.Or(hint(none, "run 'jurat export --help' to see what there is"),
		refuse(c.OpenSSL == "" && c.Trust != "", "--trust is for --openssl: a statement takes nothing from a trust file"),
		refuse(c.SCITT == "" && c.Key != "", "--key is for --scitt: nothing else is signed"),
		refuse(c.Withhold == nil && c.Record+c.Out != "", "--record and --out are for --withhold"))
	if err != nil {
		return err
	}
	doc, err := readInput(std.in, c.File)
	if err != nil {
		return err
	}
	if c.Withhold != nil {
		return c.withhold(std, doc)
	}
	if c.SCITT != "" {
		return c.statements(ctx, a, std, doc)
	}
	records, err := openRecords(doc)
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	trusted, err := c.trust(ctx, a)
	if err != nil {
		return err
	}
	commands, err := openssl.Write(records, trusted, c.put)
	if err != nil {
		return err
	}
	p := newPrinter(std.out)
	p.line("cd %s", quote(c.OpenSSL))
	p.lines(commands)
	return p.err
}

func (c *exportCmd) put(name string, content []byte) error {
	path := filepath.Join(c.OpenSSL, filepath.FromSlash(name))
	mode := os.FileMode(0o644)
	if name == openssl.Script {
		mode = 0o755
	}
	return errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, mode))
}

func (c *exportCmd) trust(ctx context.Context, a *app) (trusted *trust.Trust, err error) {
	if c.Trust != "" {
		return readTrust("--trust", c.Trust)
	}
	err = a.with(ctx, func(i *installation.Installation) error {
		trusted, err = i.Trust(ctx)
		return err
	})
	return trusted, hint(err, "give the trust file with --trust FILE; without it, the keys come from the installation in the data folder")
}

func openRecords(doc []byte) ([]*evidence.Record, error) {
	if scitt.Is(doc) {
		s, err := scitt.Parse(doc)
		if err != nil {
			return nil, err
		}
		r, err := s.Record()
		return []*evidence.Record{r}, err
	}
	_, records, err := openFile(doc)
	return records, err
}

// separate refuses to write what is exported over what it is made of.
func (c *exportCmd) separate(flag, name string) error {
	out, err := os.Stat(name)
	if err != nil {
		return nil // there is nothing to write over
	}
	for _, file := range []string{c.File, c.Key} {
		if in, err := os.Stat(file); err == nil && os.SameFile(in, out) {
			return fmt.Errorf("%s %s: that is a file that it would be made of", flag, name)
		}
	}
	return nil
}

func (c *exportCmd) statements(ctx context.Context, a *app, std stdio, doc []byte) error {
	if err := c.separate("--scitt", c.SCITT); err != nil {
		return err
	}
	m, records, err := marshaler(nil), []*evidence.Record(nil), error(nil)
	if evidence.IsBundle(doc) {
		m, records, err = openFile(doc)
	} else {
		records, err = openRecords(doc)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	s := &statementExport{out: func(*evidence.Record) string { return c.SCITT }}
	if b, many := m.(*evidence.Bundle); many {
		for _, r := range records {
			if r.Log != nil { // the bundle has the checkpoints for all of them
				r.Log.Checkpoint, r.Log.Anchors = b.Checkpoint, b.Anchors
			}
		}
		if err := os.MkdirAll(c.SCITT, 0o755); err != nil {
			return err
		}
		s.out = func(r *evidence.Record) string { return filepath.Join(c.SCITT, r.Payload.RecordID+".scitt") }
	}
	if err := c.writeStatements(ctx, a, std, s, records); err != nil {
		return err
	}
	s.tell(std)
	return nil
}

// writeStatements writes with the installation in the data folder. An owner who signs with --key may have none, and then no log.
func (c *exportCmd) writeStatements(ctx context.Context, a *app, std stdio, s *statementExport, records []*evidence.Record) error {
	if c.Key == "" {
		return hint(a.with(ctx, func(i *installation.Installation) error {
			signers, err := i.Keys.Signers(ctx, evidence.RoleOperator, ledger.OperatorName)
			if err != nil {
				return err
			}
			return s.all(ctx, std, i, signers, records)
		}), "or give a private key with --key FILE")
	}
	signers, err := readKeys([]string{c.Key}, client.ParseKey)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	err = a.with(ctx, func(i *installation.Installation) error { return s.all(ctx, std, i, signers, records) })
	if errors.Is(err, installation.ErrNone) {
		return s.all(ctx, std, nil, signers, records)
	}
	return err
}

type statementExport struct {
	signer  evidence.Signer
	log     *installation.Installation // nil: none, and then no receipts
	out     func(*evidence.Record) string
	written int
	without int   // receipts
	why     error // of the first one without a receipt
}

func (s *statementExport) all(ctx context.Context, std stdio, log *installation.Installation, signers []evidence.Signer, records []*evidence.Record) error {
	n := slices.IndexFunc(signers, func(s evidence.Signer) bool {
		return s.Info().Algorithm == evidence.ES256 || s.Info().Algorithm == evidence.Ed25519
	})
	if n < 0 {
		return fmt.Errorf("%w, and this key signs by %s", scitt.ErrAlgorithm, signers[0].Info().Algorithm)
	}
	s.log, s.signer = log, signers[n]
	tell := progress(std, "records")
	for i, r := range records {
		if err := s.write(ctx, r); err != nil {
			return fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		tell(int64(i+1), int64(len(records)))
	}
	return nil
}

func (s *statementExport) write(ctx context.Context, r *evidence.Record) error {
	var receipts [][]byte
	receipt, err := []byte(nil), fmt.Errorf("%w: the data folder has no log", scitt.ErrNoReceipt)
	if s.log != nil {
		receipt, err = s.log.Receipt(ctx, r)
	}
	switch {
	case err == nil:
		receipts = append(receipts, receipt)
	case errors.Is(err, scitt.ErrNoReceipt):
		s.without, s.why = s.without+1, cmp.Or(s.why, err)
	default:
		return err
	}
	doc, err := scitt.Sign(r, s.issuer(r), s.signer, receipts...)
	if err != nil {
		return err
	}
	s.written++
	return atomicfile.Replace(s.out(r), doc, 0o644)
}

// issuer is the record's actor if the key is one of the record's, and otherwise the operator.
func (s *statementExport) issuer(r *evidence.Record) string {
	if slices.ContainsFunc(r.Payload.Signers, func(info evidence.SignerInfo) bool { return info.KeyID == s.signer.Info().KeyID }) {
		return scitt.Issuer(r.Payload.Role(), r.Payload.Actor())
	}
	return scitt.Issuer(evidence.RoleOperator, ledger.OperatorName)
}

func (s *statementExport) tell(std stdio) {
	if s.without > 0 {
		std.tell("%d of %s got no receipt: %v", s.without, plural.Of(s.written, "statement"), s.why)
		std.tell("hint: what 'jurat log prove' wrote gets one, from the operator of that log")
	}
}

func (p *printer) statement(s *verify.Statement) {
	if s == nil {
		return
	}
	p.text("  ", inert(fmt.Sprintf("a statement of the issuer %q about %q, of the type %q", s.Issuer, s.Subject, s.ContentType)))
	for _, r := range s.Receipts {
		p.text("  ", inert(fmt.Sprintf("receipt: %s: %s", r.Status, r.Reason)))
	}
}

func (c *exportCmd) withhold(std stdio, doc []byte) error {
	pointers, err := readPointers("--withhold", c.Withhold)
	if err != nil {
		return err
	}
	file, records, err := openFile(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "only a whole record or case file can be written without texts; 'jurat verify' says more")
	}
	if c.Record != "" {
		records = slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return r.Payload.RecordID != c.Record })
		if len(records) == 0 {
			return fmt.Errorf("%s: it has no record %q", c.File, c.Record)
		}
	}
	withheld, err := evidence.Withhold(records, pointers)
	err = hintIf(evidence.ErrNotApart, err, "what is to be withheld later is sealed apart at once: 'jurat seal --apart', 'jurat apart'; nothing was written")
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := writeTo(std, c.Out, file); err != nil {
		return err
	}
	for _, w := range withheld {
		std.tell("record %s: %s: %s", w.RecordID, w.Pointer, pick(w.Already, "the text was not in the file", "withheld"))
	}
	return nil
}

func writeTo(std stdio, out string, file marshaler) error {
	if out == "" {
		return std.print(file, nil)
	}
	doc, err := file.Marshal()
	if err != nil {
		return err
	}
	err = atomicfile.Create(out, doc, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("--out: %s is there already", out), "name another file, or remove it yourself")
	}
	return err
}

// openFile opens a record or a bundle in any spelling, so that it can be written again in its canonical form.
func openFile(doc []byte) (marshaler, []*evidence.Record, error) {
	if evidence.IsBundle(doc) {
		b, _, err := evidence.ReadWholeBundle(doc)
		if err != nil {
			return nil, nil, err
		}
		return b, b.Records, nil
	}
	r, _, err := evidence.Read(doc)
	if err != nil {
		return nil, nil, err
	}
	return r, []*evidence.Record{r}, nil
}

type importCmd struct {
	Files       []string `arg:"" name:"file" help:"Results, logs, conversations or session files."`
	Agent       string   `required:"" placeholder:"NAME" help:"The agent whose acts the files tell of."`
	From        string   `placeholder:"FORMAT" help:"The format, if the content does not show it: promptfoo, inspect, openai, responses, anthropic, gemini, a2a, claude-code, codex, otel."`
	Name        string   `placeholder:"NAME" help:"The name of conversations that have none of their own. Default: that of the file, without its extension."`
	Skip        bool     `help:"Pass over entries that cannot be read or were changed since they were imported. Without this, nothing is sealed if there are any."`
	DryRun      bool     `name:"dry-run" help:"List what would be sealed, and seal nothing."`
	Recorder    string   `placeholder:"NAME" default:"importer" help:"The name of the recorder that imports. It signs with its own keys, never with the agent's."`
	InTheRecord bool     `name:"in-the-record" help:"Seal what was said in the record itself. Then it can never be erased."`
	jsonFlag
	keyFlags
	stampFlags
}

type importedFile struct {
	*importing.File
	Sealed  int               `json:"sealed"`
	Found   importing.Tally   `json:"found"`
	Faults  []string          `json:"faults"`
	Chains  []string          `json:"chains"`            // the first of those with something new
	Entries []importing.Entry `json:"entries,omitempty"` // with --dry-run, the first of what would be sealed
}

const (
	mostListed = 10_000 // entries that --dry-run --json lists
	mostChains = 10
)

func (c *importCmd) Run(ctx context.Context, a *app, std stdio) error {
	format, err := importing.ParseFormat(c.From)
	err = cmp.Or(refuse(err != nil, "--from: %w", err), flagName("--agent", c.Agent), flagName("--recorder", c.Recorder), ifGiven("--name", c.Name),
		refuse(c.Agent == c.Recorder, "--recorder: the recorder is a witness, and cannot have the name of the agent"))
	if err != nil {
		return err
	}
	var files []*importedFile
	for _, path := range c.Files {
		file, err := importing.Open(path, format)
		if err != nil {
			return err
		}
		files = append(files, &importedFile{File: file, Faults: []string{}, Chains: []string{}})
	}
	if err := c.look(ctx, a, std, files); err != nil {
		return err
	}
	if c.DryRun || !anyNew(files) {
		return c.report(std, files, false)
	}
	return a.withStamps(ctx, std, c.keyFlags, c.stampFlags, func(i *installation.Installation) error {
		err := c.seal(ctx, std, i, files)
		return errors.Join(err, c.report(std, files, err != nil))
	})
}

// look checks the files against the log, if there is one. A file that is refused makes none.
func (c *importCmd) look(ctx context.Context, a *app, std stdio, files []*importedFile) error {
	err := a.with(ctx, func(i *installation.Installation) error { return c.check(ctx, std, i, files) })
	if errors.Is(err, installation.ErrNone) {
		return c.check(ctx, std, nil, files)
	}
	return err
}

func (c *importCmd) options(i *installation.Installation) importing.Options {
	return importing.Options{Agent: c.Agent, Name: c.Name, Recorder: c.Recorder, Version: version(), Skip: c.Skip,
		Chain: func(name string) string { return sealer.ChainOf(c.Agent, name) },
		Sealed: func(ctx context.Context, id string) (*evidence.ObservedBody, error) {
			if i == nil {
				return nil, nil
			}
			r, err := i.Ledger.Record(ctx, id)
			switch {
			case errors.Is(err, ledger.ErrNotFound):
				return nil, nil
			case errors.Is(err, ledger.ErrExpired):
				return new(evidence.ObservedBody), nil
			case err != nil:
				return nil, err
			}
			o := r.Payload.Observed
			if o == nil || o.Request == nil {
				return nil, fmt.Errorf("record %s is no imported act: its id is taken", id)
			}
			return o.Request, nil
		}}
}

// check reads the files to their ends. It returns an error if something is wrong in one of them and is not to be passed over.
func (c *importCmd) check(ctx context.Context, std stdio, i *installation.Installation, files []*importedFile) error {
	wrong := 0
	for _, f := range files {
		o := c.options(i)
		last := time.Now()
		o.Progress = func(done, _ int64) {
			if time.Since(last) >= time.Second {
				last = time.Now()
				std.tell("%s: %s read", f.Name, plural.Of(done, "exchange"))
			}
		}
		o.Each = f.note(c.DryRun)
		var err error
		if f.Found, err = importing.Check(ctx, f.File, o); err != nil {
			return hint(err, "nothing was sealed")
		}
		for _, fault := range f.Found.Faults {
			f.Faults = append(f.Faults, fault.Error())
			std.tell("%s", oneLine(fault))
		}
		faults := f.Found.Wrong + f.Found.Changed
		more := faults - len(f.Found.Faults)
		std.tellIf(more > 0, "%s: and %d more", f.Name, more)
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

func (c *importCmd) seal(ctx context.Context, std stdio, i *installation.Installation, files []*importedFile) (err error) {
	list := make([]any, len(files))
	for i, f := range files {
		list[i] = map[string]any{"file": f.Name, "sha256": f.SHA256.String(), "format": f.Format}
	}
	r, err := secondHand(ctx, i, sealer.Config{Name: c.Recorder, InTheRecord: c.InTheRecord, Tell: std.logger(false)},
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
		done := progress(std, f.Name+": exchanges sealed")
		sealed := int64(0)
		o.Seal = func(ctx context.Context, act observed.Act) error {
			_, err := r.Report(ctx, act, evidence.RecordIDFor("", act.RecordID, act.Request.SHA256.String()))
			return err
		}
		o.Each = func(importing.Entry) { sealed++; done(sealed, int64(f.Found.New)) }
		tally, err := importing.Seal(ctx, f.File, o)
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

func (c *importCmd) report(std stdio, files []*importedFile, failed bool) error {
	return c.answer(std, map[string][]*importedFile{"files": files}, nil, func(p *printer) { c.told(std, p, files, failed) })
}

func (c *importCmd) told(std stdio, p *printer, files []*importedFile, failed bool) {
	example := ""
	for _, f := range files {
		t, count := &f.Found, f.Sealed
		if c.DryRun {
			count = t.New
		}
		var skipped remarks
		skipped.add(t.Wrong > 0, "%d that cannot be read", t.Wrong)
		skipped.add(t.Changed > 0, "%d that were changed", t.Changed)
		p.line("%s: %s, %s in %s: %d %s, %d already sealed%s", f.Name, f.Format, plural.Of(t.Entries, "exchange"), plural.Of(t.Chains, "conversation"), count,
			pick(c.DryRun, "to seal", "sealed"), t.Known, skipped.behind(", "))
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
	std.tellIf(example != "" && !c.DryRun && !failed && anyNew(files), "hint: 'jurat records --show %s' shows what was imported, 'jurat trial --recorded %s' tries it", quote(example), quote(example))
}

func more(e importing.Entry) string {
	var r remarks
	r.add(e.SaidAt != "", "said at %s", e.SaidAt)
	r.add(e.Model != "", "%s", e.Model)
	return r.behind(", ")
}
