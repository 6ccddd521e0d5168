package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jurat/internal/atomicfile"
	"jurat/internal/monitor"
	"jurat/tiles"
)

type logMonitorCmd struct {
	URL   string `arg:"" help:"The log's, such as https://jurat.example/log."`
	Trust string `required:"" placeholder:"FILE" help:"Your trust file: the log's key, and the witnesses that must have cosigned."`
	State string `required:"" placeholder:"FILE" help:"Where to keep the last checkpoint that was seen. Without one in it everything is read."`
	tokenFlag
	Every   time.Duration `placeholder:"DURATION" help:"Look again and again, with as much time between, such as 10m. Left out: once."`
	Full    bool          `help:"Read everything again, and not only what is new."`
	Sample  int           `default:"8" help:"How many old tiles, chosen by chance, are read again beside what is new."`
	Patient time.Duration `default:"10s" help:"How long to wait for a log that shows less than before, as a cache or a node behind others does for a while."`
	JSON    bool          `name:"json" help:"Print what was found as JSON, one object for each look."`
}

// Help is shown by 'jurat log monitor --help'.
func (*logMonitorCmd) Help() string {
	return `Watches a log that you do not run. Each look demands that the log's key has signed the checkpoint, that what you saw the last
time is the beginning of what is there now, and that every new tile and entry, and some old ones, hash to what was signed. The
last checkpoint stays in the file that --state names; keep it where who runs the log cannot write.

    jurat log monitor https://jurat.example/log --trust trust.json --state jurat.checkpoint --every 10m

If the log has done what a log never does, everything that shows it is written into a folder beside that file, with the
command by which others see it, and that file stays as it was.

Entries are read with the token of an auditor, or where the server shows them to everybody; without them the hashes are read alone.

Exit code 0: the log has only grown. 1: it has forked, shrunk, or serves what it has not signed. 3: it has only grown, and
fewer witnesses have cosigned it than the trust file demands. 2: it could not be looked at.`
}

// Run looks once, or until it is interrupted or the log does what it must not.
func (c *logMonitorCmd) Run(ctx context.Context, io stdio) error {
	if c.Every < 0 || c.Sample < 0 || c.Patient <= 0 {
		return errors.New("--every, --sample: want 0 or more, --patient: more than 0")
	}
	remote, err := openRemote(c.URL, c.Trust, c.tokenFlag)
	if err != nil {
		return err
	}
	for {
		err := c.look(ctx, io, remote)
		var code exitCode
		switch unmet := errors.As(err, &code) && code == exitUndecided; {
		case c.Every == 0 || ctx.Err() != nil:
			return err
		case errors.Is(err, tiles.ErrUnavailable):
			fmt.Fprintf(io.err, "jurat: %v; it is tried again in %v\n", err, c.Every)
		case err != nil && !unmet:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.Every):
		}
	}
}

// look looks once. The state is replaced last: a crash before it has the same looked at again.
func (c *logMonitorCmd) look(ctx context.Context, io stdio, remote *remoteLog) error {
	last, err := os.ReadFile(c.State)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	seen, err := monitor.See(ctx, monitor.Config{Log: remote.Client, Trust: remote.trust, Last: string(last), Full: c.Full, Sample: c.Sample,
		Patient: c.Patient, Progress: progress(io, "read entries")})
	var alarm *monitor.Alarm
	if errors.As(err, &alarm) {
		return c.shout(io, alarm)
	}
	if err != nil {
		return whereLogsAre(err)
	}
	if err := c.print(io, seen, remote.trust.Quorum); err != nil {
		return err
	}
	switch now, err := os.ReadFile(c.State); {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case !bytes.Equal(now, last): // what another has seen may be more, and must not be forgotten
		return hint(fmt.Errorf("%s was changed while the log was looked at", c.State), "each monitor keeps a --state of its own; this one's is as the other has left it")
	}
	if err := atomicfile.Replace(c.State, []byte(seen.Checkpoint), 0o644); err != nil {
		return err
	}
	if seen.Unmet != nil {
		return exitCode(exitUndecided)
	}
	return nil
}

