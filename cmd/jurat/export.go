package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/openssl"
	"jurat/scitt"
	"jurat/verify/trust"
)

type exportCmd struct {
	File     string   `arg:"" help:"A record file or a case file; - is standard input."`
	OpenSSL  string   `name:"openssl" xor:"to" required:"" placeholder:"DIR" help:"Write what openssl needs to this folder; made if it is missing."`
	SCITT    string   `name:"scitt" xor:"to" required:"" placeholder:"OUT" help:"Write a SCITT Signed Statement with a receipt of the log (COSE, RFC 9943 and 9942): a record to this file, each record of a case file into this folder."`
	Withhold []string `xor:"to" required:"" placeholder:"POINTER" sep:"none" help:"Write the file again without the text of this field, which was sealed apart: prompt, or /metadata/user_id. May be given several times."`
	Record   string   `placeholder:"ID" help:"With --withhold: only of the record with this id. Default: of every record in the file."`
	Out      string   `placeholder:"FILE" help:"With --withhold: the file to write, which must not be there. Default: standard output."`
	Trust    string   `help:"With --openssl: the trust file whose public keys and authorities are written. Default: this installation's own."`
	Key      string   `placeholder:"FILE" help:"With --scitt: the private key (PKCS #8 in PEM) that signs. Default: this installation's operator's."`
}

// Run writes the folder or the statements.
func (c *exportCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.OpenSSL == "" && c.Trust != "":
		return errors.New("--trust is for --openssl: a statement takes nothing from a trust file")
	case c.SCITT == "" && c.Key != "":
		return errors.New("--key is for --scitt: nothing else is signed")
	case c.Withhold == nil && c.Record+c.Out != "":
		return errors.New("--record and --out are for --withhold")
	}
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	if c.Withhold != nil {
		return c.withhold(io, doc)
	}
	if c.SCITT != "" {
		return c.statements(ctx, a, io, doc)
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
	if errors.Is(err, openssl.ErrNoKey) {
		return hint(err, "give the trust file of the installation that made the record, with --trust FILE")
	}
	if err != nil {
		return err
	}
	return c.tell(io, commands)
}

// tell prints the commands that check what was written.
func (c *exportCmd) tell(io stdio, commands string) error {
	p := newPrinter(io.out)
	p.line("cd %s", quote(c.OpenSSL))
	p.lines(commands)
	return p.err
}

// put writes one file of the folder.
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

// openRecords opens a record file or a bundle file, also in a statement.
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
