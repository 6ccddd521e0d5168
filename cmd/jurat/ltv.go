package main

import (
	"context"
	"fmt"
	"os"

	"jurat/evidence"
	"jurat/internal/installation"
	"jurat/internal/ltv"
)

// ltvFlags add to records what CAs said about the revocation of their certificates.
type ltvFlags struct {
	LTV    bool   `name:"ltv" help:"Add the revocation lists and OCSP responses about the records' certificates that this log has ('jurat ca publish')."`
	LTVDir string `name:"ltv-dir" placeholder:"DIR" help:"Add those of this folder: lists in DER or PEM, OCSP responses in DER. For CAs elsewhere."`
}

const ltvHelp = `

With --ltv and --ltv-dir the records carry what their CAs said about revocation, so that a reader needs no lists of the CAs, now or when the CAs are
gone. A statement counts for a reader only if it was made later than the record's independent time stamp and 24 hours (or the reader's --grace): so
export a record again when its CA has said something that is newer. stderr names each certificate about which nothing is here.`

// add adds to records, in the order of their file.
func (f *ltvFlags) add(ctx context.Context, i *installation.Installation, io stdio, records ...*evidence.Record) error {
	var sources []*ltv.Source
	if f.LTV {
		of, err := ltv.FromLog(ctx, i.Certificates)
		if err != nil {
			return fmt.Errorf("--ltv: %w", err)
		}
		sources = append(sources, of...)
	}
	if f.LTVDir != "" {
		of, err := ltv.FromFolder(os.DirFS(f.LTVDir))
		if err != nil {
			return fmt.Errorf("--ltv-dir: %w", err)
		}
		sources = append(sources, of...)
	}
	if !f.LTV && f.LTVDir == "" {
		return nil
	}
	missing, err := ltv.Add(ctx, records, sources)
	if err != nil {
		return fmt.Errorf("--ltv: %w", err)
	}
	told := map[string]bool{}
	for _, m := range missing {
		line := fmt.Sprintf("the certificate of %q: %s", m.Subject, m.Why)
		if !told[line] {
			fmt.Fprintf(io.err, "jurat: record %s: %s\n", m.RecordID, line)
		}
		told[line] = true
	}
	return nil
}
