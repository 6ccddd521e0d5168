package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/filestore"
	"jurat/internal/log/installation"
	"jurat/internal/log/stamping"
	"jurat/internal/log/witness"
)

type tsaCmd struct {
	Name   string `arg:"" optional:"" help:"A name of your choice."`
	URL    string `arg:"" optional:"" help:"Add the authority that answers RFC 3161 queries there: it stamps every record from now on."`
	Root   string `aliases:"roots" placeholder:"FILE" help:"Its root certificates in PEM, from a source that you trust. Required, unless --qualified is given."`
	Policy string `placeholder:"OID" help:"The policy to ask for and to insist on."`

	Qualified bool   `help:"It must be a qualified trust service by the European Union's trusted lists, now and at each time stamp."`
	Trust     string `placeholder:"FILE" help:"With --qualified: a trust file that 'jurat trust eu' wrote from the lists."`

	Untried bool `help:"Do not ask it for a time stamp now."`
	Remove  bool `help:"Stop asking this authority."`
	Forget  bool `help:"With --remove: give up the time stamps that records wait for."`
}

func (c *tsaCmd) Run(ctx context.Context, a *app, std stdio) error {
	adds := c.Root + c.Policy + c.Trust
	switch {
	case c.Name == "" && !c.Remove && !c.Forget && !c.Qualified && !c.Untried && adds == "":
		return a.with(ctx, func(i *installation.Installation) error { return listAuthorities(ctx, i, std) })
	case c.Remove && c.Name != "" && c.URL == "" && !c.Qualified && !c.Untried && adds == "":
		return a.with(ctx, func(i *installation.Installation) error { return c.remove(ctx, i, std) })
	case c.Remove || c.Forget || c.URL == "":
		return hint(errors.New("want NAME URL --root FILE, NAME --remove, or nothing"), "'jurat tsa' lists the authorities")
	case c.Qualified:
		return c.qualified(ctx, a, std)
	}
	return c.add(ctx, a, std)
}

func (c *tsaCmd) add(ctx context.Context, a *app, std stdio) error {
	if c.Trust != "" || c.Root == "" {
		return errors.New("want either --root FILE, or --qualified with --trust FILE")
	}
	roots, err := readFile(c.Root)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		err := i.Timekeeper.Add(ctx, stamping.Outside{Name: c.Name, URL: c.URL, Roots: string(roots), Policy: c.Policy}, c.Untried)
		std.tellIf(err == nil, "%s stamps every record from now on: give the new trust file ('jurat trust') to those who verify, and restart running servers", c.Name)
		return hintIf(stamping.ErrUnavailable, err, "--untried adds it without asking; records then wait for its time stamps")
	})
}

func (c *tsaCmd) qualified(ctx context.Context, a *app, std stdio) error {
	err := cmp.Or(hint(refuse(c.Trust == "", "--qualified needs --trust FILE: the trust file with what the trusted lists say"), "'jurat trust eu' writes one"),
		refuse(c.Root != "" || c.Untried, "--qualified takes the certificates from --trust FILE, so it goes with neither --root nor --untried"))
	if err != nil {
		return err
	}
	file, err := readTrust("--trust", c.Trust)
	if err != nil {
		return err
	}
	return a.with(ctx, func(i *installation.Installation) error {
		q, err := i.Timekeeper.AddQualified(ctx, stamping.Outside{Name: c.Name, URL: c.URL, Policy: c.Policy}, file)
		if err != nil {
			return err
		}
		return std.line("%s is the qualified service %q of %q, by the trusted list of %s number %d, issued %s", c.Name, q.Service, q.TSP, q.Territory, q.List.Sequence, evidence.FormatTime(q.List.Issued))
	})
}

