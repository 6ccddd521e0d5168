package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"golang.org/x/mod/sumdb/tlog"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/tiles"
	"jurat/verify/trust"
)

// tokenFlag names what lets in who may read everything.
type tokenFlag struct {
	TokenFile string `placeholder:"FILE" env:"JURAT_TOKEN_FILE" help:"File with a token for the server, needed if it does not show entries to everyone."`
}

func (f *tokenFlag) token() (string, error) {
	if f.TokenFile == "" {
		return "", nil
	}
	text, err := readFile(f.TokenFile)
	if err != nil {
		return "", fmt.Errorf("--token-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// logFlags name a log that is elsewhere, and by what it is believed.
type logFlags struct {
	Log   string `name:"log" placeholder:"URL" help:"Ask the log at this URL, such as https://jurat.example/log, and compute the proof from its tiles."`
	Trust string `placeholder:"FILE" help:"With --log: your trust file, which has the log's key."`
	tokenFlag
}

// A remoteLog is a log that is elsewhere, and the reader's trust file.
type remoteLog struct {
	*tiles.Client
	trust *trust.Trust
	token string
}

func (f *logFlags) open() (*remoteLog, error) {
	return openRemote(f.Log, f.Trust, f.tokenFlag)
}

func openRemote(url, trusted string, by tokenFlag) (*remoteLog, error) {
	if trusted == "" {
		return nil, hint(errors.New("--trust: nothing that a log says can be believed without the log's key"), "its operator gives you the file that 'jurat trust' prints; compare its fingerprint over another channel")
	}
	r := new(remoteLog)
	var err error
	if r.trust, err = readTrust("--trust", trusted); err != nil {
		return nil, err
	}
	if r.token, err = by.token(); err != nil {
		return nil, err
	}
	r.Client, err = tiles.New(tiles.Config{URL: url, Token: r.token})
	return r, hint(err, "the log of a jurat server is at its URL with /log at the end")
}

// newest fetches the log's checkpoint and has its signature checked.
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
	leaf := tlog.RecordHash(record.LogEntry(record.Log.LogCounts))
	if err := tlog.CheckRecord(proof, head.Size, head.Root, record.Log.Index, leaf); err != nil {
		return fmt.Errorf("the log %s has another record at index %d, or counts it otherwise", head.Origin, record.Log.Index)
	}
	place := &evidence.LogProof{Index: record.Log.Index, LogCounts: record.Log.LogCounts, Checkpoint: signed}
	for _, node := range proof {
		place.Proof = append(place.Proof, node[:])
	}
	record.Log = place
	return nil
}

// record reads a record file, or asks the log's server for a record by its id.
func (r *remoteLog) record(ctx context.Context, name string) (*evidence.Record, error) {
	doc, err := readFile(name)
	if err == nil {
		record, _, err := evidence.Read(doc)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return record, nil
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
	old, err := r.sizeOrCheckpoint(from)
	if err != nil {
		return nil, err
	}
	var head operator.Checkpoint
	if to == nil {
		_, head, err = r.newest(ctx)
	} else {
		head, err = r.readCheckpoint(*to)
	}
	if err != nil {
		return nil, err
	}
	proof, err := r.Tree(ctx, head).ProveConsistency(old.Size)
	if err != nil {
		return nil, err
	}
	if old.Origin == "" { // a number of entries, of which nothing else is known
		return proof, nil
	}
	if err := proof.Check(old, head); err != nil {
		return nil, hint(fmt.Errorf("the log %s has signed two histories: that of %d entries is not the beginning of that of %d: %w", head.Origin, old.Size, head.Size, err),
			"keep both checkpoints; 'jurat log monitor' with a copy of the earlier one as --state writes what shows it to others")
	}
	return proof, nil
}

func (r *remoteLog) sizeOrCheckpoint(text string) (operator.Checkpoint, error) {
	if size, ok := wholeNumber(text); ok {
		return operator.Checkpoint{Size: size}, nil
	}
	return r.readCheckpoint(text)
}

func (r *remoteLog) readCheckpoint(file string) (operator.Checkpoint, error) {
	signed, err := readFile(file)
	if err != nil {
		return operator.Checkpoint{}, err
	}
	head, err := r.trust.OpenCheckpoint(string(signed))
	if err != nil {
		return head, fmt.Errorf("%s: %w", file, err)
	}
	return head, nil
}
