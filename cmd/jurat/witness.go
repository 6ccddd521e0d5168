package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"

	"jurat/evidence/operator"
	"jurat/internal/atomicfile"
	"jurat/internal/filestore"
	"jurat/internal/installation"
	"jurat/internal/witness"
)

type witnessCmd struct {
	Init string `xor:"what" placeholder:"NAME" help:"Make the witness's key, and print what those who trust it need. Its name is where it can be reached, without https://, such as witness.example/w1."`
	Key  bool   `xor:"what" help:"Print the witness's verifier key."`
	List bool   `xor:"what" help:"List what the witness has cosigned last of each log."`
	witnessFolder
	Addr string   `default:"127.0.0.1:8418" help:"Where to listen. Put a proxy with TLS before it."`
	Log  []string `sep:"none" placeholder:"FILE|KEY" help:"A log to be witnessed: the verifier key of one, or a trust file that names its logs. May be given several times."`
	logJSONFlag
}

func (c *witnessCmd) Run(ctx context.Context, io stdio) error {
	switch {
	case (c.Init != "" || c.Key || c.List) == (c.Log != nil):
		return hint(errors.New("want --log FILE|KEY to witness logs, or one of --init, --key and --list alone"), "'jurat witness --help' shows how to begin")
	case c.Init != "":
		return c.begin(ctx, io)
	case c.Key:
		key, err := c.key()
		if err != nil {
			return err
		}
		return io.line("%s", key)
	case c.List:
		return c.list(ctx, io)
	}
	return c.serve(ctx, io)
}

// witnessFolder is where a witness keeps its key and what it has cosigned.
type witnessFolder struct {
	Dir string `default:"./jurat-witness" env:"JURAT_WITNESS" help:"The witness's folder: its key, and what it has cosigned. Never restore it from a backup: it would sign a second history."`
}

func (f *witnessFolder) keyFile() string { return filepath.Join(f.Dir, "witness.key") }

func (f *witnessFolder) memory() string { return filepath.Join(f.Dir, "witness.db") }

func (f *witnessFolder) key() (*operator.Cosigner, error) {
	text, err := filestore.ReadPrivate(f.keyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hint(err, "'jurat witness --init NAME' makes a witness")
	}
	if err != nil {
		return nil, err
	}
	key, err := operator.ParseCosigner(strings.TrimSuffix(string(text), "\n"))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.keyFile(), err)
	}
	return key, nil
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

// begin makes a witness.
func (c *witnessCmd) begin(ctx context.Context, io stdio) error {
	key, err := operator.GenerateCosigner(nil, c.Init)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	err = atomicfile.Create(c.keyFile(), []byte(key.MarshalPrivate()+"\n"), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return hint(err, "there is a witness already; 'jurat witness --key' prints its key")
	}
	if err != nil {
		return err
	}
	w, err := witness.Open(ctx, witness.Config{File: c.memory(), Key: key}) // which knows nothing yet, and is never begun anew
	if err != nil {
		return err
	}
	return errors.Join(io.line("%s", key), w.Close())
}

func (c *witnessCmd) list(ctx context.Context, io stdio) error {
	w, err := c.open(ctx, nil)
	if err != nil {
		return err
	}
	known, err := w.Logs(ctx)
	t := table{heads: []head{{name: "log", rank: 1}, {name: "entries", right: true}}}
	for _, k := range known {
		t.row(k.Origin, k.Size)
	}
	return errors.Join(err, jsonFlag{}.list(io, nil, &t, ""), w.Close())
}

// serve answers until it is interrupted.
func (c *witnessCmd) serve(ctx context.Context, io stdio) error {
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
		fmt.Fprintf(io.err, "jurat: witnesses the log %s\n", log.Name())
	}
	fmt.Fprintf(io.err, "jurat: as %s; Ctrl-C ends it\n", w.Key())
	if err := io.line("http://%s", l.Addr()); err != nil {
		return errors.Join(err, l.Close(), w.Close())
	}
	s := &http.Server{Handler: w.Handler(io.logger(c.LogJSON)), ReadTimeout: time.Minute, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 32 << 10}
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
	URL    string `arg:"" optional:"" help:"Add the witness that takes checkpoints there: what comes before /add-checkpoint. With --remove, a witness's URL or name."`
	Key    string `placeholder:"KEY" help:"The verifier key of the new witness, which its operator gives you: name+hash+base64."`
	Quorum int    `placeholder:"N" help:"How many of the witnesses must have cosigned a checkpoint for it to count. Left out: more than half."`
	Remove bool   `xor:"what" help:"Stop asking this witness."`
	Ask    bool   `xor:"what" help:"Have all witnesses cosign a checkpoint over all that is in the log, now."`
}

func (c *logWitnessCmd) Run(ctx context.Context, a *app, io stdio) error {
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
	return a.with(ctx, func(i *installation.Installation) error { return do(ctx, i, io) })
}

func (c *logWitnessCmd) add(ctx context.Context, i *installation.Installation, io stdio) error {
	if err := i.Witnesses.Add(ctx, witness.Address{URL: c.URL, Key: c.Key}, c.Quorum); err != nil {
		return err
	}
	_, err := fmt.Fprintln(io.err, "jurat: give the new trust file ('jurat trust') to the people who verify; 'jurat log witness --ask' asks at once")
	return err
}

func (c *logWitnessCmd) remove(ctx context.Context, i *installation.Installation, io stdio) error {
	if err := i.Witnesses.Remove(ctx, c.URL, c.Quorum); err != nil {
		return hint(err, "'jurat log witness' names them")
	}
	_, err := fmt.Fprintln(io.err, "jurat: trust files that you gave out still demand it; replace them")
	return err
}

func (c *logWitnessCmd) list(ctx context.Context, i *installation.Installation, io stdio) error {
	settings, err := i.Witnesses.Settings(ctx)
	if err != nil {
		return err
	}
	if len(settings.List) == 0 {
		return io.line("no witness cosigns this log's checkpoints")
	}
	kept, err := i.Witnesses.LastCosigned(ctx)
	if err != nil {
		return err
	}
	size, err := i.Ledger.Size(ctx)
	if err != nil {
		return err
	}
	if kept == nil {
		kept = &witness.Cosigning{Quorum: settings.Quorum}
		for _, w := range settings.List {
			kept.Answers = append(kept.Answers, witness.Answer{Address: w, Err: fmt.Errorf("it has cosigned nothing yet")})
		}
	}
	return printCosigning(io, kept, size)
}

func (c *logWitnessCmd) ask(ctx context.Context, i *installation.Installation, io stdio) error {
	asked, err := i.Witnesses.Cosign(ctx)
	if err != nil {
		return err
	}
	if asked == nil {
		return hint(fmt.Errorf("this log has no witness"), "'jurat log witness URL --key KEY' adds one")
	}
	return closing(when(!asked.Met(), exitUndecided), printCosigning(io, asked, asked.Size))
}

// printCosigning prints which witnesses cosigned which checkpoint.
func printCosigning(io stdio, c *witness.Cosigning, size int64) error {
	p := newPrinter(io.out)
	met := "which counts"
	if !c.Met() {
		met = "which is too few"
	}
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
