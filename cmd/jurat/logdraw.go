package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/plural"
	"jurat/internal/witness"
	"jurat/reputation/draw"
	"jurat/verify/trust"
)

type logDrawCmd struct {
	Ask  logDrawAskCmd  `cmd:"" help:"Have the witnesses draw, now, which records of the log are to be tried."`
	List logDrawListCmd `cmd:"" help:"List which records were drawn, and which draws and trials are missing."`
}

type logDrawAskCmd struct{}

// Help is shown by 'jurat log draw ask --help'.
func (*logDrawAskCmd) Help() string {
	return `Witnesses decide which records are to be tried, so that nobody can choose the good ones. For each block of 64 records, each witness signs what
it has cosigned. The signature cannot be predicted, and is the same whenever it is asked for. It decides which records of the block are drawn.
The signatures are sealed in the chain operator-draws.

'jurat serve' asks by itself. This command asks for what is missing, after it has had the log's checkpoint cosigned. 'jurat witness' draws;
witnesses of other programs only cosign.

Exit code 0: every witness has drawn every whole block. 3: draws are missing. 2: it could not be done.`
}

// Run asks.
func (*logDrawAskCmd) Run(ctx context.Context, a *app, io stdio) error {
	return a.with(ctx, func(i *installation.Installation) error {
		cosign(ctx, i, io)
		d, err := i.Witnesses.Draw(ctx, progress(io, "draws"))
		if err != nil {
			return err
		}
		if d == nil {
			return hint(errors.New("this log has no witness"), "'jurat log witness add URL --key KEY' adds one")
		}
		defer catchUp(ctx, io, i)
		p := newPrinter(io.out)
		for _, answer := range d.Answers {
			p.line("%-30s %s", answer.Name(), drawnSoFar(answer, d.Blocks))
		}
		if p.err == nil && !d.Whole() {
			return exitCode(exitUndecided)
		}
		return p.err
	})
}

func drawnSoFar(answer witness.Drawn, blocks int64) string {
	text := fmt.Sprintf("has drawn %d of %s, %d now", answer.Blocks, plural.Of(blocks, "block"), answer.New)
	if answer.Err != nil {
		text += ", and no more: " + oneLine(answer.Err)
	}
	return text
}

type logDrawListCmd struct {
	Files      []string `arg:"" optional:"" name:"file" help:"For --entries: the log's chain operator-draws ('jurat log case operator-draws'), other records with draws, and the agent's recorded chains."`
	Agent      string   `help:"Only records of this agent. Without it also acts of the operator, of people and of juries are listed, which are never tried." placeholder:"NAME"`
	Share      int64    `help:"Each witness draws one of so many records." default:"100" placeholder:"N"`
	Witness    []string `help:"Only the draws of this witness count: its key. May be given several times. Default: every witness of the trust file." placeholder:"KEY" sep:"none"`
	Checkpoint string   `help:"A checkpoint of another operator's log, for --entries." placeholder:"FILE"`
	Entries    string   `help:"All entries that your --checkpoint covers." placeholder:"FILE"`
	Trust      string   `help:"Your trust file. Default, without --entries: what this installation trusts." placeholder:"FILE" env:"JURAT_TRUST"`
	JSON       bool     `name:"json" help:"Print the result as canonical JSON (jurat/draws/v1 in docs/format.md)."`
}

// Help is shown by 'jurat log draw list --help'.
func (*logDrawListCmd) Help() string {
	return `Computes which records the witnesses drew, with the share that you choose, and shows two kinds of debts: a block that a witness has not drawn,
and a drawn record of the agent whose trial the log does not have, or has not judged. The operator can neither predict a draw nor have it made again.

    jurat log draw list --share 50 --agent "Orders desk"

A stranger computes the same from the log's entries, with the trust file that names the witnesses:

    jurat log checkpoint > now.checkpoint && jurat log entries > entries.jsonl && jurat log case operator-draws > draws.jurat
    jurat log draw list --share 50 --agent "Orders desk" --trust trust.json --checkpoint now.checkpoint --entries entries.jsonl draws.jurat

What recorders saw the agent do counts, too, where the record says so ("judged"). The entries do not say whose act a recorder saw: a stranger gives the agent's
recorded chains as further files, and is told how many drawn records of recorders are in none of them.

What a trial came to, and whether it was about the drawn record, 'jurat reputation AGENT' shows.

Exit code 0: every block is drawn, and with --agent every drawn record was judged, and whose it is is known. 3: something is missing. 2: it could not be done.`
}