func listAuthorities(ctx context.Context, i *installation.Installation, std stdio) error {
	list, err := i.Timekeeper.List(ctx)
	owing, failed := i.Ledger.Owing(ctx)
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	waiting := map[string]string{}
	for _, o := range owing {
		waiting[o.Authority] = fmt.Sprintf("%d waiting since %s", o.Records, evidence.FormatTime(o.Since))
	}
	t := table{heads: []head{{name: "authority"}, {name: "what it is", rank: 1}}}
	t.row("(built in)", "the operator's own clock")
	for _, o := range list {
		t.row(o.Name, strings.Join(strings.Fields(o.URL+" "+o.Policy+" "+qualifiedUntil(&o)+" "+waiting[o.Name]), " "))
		delete(waiting, o.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(waiting)) {
		t.row(name, "removed; "+waiting[name])
	}
	return errors.Join(jsonFlag{}.list(std, nil, nil, &t, ""), tellDue(ctx, std, i))
}

func qualifiedUntil(o *stamping.Outside) string {
	switch until := o.Until(); {
	case o.Qualified == nil:
		return ""
	case until.IsZero():
		return "qualified"
	default:
		return "qualified, by lists until " + evidence.FormatTime(until)
	}
}

func tellDue(ctx context.Context, std stdio, i *installation.Installation) error {
	notes, err := i.Timekeeper.Due(ctx)
	return errors.Join(err, tellAll(std, "time: ", notes))
}

func (c *tsaCmd) remove(ctx context.Context, i *installation.Installation, std stdio) error {
	n, err := i.Timekeeper.Remove(ctx, c.Name, c.Forget)
	std.tellIf(err == nil && n > 0, "time: given up for %s: the time stamps of %s", c.Name, plural.Of(n, "record"))
	std.tellIf(err == nil, "its tokens stay; keep its root in the trust files of those who verify them")
	return err
}

type logStampCmd struct {
	List       bool      `xor:"what" help:"Only list the records that wait."`
	Checkpoint bool      `xor:"what" help:"Have the log's checkpoint stamped: one time stamp for all records."`
	Renew      bool      `xor:"what" help:"Renew the time stamps of checkpoints before the certificates that they rest on end."`
	Before     time.Time `placeholder:"TIME" help:"With --renew: what rests on certificates that end before this time (RFC 3339). Default: a year from now."`
	TSA        []string  `name:"tsa" sep:"none" placeholder:"NAME|URL" help:"With --checkpoint or --renew: ask these authorities (may be repeated). Default: all of 'jurat tsa'; for --renew the first, or the built-in one."`
	jsonFlag
}

func (c *logStampCmd) Run(ctx context.Context, a *app, std stdio) error {
	switch {
	case c.JSON && !c.List, !c.Before.IsZero() && !c.Renew, c.TSA != nil && !c.Checkpoint && !c.Renew:
		return errors.New("--json goes with --list, --before with --renew, --tsa with --checkpoint or --renew")
	case c.Renew && len(c.TSA) > 1:
		return errors.New("--renew takes one authority with --tsa")
	case c.Checkpoint:
		return a.with(ctx, func(i *installation.Installation) error { return anchor(ctx, i, std) }, c.TSA...)
	}
	do := stamp
	switch {
	case c.List:
		do = c.pending
	case c.Renew:
		do = c.renew
	}
	return a.with(ctx, func(i *installation.Installation) error { return do(ctx, i, std) })
}

func stamp(ctx context.Context, i *installation.Installation, std stdio) error {
	outcomes, err := i.Timekeeper.Stamp(ctx, stamping.Order{Progress: steps(std, "stamped by ")})
	still := false
	p := newPrinter(std.out)
	for _, o := range outcomes {
		p.line("%s: %d stamped, %d still waiting%s", o.Authority, o.Stamped, o.Records, because(o.Reason))
		still = still || o.Records > 0
		if errors.Is(o.Reason, stamping.ErrNotConfigured) {
			std.tell("hint: 'jurat tsa %s URL --root FILE' adds it again; 'jurat tsa %s --remove --forget' gives its stamps up",
				o.Authority, o.Authority)
		}
	}
	p.lineIf(len(outcomes) == 0, "nothing waits for a time stamp")
	return cmp.Or(errors.Join(err, p.err), when(still, exitUndecided))
}

type pendingLine struct {
	Authority string `json:"authority"`
	Since     string `json:"since"`
	Index     int64  `json:"index"`
	Record    string `json:"record"`
	Stamps    int    `json:"stamps"` // that it has
}

func (c *logStampCmd) pending(ctx context.Context, i *installation.Installation, std stdio) error {
	lines, err := pending(ctx, i)
	t := table{heads: []head{{name: "authority", rank: 2}, {name: "since", rank: 3}, {name: "record", rank: 1}, {name: "index", right: true}, {name: "time stamps", right: true}}}
	for _, l := range lines {
		t.row(l.Authority, l.Since, l.Record, l.Index, l.Stamps)
	}
	if err := c.list(std, lines, err, &t, "nothing waits for a time stamp"); err != nil || c.JSON {
		return err
	}
	return tellDue(ctx, std, i)
}

func pending(ctx context.Context, i *installation.Installation) ([]pendingLine, error) {
	owing, err := i.Ledger.Owing(ctx)
	if err != nil {
		return nil, err
	}
	lines := []pendingLine{}
	for _, o := range owing {
		for from := int64(0); ; {
			page, err := i.Ledger.Waiting(ctx, o.Authority, from, operator.MaxLateStamps)
			if err != nil {
				return nil, err
			}
			if len(page) == 0 {
				break
			}
			for _, w := range page {
				lines = append(lines, pendingLine{Authority: w.Authority, Since: evidence.FormatTime(w.Since), Index: w.Index,
					Record: w.Record.Payload.RecordID, Stamps: len(w.Record.Timestamps)})
				from = w.Index + 1
			}
		}
	}
	return lines, nil
}

func anchor(ctx context.Context, i *installation.Installation, std stdio) error {
	anchored, err := i.Timekeeper.Anchor(ctx)
	p := newPrinter(std.out)
	missing := false
	for _, a := range anchored {
		switch {
		case a.Reason != nil:
			missing = true
			p.line("%s: has not stamped the checkpoint over %s%s", a.Authority, plural.Of(a.Size, "record"), because(a.Reason))
		case a.Act == nil:
			p.line("%s: has stamped everything already", a.Authority)
		default:
			p.line("%s: stamped the checkpoint over %s", a.Authority, plural.Of(a.Size, "record"))
		}
	}
	return cmp.Or(errors.Join(err, p.err), when(missing, exitUndecided))
}

func (c *logStampCmd) renew(ctx context.Context, i *installation.Installation, std stdio) error {
	o := stamping.RenewConfig{Before: cmp.Or(c.Before, time.Now().AddDate(1, 0, 0))}
	if c.TSA != nil {
		o.TSA = c.TSA[0]
	}
	r, err := i.Timekeeper.Renew(ctx, o)
	if err != nil {
		return err
	}
	p := newPrinter(std.out)
	if r.Renewed == 0 {
		p.line("nothing is due: no stamped checkpoint that can be renewed rests on certificates that end before %s", o.Before.UTC().Format(time.DateOnly))
	} else {
		p.line("%s: renewed %s", r.Authority, plural.Of(r.Renewed, "stamped checkpoint"))
	}
	std.tellIf(r.Renewed > 0 && r.Authority == stamping.BuiltIn, "hint: this rests on the operator's own clock; an authority outside is worth more ('jurat tsa')")
	p.lineIf(r.Foreign > 0, "%s cannot be judged here: of authorities that are not configured, or damaged", plural.Of(r.Foreign, "stamped checkpoint"))
	return closing(when(r.Foreign > 0, exitUndecided), p.err)
}

type witnessCmd struct {
	Init string `xor:"what" placeholder:"NAME" help:"Make the witness's key, and print what others need. NAME: its URL without https://, such as witness.example/w1."`
	Key  bool   `xor:"what" help:"Print the witness's verifier key."`
	List bool   `xor:"what" help:"List what the witness has cosigned last of each log."`
	witnessFolder
	Addr string   `default:"127.0.0.1:8418" help:"Where to listen. Put a proxy with TLS before it."`
	Log  []string `sep:"none" placeholder:"FILE|KEY" help:"A log to be witnessed: the verifier key of one, or a trust file that names its logs. May be repeated."`
	logJSONFlag
}

func (c *witnessCmd) Run(ctx context.Context, std stdio) error {
	switch {
	case (c.Init != "" || c.Key || c.List) == (c.Log != nil):
		return hint(errors.New("want --log FILE|KEY to witness logs, or one of --init, --key and --list alone"), "'jurat witness --help' shows how to begin")
	case c.Init != "":
		return c.begin(ctx, std)
	case c.Key:
		key, err := c.key()
		return std.lineUnless(err, "%s", key)
	case c.List:
		return c.list(ctx, std)
	}
	return c.serve(ctx, std)
}

type witnessFolder struct {
	Dir string `default:"./jurat-witness" env:"JURAT_WITNESS" help:"Its key and cosignatures. Never restore it from a backup: it would sign a second history."`
}

func (f *witnessFolder) keyFile() string { return filepath.Join(f.Dir, "witness.key") }

func (f *witnessFolder) memory() string { return filepath.Join(f.Dir, "witness.db") }

func (f *witnessFolder) key() (*operator.Cosigner, error) {
	text, err := filestore.ReadPrivate(f.keyFile())
	if err != nil {
		return nil, hintIf(fs.ErrNotExist, err, "'jurat witness --init NAME' makes a witness")
	}
	key, err := operator.ParseCosigner(strings.TrimSuffix(string(text), "\n"))
	fault.While(&err, "%s", f.keyFile())
	return key, err
}

func (f *witnessFolder) open(ctx context.Context, logs []note.Verifier) (*witness.Witness, error) {
	key, err := f.key()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(f.memory()); err != nil {
		return nil, hint(fmt.Errorf("what the witness has cosigned is not there: %w", err),
			"one that forgets would sign a second history: make another with a new key ('jurat witness --init NAME --dir FOLDER'), and have it take this one's place")
	}
	return witness.Open(ctx, witness.Config{File: f.memory(), Key: key, Logs: logs})
}

func (c *witnessCmd) begin(ctx context.Context, std stdio) error {
	key, err := operator.GenerateCosigner(nil, c.Init)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Create(c.keyFile(), []byte(key.MarshalPrivate()+"\n"), 0o600); err != nil {
		return hintIf(fs.ErrExist, err, "there is a witness already; 'jurat witness --key' prints its key")
	}
	w, err := witness.Open(ctx, witness.Config{File: c.memory(), Key: key}) // which knows nothing yet, and is never begun anew
	if err != nil {
		return err
	}
	return errors.Join(std.line("%s", key), w.Close())
}

func (c *witnessCmd) list(ctx context.Context, std stdio) error {
	w, err := c.open(ctx, nil)
	if err != nil {
		return err
	}
	known, err := w.Logs(ctx)
	t := table{heads: []head{{name: "log", rank: 1}, {name: "entries", right: true}}}
	for _, k := range known {
		t.row(k.Origin, k.Size)
	}
	return errors.Join(jsonFlag{}.list(std, nil, err, &t, ""), w.Close())
}

func (c *witnessCmd) serve(ctx context.Context, std stdio) error {
	logs, err := c.logs()
	if err != nil {
		return err
	}
	w, err := c.open(ctx, logs)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", c.Addr)
	if err != nil {
		return errors.Join(hint(err, "--addr names another address; port 0 takes one that is free"), w.Close())
	}
	for _, log := range logs {
		std.tell("witnesses the log %s", log.Name())
	}
	std.tell("as %s; Ctrl-C ends it", w.Key())
	if err := std.line("http://%s", l.Addr()); err != nil {
		return errors.Join(err, l.Close(), w.Close())
	}
	s := &http.Server{Handler: w.Handler(std.logger(c.LogJSON)), ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
	return errors.Join(serveUntil(ctx, l, s, 10*time.Second), w.Close())
}

// serveUntil answers until ctx is done, and then what is under way, if that ends within grace.
func serveUntil(ctx context.Context, l net.Listener, s *http.Server, grace time.Duration) error {
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	select {
	case err := <-served:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := s.Shutdown(rest); err != nil {
		return errors.Join(fmt.Errorf("what had not ended after %v was broken off: %w", grace, err), s.Close())
	}
	return nil
}

// logs reads the keys of the logs: from trust files, or as they are.
func (c *witnessCmd) logs() ([]note.Verifier, error) {
	var logs []note.Verifier
	seen := map[string]bool{}
	for _, text := range c.Log {
		keys := []string{text}
		if _, err := os.Stat(text); err == nil {
			trust, err := readTrust("--log", text)
			if err != nil {
				return nil, err
			}
			if keys = trust.Logs; len(keys) == 0 {
				return nil, fmt.Errorf("--log: the trust file %s names no log", text)
			}
		}
		for _, key := range keys {
			log, err := note.NewVerifier(key)
			if err == nil {
				_, err = operator.LogPublicKey(key)
			}
			if err != nil {
				return nil, fmt.Errorf("--log: %q is neither a trust file nor the verifier key of a log: %w", text, err)
			}
			if !seen[key] { // package note takes no signature of a key that it is given twice
				logs = append(logs, log)
			}
			seen[key] = true
		}
	}
	return logs, nil
}

type logWitnessCmd struct {
	URL    string `arg:"" optional:"" help:"Add the witness at this URL: what comes before /add-checkpoint. With --remove, a witness's URL or name."`
	Key    string `placeholder:"KEY" help:"The verifier key of the new witness, which its operator gives you: name+hash+base64."`
	Quorum int    `placeholder:"N" help:"How many of the witnesses must have cosigned a checkpoint for it to count. Left out: more than half."`
	Remove bool   `xor:"what" help:"Stop asking this witness."`
	Ask    bool   `xor:"what" help:"Have all witnesses cosign a checkpoint over all that is in the log, now."`
}

func (c *logWitnessCmd) Run(ctx context.Context, a *app, std stdio) error {
	do := c.list
	switch {
	case c.Ask && c.URL != "" || !c.Ask && c.Remove != (c.URL != "" && c.Key == ""):
		return hint(errors.New("want a URL and --key KEY, a name and --remove, --ask alone, or nothing"), "'jurat log witness' lists the witnesses")
	case c.URL == "" && (c.Key != "" || c.Quorum != 0):
		return errors.New("--key and --quorum go with a witness")
	case c.Ask:
		do = c.ask
	case c.Remove:
		do = c.remove
	case c.URL != "":
		do = c.add
	}
	return a.with(ctx, func(i *installation.Installation) error { return do(ctx, i, std) })
}

func (c *logWitnessCmd) add(ctx context.Context, i *installation.Installation, std stdio) error {
	err := i.Witnesses.Add(ctx, witness.Address{URL: c.URL, Key: c.Key}, c.Quorum)
	std.tellIf(err == nil, "give the new trust file ('jurat trust') to the people who verify; 'jurat log witness --ask' asks at once")
	return err
}

func (c *logWitnessCmd) remove(ctx context.Context, i *installation.Installation, std stdio) error {
	err := i.Witnesses.Remove(ctx, c.URL, c.Quorum)
	std.tellIf(err == nil, "trust files that you gave out still demand it; replace them")
	return hint(err, "'jurat log witness' names them")
}

func (c *logWitnessCmd) list(ctx context.Context, i *installation.Installation, std stdio) error {
	settings, err := witness.ReadSettings(ctx, i.Files)
	if err != nil {
		return err
	}
	if len(settings.List) == 0 {
		return std.line("no witness cosigns this log's checkpoints")
	}
	kept, err := i.Witnesses.LastCosigned(ctx)
	size, failed := i.Ledger.Size(ctx)
	if err := cmp.Or(err, failed); err != nil {
		return err
	}
	if kept == nil {
		kept = &witness.Cosigning{Quorum: settings.Quorum}
		for _, w := range settings.List {
			kept.Answers = append(kept.Answers, witness.Answer{Address: w, Err: fmt.Errorf("it has cosigned nothing yet")})
		}
	}
	return printCosigning(std, kept, size)
}

func (c *logWitnessCmd) ask(ctx context.Context, i *installation.Installation, std stdio) error {
	asked, err := i.Witnesses.Cosign(ctx)
	if err = cmp.Or(err, hint(refuse(asked == nil, "this log has no witness"), "'jurat log witness URL --key KEY' adds one")); err != nil {
		return err
	}
	return closing(when(!asked.Met(), exitUndecided), printCosigning(std, asked, asked.Size))
}

func printCosigning(std stdio, c *witness.Cosigning, size int64) error {
	p, met := newPrinter(std.out), pick(c.Met(), "which counts", "which is too few")
	p.line("checkpoint of %d of %d records: cosigned by %d of %d witnesses, %d are demanded, %s", c.Size, size, c.Cosigned(), len(c.Answers), c.Quorum, met)
	t := table{heads: []head{{name: "witness"}, {name: "address", rank: 2}, {name: "cosigned", rank: 1}}}
	for _, a := range c.Answers {
		said := "at " + a.At.Format(time.RFC3339)
		if a.Err != nil {
			said = "not: " + a.Err.Error()
		}
		t.row(a.Name(), a.URL, said)
	}
	p.table(&t)
	return p.err
}
