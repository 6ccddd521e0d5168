package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/client"
	"jurat/client/tiles"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/kit/atomicfile"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/plural"
	"jurat/internal/log/witness"
	"jurat/verify/trust"
)

// tokenFlag names what lets in who may read everything.
type tokenFlag struct {
	TokenFile string `placeholder:"FILE" env:"JURAT_TOKEN_FILE" help:"File with a token for the server, needed if it does not show entries to everyone."`
}

type logFlags struct {
	Log   string `name:"log" placeholder:"URL" help:"Ask the log at this URL, such as https://jurat.example/log, and compute the proof from its tiles."`
	Trust string `placeholder:"FILE" help:"With --log: your trust file, which has the log's key."`
	tokenFlag
}

type remoteLog struct {
	*tiles.Client
	trust *trust.Trust
	token string
}

func openRemote(url, trusted string, by tokenFlag) (*remoteLog, error) {
	if trusted == "" {
		return nil, hint(errors.New("--trust: no log is believed without a key"), "the operator's 'jurat trust' prints it; compare fingerprints over another channel")
	}
	r := new(remoteLog)
	var err error
	r.trust, err = readTrust("--trust", trusted)
	if err == nil && by.TokenFile != "" {
		r.token, err = readSecret("--token-file", by.TokenFile)
	}
	if err != nil {
		return nil, err
	}
	r.Client, err = tiles.New(tiles.Config{URL: url, Token: r.token})
	return r, whereLogsAre(err)
}

func (r *remoteLog) newest(ctx context.Context) (string, operator.Checkpoint, error) {
	signed, err := r.Checkpoint(ctx)
	if err != nil {
		return "", operator.Checkpoint{}, whereLogsAre(err)
	}
	head, err := r.trust.OpenCheckpoint(signed)
	return signed, head, err
}

func whereLogsAre(err error) error {
	return hint(err, "the log of a jurat server is at its URL with /log at the end")
}

// lines reads all entries that a checkpoint covers, as 'jurat log checkpoint --entries' prints them. They are fetched while they are read.
func (r *remoteLog) lines(ctx context.Context, head operator.Checkpoint, told func(done, of int64)) io.ReadCloser {
	lines, into := io.Pipe()
	go func() {
		out := bufio.NewWriterSize(into, 64<<10)
		err := r.Tree(ctx, head).Entries(0, head.Size, func(index int64, entry []byte) error {
			told(index+1, head.Size)
			if _, err := out.Write(entry); err != nil {
				return err
			}
			return out.WriteByte('\n')
		})
		if err == nil {
			err = out.Flush()
		}
		into.CloseWithError(err)
	}()
	return lines
}

// prove makes the proof of a record's place anew, from the log's tiles and under its newest checkpoint.
func (r *remoteLog) prove(ctx context.Context, record *evidence.Record) error {
	if record.Log == nil {
		return hint(errors.New("the file does not say where in the log the record stands"), "give the record's id, with --token-file if it is not public")
	}
	signed, head, err := r.newest(ctx)
	if err != nil {
		return err
	}
	tree := r.Tree(ctx, head)
	proof, err := tree.ProveInclusion(record.Log.Index)
	if err != nil {
		return err
	}
	leaf := tlog.RecordHash(record.LogEntry(record.Log.Counts()))
	if err := tlog.CheckRecord(proof, head.Size, head.Root, record.Log.Index, leaf); err != nil {
		return fmt.Errorf("the log %s has another record at index %d, or counts it otherwise", head.Origin, record.Log.Index)
	}
	record.Log = record.Log.Counts().At(record.Log.Index)
	record.Log.Checkpoint = signed
	for _, node := range proof {
		record.Log.Proof = append(record.Log.Proof, node[:])
	}
	return nil
}

