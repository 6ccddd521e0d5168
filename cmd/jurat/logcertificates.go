package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"strings"
	"time"

	"jurat/client"
	"jurat/evidence"
	"jurat/evidence/operator"
	"jurat/internal/certlog"
	"jurat/internal/keys"
	"jurat/internal/plural"
	"jurat/verify"
	"jurat/verify/trust"
)

type logCertificatesCmd struct {
	File  []string `arg:"" optional:"" help:"The chains operator-certificates and operator-keys, in this order, as 'jurat log case' writes them."`
	Log   string   `placeholder:"URL" help:"Ask the jurat server of this log for both chains, such as https://jurat.example/log."`
	Trust string   `required:"" placeholder:"FILE" help:"Your trust file: the operator's key and the log's, and the CAs that you trust."`
	tokenFlag
	knownLogFlags
	CRL         []string `name:"crl" placeholder:"FILE" sep:"none" help:"A revocation list of a CA that you got elsewhere, PEM or DER: is it in the log? May be given several times."`
	Certificate []string `placeholder:"FILE" sep:"none" help:"Certificates in PEM that you got elsewhere: are they in the log? May be given several times."`
	JSON        bool     `name:"json" help:"Print what was found as JSON."`
}

// Help is shown by 'jurat log certificates --help'.
func (*logCertificatesCmd) Help() string {
	return `Holds what CAs did, by the log, against what the log says of keys, and against what you got elsewhere. It alarms on
- a certificate for an actor whose key the log does not know as this actor's,
- two lists of a CA with one number, and a later list with a smaller number,
- a certificate or list that a CA signed and no act of the log names,
- a list without a certificate that was revoked before, by the log,
- an act about what the CA did not sign, and two certificates with one serial number.

From elsewhere, with an auditor's token:

    jurat log certificates --log https://jurat.example/log --trust trust.json --token-file token --crl agents.crl

Both chains are verified first, by your trust file: each record is the operator's, has its place in the log, and none between them is left
out. That the log has no later ones is shown by --checkpoint and --entries, which you get from 'jurat log monitor' and 'jurat log entries'.

Exit code 0: nothing was found. 1: an alarm, or a chain is refuted. 3: a chain is not proved. 2: it could not be looked at.`
}

// Run looks once.
func (c *logCertificatesCmd) Run(ctx context.Context, io stdio) error {
	b := (&readerFlags{Trust: c.Trust}).bring()
	defer b.close()
	b.bringKnownLog(&c.knownLogFlags)
	o, err := b.options()
	if err != nil {
		return err
	}
	bundles, err := c.bundles(ctx)
	if err != nil {
		return err
	}
	found, err := readChains(io, bundles, o)
	if err != nil {
		return err
	}
	if err := c.elsewhere(found, o.Trust); err != nil {
		return err
	}
	alarms, err := found.Alarms()
	if err != nil {
		return err
	}
	return c.tell(io, found, alarms)
}

// A namedBundle is a file with records, and what it is called in messages.
type namedBundle struct {
	name string
	*evidence.Bundle
}

// bundles reads the files, or asks the server: for keys last, so that they are not older than the certificates.
func (c *logCertificatesCmd) bundles(ctx context.Context) (list []namedBundle, err error) {
	if (c.Log == "") == (len(c.File) == 0) {
		return nil, errors.New("want the files of both chains, or --log URL")
	}
	for _, name := range c.File {
		doc, err := readFile(name)
		if err != nil {
			return nil, err
		}
		bundle, err := evidence.ParseBundle(doc)
		if err != nil {
			return nil, hint(fmt.Errorf("%s: %w", name, err), "'jurat log case operator-certificates' writes such a file")
		}
		list = append(list, namedBundle{name, bundle})
	}
	if c.Log == "" {
		return list, nil
	}
	token, err := c.token()
	if err != nil {
		return nil, err
	}
	server, is := strings.CutSuffix(strings.TrimSuffix(c.Log, "/"), "/log")
	if !is {
		return nil, fmt.Errorf("--log %s: want the address of a jurat server with /log at the end", c.Log)
	}
	from, err := client.NewClient(client.Config{URL: server, Token: token})
	if err != nil {
		return nil, err
	}
	for _, chain := range []string{operator.CertificatesChain, operator.KeysChain} {
		bundle, err := from.Chain(ctx, chain)
		if err != nil {
			return nil, hint(err, "an auditor's token reads the operator's chains: --token-file")
		}
		list = append(list, namedBundle{chain, bundle})
	}
	return list, nil
}

