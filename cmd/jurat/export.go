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

	"jurat/client"
	"jurat/evidence"
	"jurat/internal/atomicfile"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/openssl"
	"jurat/internal/plural"
	"jurat/scitt"
	"jurat/verify"
	"jurat/verify/trust"
)

type exportCmd struct {
	File     string   `arg:"" help:"A record file or a case file; - is standard input."`
	OpenSSL  string   `name:"openssl" xor:"to" placeholder:"DIR" help:"Write what openssl needs to this folder; made if it is missing."`
	SCITT    string   `name:"scitt" xor:"to" placeholder:"OUT" help:"Write a SCITT Signed Statement with a receipt of the log (COSE, RFC 9943 and 9942): a record to this file, each record of a case file into this folder."`
	Withhold []string `xor:"to" placeholder:"POINTER" sep:"none" help:"Write the file again without the text of this field, which was sealed apart: prompt, or /metadata/user_id. May be given several times."`
	Record   string   `placeholder:"ID" help:"With --withhold: only of the record with this id. Default: of every record in the file."`
	Out      string   `placeholder:"FILE" help:"With --withhold: the file to write, which must not be there. Default: standard output."`
	Trust    string   `help:"With --openssl: the trust file whose public keys and authorities are written. Default: this installation's own."`
	Key      string   `placeholder:"FILE" help:"With --scitt: the private key (PKCS #8 in PEM) that signs. Default: this installation's operator's."`
}

func (c *exportCmd) Run(ctx context.Context, a *app, io stdio) error {
	switch {
	case c.OpenSSL+c.SCITT == "" && c.Withhold == nil:
		return hint(errors.New("missing flags: --openssl=DIR, --scitt=OUT or --withhold=POINTER"), "run 'jurat export --help' to see what there is")
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
	if err != nil {
		return err
	}
	p := newPrinter(io.out)
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

func (c *exportCmd) statements(ctx context.Context, a *app, io stdio, doc []byte) error {
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
	if err := c.writeStatements(ctx, a, io, s, records); err != nil {
		return err
	}
	s.tell(io)
	return nil
}

// writeStatements writes with the installation in the data folder. An owner who signs with --key may have none, and then no log.
func (c *exportCmd) writeStatements(ctx context.Context, a *app, io stdio, s *statementExport, records []*evidence.Record) error {
	if c.Key == "" {
		return hint(a.with(ctx, func(i *installation.Installation) error {
			signers, err := i.Keys.Signers(ctx, evidence.RoleOperator, ledger.OperatorName)
			if err != nil {
				return err
			}
			return s.all(ctx, io, i, signers, records)
		}), "or give a private key with --key FILE")
	}
	signers, err := readKeys([]string{c.Key}, client.ParseKey)
	if err != nil {
		return fmt.Errorf("--key: %w", err)
	}
	err = a.with(ctx, func(i *installation.Installation) error { return s.all(ctx, io, i, signers, records) })
	if errors.Is(err, installation.ErrNone) {
		return s.all(ctx, io, nil, signers, records)
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

func (s *statementExport) signWith(signers []evidence.Signer) error {
	i := slices.IndexFunc(signers, func(s evidence.Signer) bool {
		return s.Info().Algorithm == evidence.ES256 || s.Info().Algorithm == evidence.Ed25519
	})
	if i < 0 {
		return fmt.Errorf("%w, and this key signs by %s", scitt.ErrAlgorithm, signers[0].Info().Algorithm)
	}
	s.signer = signers[i]
	return nil
}

func (s *statementExport) all(ctx context.Context, io stdio, log *installation.Installation, signers []evidence.Signer, records []*evidence.Record) error {
	if err := s.signWith(signers); err != nil {
		return err
	}
	s.log = log
	tell := progress(io, "records")
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

func (s *statementExport) tell(io stdio) {
	if s.without > 0 {
		io.tell("%d of %s got no receipt: %v", s.without, plural.Of(s.written, "statement"), s.why)
		io.tell("hint: what 'jurat log prove' wrote gets one, from the operator of that log")
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

func (c *exportCmd) withhold(io stdio, doc []byte) error {
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
	if err := writeTo(io, c.Out, file); err != nil {
		return err
	}
	for _, w := range withheld {
		io.tell("record %s: %s: %s", w.RecordID, w.Pointer, pick(w.Already, "the text was not in the file", "withheld"))
	}
	return nil
}

func writeTo(io stdio, out string, file marshaler) error {
	if out == "" {
		return io.print(file, nil)
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