func (r *remoteLog) record(ctx context.Context, name string) (*evidence.Record, error) {
	doc, err := readFile(name)
	if err == nil {
		record, _, err := evidence.Read(doc)
		fault.While(&err, "%s", name)
		return record, err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	server, is := strings.CutSuffix(r.URL(), "/log/")
	if !is {
		return nil, fmt.Errorf("%s: no such file; to look a record up by its id, --log must be the address of a jurat server", name)
	}
	c, err := client.NewClient(client.Config{URL: server, Token: r.token})
	if err != nil {
		return nil, err
	}
	return c.Record(ctx, name)
}

// consistency makes a proof from the log's tiles, between two sizes or checkpoints of it.
func (r *remoteLog) consistency(ctx context.Context, from string, to *string) (*operator.Consistency, error) {
	size, ok := wholeNumber(from)
	old, err := operator.Checkpoint{Size: size}, error(nil)
	if !ok {
		old, err = r.readCheckpoint(from)
	}
	var head operator.Checkpoint
	switch {
	case err != nil:
	case to == nil:
		_, head, err = r.newest(ctx)
	default:
		head, err = r.readCheckpoint(*to)
	}
	if err != nil {
		return nil, err
	}
	proof, err := r.Tree(ctx, head).ProveConsistency(old.Size)
	if err != nil || old.Origin == "" { // a number of entries, of which nothing else is known
		return proof, err
	}
	if err := proof.Check(old, head); err != nil {
		return nil, hint(fmt.Errorf("the log %s has signed two histories: that of %d entries does not begin that of %d: %w", head.Origin, old.Size, head.Size, err),
			"keep both checkpoints; 'jurat log monitor' with a copy of the earlier one as --state writes what shows it to others")
	}
	return proof, nil
}

func (r *remoteLog) readCheckpoint(file string) (operator.Checkpoint, error) {
	return parsed(file, func(signed []byte) (operator.Checkpoint, error) { return r.trust.OpenCheckpoint(string(signed)) })
}

type logMonitorCmd struct {
	URL   string `arg:"" help:"The log's, such as https://jurat.example/log."`
	Trust string `required:"" placeholder:"FILE" help:"Your trust file: the log's key, and the witnesses that must have cosigned."`
	State string `required:"" placeholder:"FILE" help:"Where to keep the last checkpoint seen. Without this file it is the first look, which reads everything."`
	tokenFlag
	Every   time.Duration `placeholder:"DURATION" help:"Look again and again, with as much time between, such as 10m. Left out: once."`
	Full    bool          `help:"Read everything again, and not only what is new."`
	Sample  int           `default:"8" help:"How many old tiles, chosen by chance, are read again beside what is new."`
	Most    int64         `default:"16777216" help:"How many new entries are read at most. If the log says that it has grown by more, that is an alarm."`
	Patient time.Duration `default:"10s" help:"How long to wait for a log that shows less than before, as a cache or a node behind others does for a while."`
	jsonFlag
}

func (c *logMonitorCmd) Run(ctx context.Context, std stdio) error {
	if c.Every < 0 || c.Sample < 0 || c.Patient <= 0 || c.Most <= 0 {
		return errors.New("--every, --sample: want 0 or more, --patient, --most: more than 0")
	}
	remote, err := openRemote(c.URL, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	last, err := c.remembered() // from here on this process knows what is in the state, also if it never gets to see the log
	if err != nil {
		return err
	}
	for {
		seen, err := c.look(ctx, std, remote, last)
		switch code, unmet := errors.AsType[exitCode](err); {
		case c.Every == 0 || ctx.Err() != nil:
			return err
		case errors.Is(err, tiles.ErrUnavailable), errors.Is(err, tiles.ErrRefused):
			std.tell("NOT LOOKED AT: %v; it is tried again in %v", err, c.Every)
		case err != nil && !(unmet && code == exitUndecided):
			return err
		default:
			last = seen
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Every):
		}
	}
}

// look looks once, knowing the state, and returns what it leaves there. The state is replaced last, so that a crash before has all looked at again.
func (c *logMonitorCmd) look(ctx context.Context, std stdio, remote *remoteLog, last string) (seen string, err error) {
	if err := c.stillRemembered(last); err != nil {
		return "", err
	}
	found, err := witness.See(ctx, witness.MonitorConfig{Log: remote.Client, Trust: remote.trust, Last: last, Full: c.Full, Most: c.Most, Sample: c.Sample,
		Patient: c.Patient, Progress: progress(std, "read entries")})
	switch alarm, is := errors.AsType[*witness.Alarm](err); {
	case is:
		return "", c.shout(std, alarm)
	case errors.Is(err, witness.ErrMemory):
		return "", hint(fmt.Errorf("--state: %s: %w", c.State, err), withoutMemory)
	case err != nil:
		return "", whereLogsAre(err)
	}
	if err := c.print(std, found, remote.trust.Quorum); err != nil {
		return "", err
	}
	switch now, err := readFile(c.State); {
	case err != nil && (last != "" || !errors.Is(err, fs.ErrNotExist)):
		return "", fmt.Errorf("--state: %w", err)
	case string(now) != last: // what another has seen may be more, and must not be forgotten
		return "", hint(fmt.Errorf("%s was changed while the log was looked at", c.State), "each monitor needs its own --state; this one is as the other left it")
	}
	if err := atomicfile.Replace(c.State, []byte(found.Checkpoint), 0o644); err != nil {
		return "", err
	}
	return found.Checkpoint, when(found.Unmet != nil, exitUndecided)
}

const withoutMemory = "a monitor needs what it saw last: restore the file from a safe copy, and ask who changed it. If none is left, begin with a new --state"

// remembered reads the checkpoint of the last look. It returns "" if there is no file.
func (c *logMonitorCmd) remembered() (string, error) {
	text, err := readFile(c.State)
	last := string(text)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err == nil && strings.TrimSpace(last) == "":
		err = fmt.Errorf("%s is there and has no checkpoint in it", c.State)
	}
	if err != nil {
		return "", hint(fmt.Errorf("--state: %w", err), withoutMemory)
	}
	return last, nil
}

