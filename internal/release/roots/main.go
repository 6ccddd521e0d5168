// Command roots prints the root certificates that container images hold, in PEM. They are those of Mozilla's root program, as the Go project
// hands them on. Roots that Mozilla trusts with a restriction are left out, because PEM cannot express it.
package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

const head = `# Root certificates of Mozilla's root program for TLS servers, unchanged, from the Go module golang.org/x/crypto/x509roots/fallback.
# They are subject to the terms of the Mozilla Public License, v. 2.0: https://mozilla.org/MPL/2.0/
`

func main() {
	text, err := roots()
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "roots: %v\n", err)
		os.Exit(1)
	}
}

func roots() ([]byte, error) {
	var text bytes.Buffer
	text.WriteString(head)
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		parsed, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(&text, "\n# %s\n", parsed.Subject)
		if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}
	return text.Bytes(), nil
}