// Run lists.
func (c *logDrawListCmd) Run(ctx context.Context, a *app, io stdio) error {
	if (c.Entries == "") != (c.Checkpoint == "") {
		return errors.New("--entries and --checkpoint belong together: bring the entries, and the checkpoint that covers them")
	}
	if len(c.Files) > 0 && c.Entries == "" {
		return errors.New("files are for --entries: without it the log of this installation is read, and it has its draws")
	}
	if c.Entries != "" {
		found, err := c.elsewhere()
		if err != nil {
			return err
		}
		return c.print(io, found)
	}
	return a.with(ctx, func(i *installation.Installation) error {
		found, err := c.here(ctx, i, io)
		if err != nil {
			return err
		}
		return c.print(io, found)
	})
}

// policy takes the witnesses that the reader names, or else those of the trust file.
func (c *logDrawListCmd) policy(trusted []string) (draw.Policy, error) {
	policy := draw.Policy{Share: c.Share}
	if c.Agent != "" {
		policy.Actor = evidence.ActorTag(evidence.RoleAgent, c.Agent)
	}
	if len(c.Witness) > 0 {
		trusted = c.Witness
	}
	if len(trusted) == 0 {
		return policy, hint(errors.New("no witness is known, and witnesses draw"), "'jurat log witness add' adds one to this log; of another log, its trust file or --witness names them")
	}
	for _, text := range trusted {
		w, err := operator.ParseWitness(text)
		if err != nil {
			return policy, fmt.Errorf("witness %q: %w", evidence.Abbreviate(text), err)
		}
		policy.Witnesses = append(policy.Witnesses, w)
	}
	return policy, policy.Check()
}

// here reads this installation's log.
func (c *logDrawListCmd) here(ctx context.Context, i *installation.Installation, io stdio) (*draw.Result, error) {
	trusted, err := i.Trust(ctx)
	if err != nil {
		return nil, err
	}
	if c.Trust != "" {
		if trusted, err = readTrust(c.Trust); err != nil {
			return nil, err
		}
	}
	policy, err := c.policy(trusted.Witnesses)
	if err != nil {
		return nil, err
	}
	recorders := recordersOf(trusted)
	policy.Whose = func(e *evidence.Entry) (evidence.Digest, bool, error) {
		r, err := i.Ledger.RecordByDigest(ctx, e.Payload)
		if errors.Is(err, ledger.ErrExpired) || errors.Is(err, ledger.ErrNotFound) {
			return evidence.Digest{}, recorders[e.Actor], nil
		}
		if err != nil {
			return evidence.Digest{}, false, err
		}
		return seenAgent(r), false, nil
	}
	draws, err := i.Witnesses.Draws(ctx)
	if err != nil {
		return nil, err
	}
	size, err := i.Ledger.Size(ctx)
	if err != nil {
		return nil, err
	}
	root, err := i.Ledger.Root(ctx, size)
	if err != nil {
		return nil, err
	}
	reading, err := draw.New(i.Ledger.Origin(), policy, draws)
	if err != nil {
		return nil, err
	}
	if err := readHere(ctx, i.Ledger, size, reading, progress(io, "entries")); err != nil {
		return nil, err
	}
	return reading.Result(operator.Checkpoint{Origin: i.Ledger.Origin(), Size: size, Root: root})
}

func readHere(ctx context.Context, l *ledger.Ledger, size int64, reading *draw.Reading, told func(done, total int64)) error {
	var done int64
	for line, err := range l.Entries(ctx, 0, size) {
		if err != nil {
			return err
		}
		entry, err := evidence.ParseEntry(line)
		if err != nil {
			return err
		}
		reading.Add(line, entry)
		done++
		told(done, size)
	}
	return nil
}

// elsewhere reads another operator's log from files.
func (c *logDrawListCmd) elsewhere() (*draw.Result, error) {
	if c.Trust == "" {
		return nil, hint(errors.New("--trust is missing: it says whose checkpoint counts"), "the log's operator writes it with 'jurat trust'")
	}
	trusted, err := readTrust(c.Trust)
	if err != nil {
		return nil, err
	}
	policy, err := c.policy(trusted.Witnesses)
	if err != nil {
		return nil, err
	}
	signed, err := readFile(c.Checkpoint)
	if err != nil {
		return nil, err
	}
	head, err := trusted.OpenCheckpoint(evidence.MendNote(string(signed)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Checkpoint, err)
	}
	var draws []operator.Draw
	seen := map[evidence.Digest]evidence.Digest{}
	for _, name := range c.Files {
		some, err := readDraws(name, seen)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		draws = append(draws, some...)
	}
	recorders := recordersOf(trusted)
	policy.Whose = func(e *evidence.Entry) (evidence.Digest, bool, error) {
		agent, known := seen[e.Payload]
		return agent, !known && recorders[e.Actor], nil
	}
	entries, err := os.Open(c.Entries)
	if err != nil {
		return nil, err
	}
	defer entries.Close()
	found, err := draw.Read(head, policy, draws, entries)
	if err != nil {
		return nil, hint(fmt.Errorf("%s: %w", c.Entries, err), "'jurat log checkpoint' and 'jurat log entries' write both, one right after the other")
	}
	return found, nil
}