// stillRemembered returns an error unless the state file is as this process found or left it, which includes its absence.
func (c *logMonitorCmd) stillRemembered(last string) error {
	now, err := c.remembered()
	switch {
	case err != nil || now == last:
		return err
	case now == "":
		err = fmt.Errorf("%s is gone, which was there before", c.State)
	default:
		err = fmt.Errorf("%s has another checkpoint in it than this monitor found or left there", c.State)
	}
	return hint(fmt.Errorf("--state: %w", err), withoutMemory)
}

type lookJSON struct {
	Outcome  string       `json:"outcome"` // consistent, or what the alarm is
	First    bool         `json:"first"`   // nothing was known of the log before
	Origin   string       `json:"origin,omitzero"`
	Size     int64        `json:"size"`
	Before   int64        `json:"before"`            // the size that was known before
	Read     int64        `json:"read"`              // entries that were held against the tree
	Entries  bool         `json:"entries"`           // false: only their hashes, because the log does not show them to everyone
	Cosigned []cosignedAt `json:"cosigned"`          // by the trust file's witnesses
	Quorum   int          `json:"quorum"`            // how many of them must have
	Unmet    string       `json:"unmet,omitzero"`    // why too few have
	Reason   string       `json:"reason,omitzero"`   // of an alarm
	Evidence string       `json:"evidence,omitzero"` // folder with what was seen
	ToOthers string       `json:"to_others,omitzero"`
	Alone    string       `json:"seen_alone,omitzero"`
}

type cosignedAt struct {
	Witness string    `json:"witness"`
	At      time.Time `json:"at"`
}

func (c *logMonitorCmd) print(std stdio, l *witness.Look, quorum int) error {
	doc := lookJSON{Outcome: "consistent", First: l.First, Origin: l.Head.Origin, Size: l.Head.Size, Before: l.Before, Read: l.Read, Entries: !l.Hidden, Cosigned: []cosignedAt{}, Quorum: quorum}
	for _, s := range l.Cosigned {
		doc.Cosigned = append(doc.Cosigned, cosignedAt{s.Witness.Name(), s.At})
	}
	if l.Unmet != nil {
		doc.Unmet = l.Unmet.Error()
	}
	return c.answer(std, doc, nil, func(p *printer) {
		what := pick(l.Hidden, "leaf hashes (the log does not show entries to everyone)", "entries")
		grown := pick(l.First, "", fmt.Sprintf(", %d more than the last time", l.Head.Size-l.Before))
		p.line("consistent: the log %s has %s%s; %d %s are what it signed", l.Head.Origin, plural.Of(l.Head.Size, "entry"), grown, l.Read, what)
		p.lineIf(l.First, "FIRST LOOK: there was no %s, so there was nothing earlier to compare with", c.State)
		for _, s := range doc.Cosigned {
			p.line("cosigned by %s at %s", s.Witness, s.At.Format(time.RFC3339))
		}
		if l.Unmet != nil {
			p.line("NOT WITNESSED: %s", doc.Unmet)
		}
	})
}

