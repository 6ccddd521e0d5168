package main

import (
	"fmt"
	"os"
	"time"

	"jurat/verify"
	"jurat/verify/trust"
)

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

// open opens a file that a flag names, if it names one.
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