// readChains verifies the bundles, and takes both chains out of them.
func readChains(io stdio, bundles []namedBundle, o verify.Options) (*certlog.Watch, error) {
	found := &certlog.Watch{}
	var events []*evidence.Record
	sizes := map[string]int64{}
	for _, b := range bundles {
		report := verify.Bundle(b.Bundle, o)
		if err := whole(io, b.name, report); err != nil {
			return nil, err
		}
		for _, r := range b.Records {
			chain := r.Payload.ChainID
			switch chain {
			case operator.CertificatesChain:
				found.Acts = append(found.Acts, r)
			case operator.KeysChain:
				events = append(events, r)
			default:
				continue
			}
			if report.Log != nil {
				sizes[chain] = report.Log.Size
			}
		}
	}
	if len(found.Acts) == 0 || len(events) == 0 {
		return nil, hint(fmt.Errorf("the files have no records of the chain %s, or none of %s", operator.CertificatesChain, operator.KeysChain), "'jurat log case' writes each of them")
	}
	if sizes[operator.KeysChain] < sizes[operator.CertificatesChain] {
		return nil, errors.New("the file of operator-keys is older than that of operator-certificates: write it last, or new keys seem to be unknown")
	}
	for n, r := range found.Acts {
		if r.Payload.ChainPosition != int64(n+1) {
			return nil, fmt.Errorf("record %s stands at place %d of %s, and number %d is wanted: a file of the whole chain, once", r.Payload.RecordID, r.Payload.ChainPosition, operator.CertificatesChain, n+1)
		}
	}
	var err error
	found.Keys, err = keys.ReadHistory(events) // from the first event on
	return found, err
}

// whole returns an error unless a chain is the operator's, in the log, and complete between its records.
func whole(io stdio, name string, report *verify.Report) error {
	asked := []verify.Guarantee{verify.Content, verify.Authentication, verify.Order, verify.Chain}
	if f := report.Of(verify.Completeness); f.Reason != "not asked" {
		asked = append(asked, verify.Completeness)
	}
	for _, g := range asked {
		f := report.Of(g)
		if f.Status == verify.Proved {
			continue
		}
		fmt.Fprintf(io.err, "jurat: %s: %s %s: %s\n", name, f.Status, f.Guarantee, f.Reason)
		if f.Status == verify.Refuted {
			return exitCode(exitBad)
		}
		return exitCode(exitUndecided)
	}
	return nil
}

// elsewhere reads what the reader got elsewhere.
func (c *logCertificatesCmd) elsewhere(w *certlog.Watch, trusted *trust.Trust) error {
	for i := range trusted.CAs {
		own, err := x509.ParseCertificate(trusted.CAs[i].Certificate)
		if err != nil {
			return err
		}
		w.CAs = append(w.CAs, own)
	}
	for _, name := range c.CRL {
		doc, err := readFile(name)
		if err != nil {
			return err
		}
		list, err := trust.ParseCRL(doc)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		w.Lists = append(w.Lists, list)
	}
	ders, err := readCertificates(c.Certificate)
	if err != nil {
		return err
	}
	for _, der := range ders {
		one, err := x509.ParseCertificate(der)
		if err != nil {
			return err
		}
		w.Certificates = append(w.Certificates, one)
	}
	return nil
}

// certificatesJSON is what was found, for machines.
type certificatesJSON struct {
	Acts   int             `json:"acts"`
	Alarms []certlog.Alarm `json:"alarms"`
	At     string          `json:"at"`
}

func (c *logCertificatesCmd) tell(io stdio, w *certlog.Watch, alarms []certlog.Alarm) error {
	var code error
	if len(alarms) > 0 {
		code = exitCode(exitBad)
	}
	if c.JSON {
		return errors.Join(io.json(certificatesJSON{len(w.Acts), append([]certlog.Alarm{}, alarms...), time.Now().UTC().Format(keyTime)}), code)
	}
	p := newPrinter(io.out)
	for _, a := range alarms {
		p.line("ALARM: %s: %s", strings.ToUpper(string(a.Kind)), a.Reason)
		p.text("    ", a.Kind.Meaning())
		p.line("    CA %s", a.CA)
		for _, id := range a.Records {
			p.line("    record %s", id)
		}
	}
	if len(alarms) == 0 {
		p.line("nothing was found in %s of CAs", plural.Of(int64(len(w.Acts)), "act"))
	}
	return errors.Join(p.err, code)
}