func (c *logMonitorCmd) shout(std stdio, a *witness.Alarm) error {
	folder, command, err := c.keep(a)
	if err != nil {
		fmt.Fprintf(std.err, "jurat: what was seen could not be written: %v\n", err) // and the alarm is reported below
	}
	doc := lookJSON{Outcome: string(a.Kind), Reason: a.Reason, Evidence: folder, ToOthers: a.ToOthers(), Alone: a.SeenAlone(), Cosigned: []cosignedAt{}}
	return errors.Join(c.answer(std, doc, nil, func(p *printer) {
		p.line("ALARM: %s: %s", strings.ToUpper(string(a.Kind)), a.Reason)
		p.line("%s", a.Kind.Meaning())
		for _, one := range []struct{ when, signed string }{{"before", a.Old}, {"now", a.New}} {
			if one.signed != "" {
				p.line("\n%s:", one.when)
				p.lines(one.signed)
			}
		}
		p.line("\nproves to others: %s", doc.ToOthers)
		p.line("rests on your word: %s", doc.Alone)
		switch {
		case command != "":
			p.line("\nkept in %s; others look at it with:\n    %s", folder, command)
		case folder != "":
			p.line("\nkept in %s", folder)
		}
	}), exitCode(exitBad))
}

func (c *logMonitorCmd) keep(a *witness.Alarm) (folder, command string, err error) {
	at := time.Now().UTC()
	folder = fmt.Sprintf("%s.%s-%s", c.State, a.Kind, at.Format("20060102T150405.000Z"))
	files := map[string]string{"reason.txt": a.Reason + "\n" + a.Kind.Meaning() + "\n", "before.checkpoint": a.Old, "now.checkpoint": a.New}
	maps.DeleteFunc(files, func(_, content string) bool { return content == "" })
	if a.Proof != nil {
		proof, err := a.Proof.Marshal()
		if err != nil {
			return "", "", err
		}
		files["proof.json"] = string(proof)
	}
	if a.Served != nil {
		files["served.bin"], files["served.txt"] = string(a.Served.Served), a.Served.Path+"\n"
	}
	command = lookingAt(a)
	files["how.txt"] = fmt.Sprintf("Seen by 'jurat log monitor' at %s, at %s.\n\nWhat these files prove to others, who have the log's key in a trust file:\n%s."+
		"\n\nWhat rests on the word of the person who ran the monitor:\n%s.\n", c.URL, at.Format(time.RFC3339), a.ToOthers(), a.SeenAlone())
	if command != "" {
		files["how.txt"] += "\nTo look at them:\n\n    " + command + "\n"
	}
	if err := os.Mkdir(folder, 0o755); err != nil {
		return "", "", err
	}
	for name, content := range files {
		if err := atomicfile.Create(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			return "", "", err
		}
	}
	return folder, command, nil
}

// lookingAt is the command that says of what an alarm left what it proves; "": there is nothing that was signed.
func lookingAt(a *witness.Alarm) string {
	command := "jurat verify --trust TRUST"
	switch {
	case a.New == "":
		return ""
	case a.Proof != nil:
		command += " --checkpoint before.checkpoint --consistency proof.json"
	case a.Old != "" && (a.Kind == witness.Fork || a.Kind == witness.Shrink || a.Kind == witness.Flood):
		command += " --checkpoint before.checkpoint"
	}
	return command + " now.checkpoint"
}
