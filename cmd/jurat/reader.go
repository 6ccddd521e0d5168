package main

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"jurat/verify"
)

// readerFlags are what whoever verifies brings along, since nothing of it may come from what is verified.
type readerFlags struct {
	Trust string     `help:"Your trust file. Without one nothing can be proved." placeholder:"FILE"`
	At    *time.Time `help:"The moment of checking (RFC 3339), by which it is judged what is still to come and what is out of date. Left out: now." placeholder:"TIME"`
	CRL   []string   `name:"crl" help:"A certificate revocation list, PEM or DER, of a CA in your trust file or below one. May be given several times." placeholder:"FILE" sep:"none"`
}

func (f *readerFlags) options() (verify.Options, error) {
	o := verify.Options{At: time.Now()}
	if f.At != nil {
		if o.At = *f.At; o.At.IsZero() {
			return o, errors.New("--at: nothing was checked before the year 1")
		}
	}
	for _, file := range f.CRL {
		list, err := readCRL(file)
		if err != nil {
			return o, err
		}
		o.CRLs = append(o.CRLs, list)
	}
	var err error
	o.Trust, err = readTrust(f.Trust)
	return o, err
}

// readCRL reads no more of a file than a list can have.
func readCRL(file string) (*x509.RevocationList, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	doc, err := io.ReadAll(io.LimitReader(f, verify.MaxCRL+1))
	if err != nil {
		return nil, err
	}
	list, err := verify.ParseCRL(doc)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return list, nil
}