// lookJSON is what was found, for machines.
type lookJSON struct {
	Outcome  string         `json:"outcome"` // consistent, or what the alarm is
	Origin   string         `json:"origin,omitzero"`
	Size     int64          `json:"size"`
	Before   int64          `json:"before"`            // the size that was known before
	Read     int64          `json:"read"`              // entries that were held against the tree
	Entries  bool           `json:"entries"`           // false: their hashes alone, as the log does not show them to everybody
	Cosigned []cosignedJSON `json:"cosigned"`          // by the trust file's witnesses
	Quorum   int            `json:"quorum"`            // how many of them must have
	Unmet    string         `json:"unmet,omitzero"`    // why too few have
	Reason   string         `json:"reason,omitzero"`   // of an alarm
	Evidence string         `json:"evidence,omitzero"` // folder with what shows it
}

type cosignedJSON struct {
	Witness string    `json:"witness"`
	At      time.Time `json:"at"`
}

func (c *logMonitorCmd) print(io stdio, l *monitor.Look, quorum int) error {
	if c.JSON {
		doc := lookJSON{Outcome: "consistent", Origin: l.Head.Origin, Size: l.Head.Size, Before: l.Before, Read: l.Read, Entries: !l.Hidden, Cosigned: []cosignedJSON{}, Quorum: quorum}
		for _, s := range l.Cosigned {
			doc.Cosigned = append(doc.Cosigned, cosignedJSON{s.Witness.Name(), s.At})
		}
		if l.Unmet != nil {
			doc.Unmet = l.Unmet.Error()
		}
		return io.json(doc)
	}
	p := newPage(io.out)
	what := "entries"
	if l.Hidden {
		what = "leaf hashes (the log does not show entries to everybody)"
	}
	p.line("consistent: the log %s has %d entries, %d more than the last time; %d %s are what it signed", inert(l.Head.Origin), l.Head.Size, l.Head.Size-l.Before, l.Read, what)
	for _, s := range l.Cosigned {
		p.line("cosigned by %s at %s", inert(s.Witness.Name()), s.At.Format(time.RFC3339))
	}
	if l.Unmet != nil {
		p.line("NOT WITNESSED: %s", inert(l.Unmet.Error()))
	}
	return p.err
}

// shout says what the log has done, and keeps what shows it.
func (c *logMonitorCmd) shout(io stdio, a *monitor.Alarm) error {
	folder, command, err := c.keep(a)
	if err != nil {
		fmt.Fprintf(io.err, "jurat: what shows it could not be written: %v\n", err) // and is told all the same
	}
	if c.JSON {
		return errors.Join(io.json(lookJSON{Outcome: string(a.Kind), Reason: a.Reason, Evidence: folder, Cosigned: []cosignedJSON{}}), exitCode(exitBad))
	}
	p := newPage(io.out)
	p.line("ALARM: %s: %s", strings.ToUpper(string(a.Kind)), inert(a.Reason))
	p.line("%s", a.Kind.Meaning())
	for _, one := range []struct{ when, signed string }{{"before", a.Old}, {"now", a.New}} {
		if one.signed != "" {
			p.line("\n%s:\n%s", one.when, inertLines(strings.TrimSuffix(one.signed, "\n")))
		}
	}
	if folder != "" {
		p.line("\nkept in %s; others see it with:\n    %s", folder, command)
	}
	return errors.Join(p.err, exitCode(exitBad))
}

// keep writes what shows an alarm into a new folder, and returns the command by which somebody else sees it there.
func (c *logMonitorCmd) keep(a *monitor.Alarm) (folder, command string, err error) {
	folder = fmt.Sprintf("%s.%s-%s", c.State, a.Kind, time.Now().UTC().Format("20060102T150405.000Z"))
	files := map[string]string{"now.checkpoint": a.New, "reason.txt": a.Reason + "\n" + a.Kind.Meaning() + "\n"}
	command = "jurat verify --trust TRUST now.checkpoint"
	if a.Old != "" {
		files["before.checkpoint"] = a.Old
		command = "jurat verify --trust TRUST --checkpoint before.checkpoint now.checkpoint"
	}
	if a.Proof != nil {
		proof, err := a.Proof.Marshal()
		if err != nil {
			return "", "", err
		}
		files["proof.json"] = string(proof)
		command = "jurat verify --trust TRUST --checkpoint before.checkpoint --consistency proof.json now.checkpoint"
	}
	if a.Served != nil {
		files["served.bin"], files["served.txt"] = string(a.Served.Served), a.Served.Path+"\n"
	}
	files["how.txt"] = command + "\n"
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
