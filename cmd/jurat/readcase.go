package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	source "io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"jurat/internal/fault"
	"jurat/internal/plural"
	"jurat/internal/subject"
	"jurat/verify"
	"jurat/verify/trust"
)

type caseFlags struct {
	readerFlags
	Card   string `help:"With a file as CASE: the agent's card. Left out, the agent has none." placeholder:"FILE"`
	Format string `help:"The form of the conversation, if its structure does not show it: chat, a2a, anthropic, responses, gemini, inspect, promptfoo." placeholder:"FORM"`

	cardRead []byte // of Card, which may be a pipe
}

// load reads what CASE names: a folder, a file with one or several conversations, or a file with sealed records. whole: it finds every
// mistake, and not only the first.
func (f *caseFlags) load(ctx context.Context, io stdio, name string, whole bool) (list []*attempt, err error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errors.New("no such file or folder")
	case err != nil:
		return nil, err
	}
	form, err := subject.ParseForm(f.Format)
	if err != nil {
		return nil, fmt.Errorf("--format: %w", err)
	}
	from, o, found := name, subject.Options{Form: form, Check: whole}, []subject.Brought(nil)
	if info.IsDir() {
		from = filepath.Join(name, subject.ConversationFile)
		found, err = f.folder(name, o)
	} else {
		found, err = f.read(ctx, io, name, o)
	}
	for _, b := range found {
		list = append(list, &attempt{name: name + pick(b.Name != "", "#"+fileName(b.Name), ""), from: from, on: b.Case, err: b.Err(), mistakes: b.Mistakes})
	}
	return list, err
}