// recordersOf are the tags of the recorders that a trust file has keys of.
func recordersOf(t *trust.Trust) map[evidence.Digest]bool {
	tags := map[evidence.Digest]bool{}
	for _, k := range t.Keys {
		if k.Role == evidence.RoleRecorder {
			tags[evidence.ActorTag(k.Role, k.Name)] = true
		}
	}
	return tags
}

// seenAgent is the tag of the agent that a recorder saw act; zero: the record is no such act.
func seenAgent(r *evidence.Record) evidence.Digest {
	if !r.Payload.OnAgent() {
		return evidence.Digest{}
	}
	return evidence.ActorTag(evidence.RoleAgent, r.Payload.Observed.Agent)
}

// readDraws reads the draws in a file of records, and notes in seen whose acts its records of recorders are. A draw is as good as the witness's signature, and
// whose act a record is follows from its digest, which the log's entries have.
func readDraws(name string, seen map[evidence.Digest]evidence.Digest) (draws []operator.Draw, err error) {
	doc, err := readFile(name)
	if err != nil {
		return nil, err
	}
	records, err := openRecords(doc)
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		if r.Payload.Role() == evidence.RoleRecorder {
			seen[r.Digest] = seenAgent(r)
		}
		if r.Payload.ActionType != evidence.Draw {
			continue
		}
		body, err := operator.ReadDraws(&r.Payload)
		if err != nil {
			return nil, fmt.Errorf("record %s: %w", r.Payload.RecordID, err)
		}
		draws = append(draws, body.Draws...)
	}
	return draws, nil
}

// print shows what was found.
func (c *logDrawListCmd) print(io stdio, found *draw.Result) error {
	debts := len(found.Missing) + int(found.Unread)
	for _, r := range found.Drawn {
		if !r.Judged && c.Agent != "" {
			debts++
		}
	}
	if c.JSON {
		doc, err := json.Marshal(found)
		if err != nil {
			return err
		}
		if err := io.document(append(bytes.TrimSpace(doc), '\n')); err != nil {
			return err
		}
	} else if err := describeDraws(io, found); err != nil {
		return err
	}
	if debts > 0 {
		return exitCode(exitUndecided)
	}
	return nil
}

func describeDraws(io stdio, found *draw.Result) error {
	p := newPrinter(io.out)
	p.line("%s of %d entries: drawn 1 of %d by each witness, %s in all", found.Origin, found.Size, found.Share, plural.Of(int64(len(found.Drawn)), "record"))
	for _, r := range found.Drawn {
		state := "trial of " + plural.Of(r.Acts, "act")
		switch {
		case r.Acts == 0:
			state = "NOT TRIED"
		case !r.Judged:
			state = "NOT JUDGED, " + state
		}
		p.line("%10d  %s  %-20s drawn by %s; %s", r.Index, r.Record, state, strings.Join(r.Witnesses, ", "), r.Trial)
	}
	for _, gap := range found.Missing {
		p.line("NOT DRAWN: entries %d to %d by %s", gap.From, gap.To-1, gap.Witness)
	}
	for _, gap := range found.Twofold {
		p.line("DRAWN TWICE, differently: entries %d to %d by %s, which breaks its rule", gap.From, gap.To-1, gap.Witness)
	}
	if found.Unknown > 0 {
		p.line("%s drawn from before the log counted actors: whose they are, their files say", plural.Of(found.Unknown, "more record"))
	}
	if found.Unread > 0 {
		p.line("%s drawn, which recorders sealed: whose acts they are is not known without them. Give the records beside the draws ('jurat log case CHAIN')", plural.Of(found.Unread, "more record"))
	}
	if found.Waiting > 0 {
		p.line("the last %s: not drawn before the block of %d is whole", plural.Of(found.Waiting, "entry"), operator.DrawBlock)
	}
	return p.err
}