func (f *caseFlags) read(ctx context.Context, io stdio, name string, o subject.Options) ([]subject.Brought, error) {
	file, err := openCase(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if o.Form == "" {
		on, err := f.records(ctx, io, name, file)
		if !errors.Is(err, verify.ErrNotOurs) {
			return []subject.Brought{{Case: on}}, err
		}
	}
	return f.readTranscripts(name, file, o)
}

// openCase opens a file that is read more than once. What is no file on a disk, such as a pipe, is read into memory.
func openCase(name string) (source.ReadSeekCloser, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	if info, err := file.Stat(); err != nil || info.Mode().IsRegular() {
		return file, err
	}
	defer file.Close()
	data, err := readAtMost(file, "-", subject.MaxTranscripts)
	if err == nil && len(data) > subject.MaxTranscripts {
		err = fmt.Errorf("not a regular file, and longer than %d MiB: save it first", subject.MaxTranscripts>>20)
	}
	fault.While(&err, "%s", name)
	return heldFile{bytes.NewReader(data)}, err
}

type heldFile struct{ *bytes.Reader }

func (heldFile) Close() error { return nil }

func (f *caseFlags) ofRecords() bool {
	return f.Trust != "" || f.CRL != nil || f.At != nil
}

func (f *caseFlags) folder(name string, o subject.Options) ([]subject.Brought, error) {
	if f.ofRecords() || f.Card != "" {
		return nil, fmt.Errorf("--trust, --at, --crl and --card go with a file as CASE, and %s is a folder", name)
	}
	b, err := subject.LoadFolder(name, o)
	return []subject.Brought{b}, err
}

func (f *caseFlags) readTranscripts(name string, file source.ReadSeeker, o subject.Options) ([]subject.Brought, error) {
	if f.ofRecords() {
		return nil, fmt.Errorf("--trust, --at and --crl go with sealed records as CASE, and %s holds none: %w", name, verify.ErrNotOurs)
	}
	if _, err := file.Seek(0, source.SeekStart); err != nil {
		return nil, err
	}
	data, err := source.ReadAll(source.LimitReader(file, subject.MaxTranscripts+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if o.Card, err = f.card(); err != nil {
		return nil, err
	}
	found, err := subject.ReadTranscripts(name, data, o)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("%s: there is no conversation in it", name)
	}
	return found, err
}

// records verifies records and makes evidence of them.
func (f *caseFlags) records(ctx context.Context, io stdio, name string, file source.ReadSeeker) (*subject.Case, error) {
	o, err := f.options()
	card, noCard := f.card()
	if err := cmp.Or(err, noCard); err != nil {
		return nil, err
	}
	from := source.Reader(file)
	if onDisk, is := file.(*os.File); is {
		from = watch(ctx, io, onDisk)
	}
	return readCase(io, name, from, o, card)
}

// readCase verifies records, makes evidence of them, and says what the jurors are told of doubts.
func readCase(io stdio, name string, file source.Reader, o verify.Options, card []byte) (*subject.Case, error) {
	c, report, err := subject.ReadSealed(file, o, card)
	switch {
	case errors.Is(err, subject.ErrRefuted):
		return nil, hint(fmt.Errorf("%s: %w", name, err), "'jurat verify' says all that is wrong with it; nothing was recorded")
	case errors.Is(err, verify.ErrNotOurs):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	tellDoubts(io, name, c, report)
	return c, nil
}

func (f *caseFlags) card() ([]byte, error) {
	if f.Card == "" || f.cardRead != nil {
		return f.cardRead, nil
	}
	var err error
	f.cardRead, err = readAtMost(nil, f.Card, subject.MaxFile)
	return f.cardRead, err
}

func tellDoubts(io stdio, name string, c *subject.Case, r *verify.Report) {
	v := c.Recorded.Verification
	io.tell("%s: %s, proved: %s", name, plural.Of(c.Recorded.Records, "record"), strings.Join(v.Proved, ", "))
	for _, d := range v.NotProved {
		io.tell("%s: not proved, and the jurors are told: %s: %s", name, d.Guarantee, d.Reason)
	}
	io.tellIf(r.Trust == "", "hint: nothing is proved of records without --trust FILE")
}

// readerFlags are the reader's own inputs to verification. None of them may come from the file under verification.
type readerFlags struct {
	Trust string         `help:"Your trust file. Without one nothing can be proved." placeholder:"FILE"`
	At    *time.Time     `help:"The time of checking (RFC 3339), with which expiry dates and future times are compared. Left out: now." placeholder:"TIME"`
	CRL   []string       `name:"crl" help:"A certificate revocation list, PEM or DER, of a CA in your trust file or below one. May be given several times." placeholder:"FILE" sep:"none"`
	Grace *time.Duration `help:"How long after a record's proved time a revocation list that is out of date must have been made to count. Left out: 24h." placeholder:"DURATION"`
}

// knownLogFlags name what a reader knows of a log from elsewhere.
type knownLogFlags struct {
	Checkpoint  string `help:"A checkpoint of the log that you got elsewhere: is the file's log the same, and whole?" placeholder:"FILE"`
	Consistency string `help:"The proof that your checkpoint and the file's are of one history." placeholder:"FILE"`
	Entries     string `help:"All entries that your checkpoint covers (without one, the file's): is anything of the file's chains missing?" placeholder:"FILE"`
}

// brought is what the flags name. The files are open until close is called: entries are read while files are verified.
type brought struct {
	verify.Inputs
	files []*os.File
	err   error // the first of opening
}

func (f *readerFlags) bring() *brought {
	b := &brought{Inputs: verify.Inputs{At: f.At, Grace: f.Grace, Now: time.Now}}
	for _, name := range f.CRL {
		if file := b.open("--crl", name); file != nil {
			b.CRLs = append(b.CRLs, *file)
		}
	}
	b.Trust = b.open("--trust", f.Trust)
	return b
}

func (b *brought) bringKnownLog(f *knownLogFlags) {
	b.Checkpoint, b.Consistency = b.open("--checkpoint", f.Checkpoint), b.open("--consistency", f.Consistency)
	if b.open("--entries", f.Entries) != nil {
		b.Entries = b.files[len(b.files)-1]
	}
}

func (b *brought) open(flag, name string) *verify.InputFile {
	if name == "" || b.err != nil {
		return nil
	}
	file, err := os.Open(name)
	if err != nil {
		b.err = fmt.Errorf("%s: %w", flag, err)
		return nil
	}
	b.files = append(b.files, file)
	return &verify.InputFile{Name: name, From: file}
}

func (b *brought) close() {
	for _, file := range b.files {
		file.Close()
	}
}

func (b *brought) options() (verify.Options, error) {
	if b.err != nil {
		return verify.Options{}, b.err
	}
	return b.Inputs.Options()
}

func (f *readerFlags) options() (verify.Options, error) {
	b := f.bring()
	defer b.close()
	return b.options()
}

// readTrust reads a reader's trust file, which a flag names, or an argument. Without a name it returns an empty trust file, which trusts nothing.
func readTrust(flag, name string) (*trust.Trust, error) {
	b := new(brought)
	defer b.close()
	file := b.open(flag, name)
	if b.err != nil {
		return nil, b.err
	}
	return verify.ReadTrust(file)
}
