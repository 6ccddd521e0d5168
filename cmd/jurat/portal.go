package main

import (
	"fmt"

	"jurat/internal/atomicfile"
	"jurat/internal/portal"
)

type portalCmd struct {
	Out string `help:"Where to write the page." default:"verify.html" placeholder:"FILE"`
}

// Help is shown by 'jurat portal --help'.
func (*portalCmd) Help() string {
	return `Writes the verification portal as one file: a page for a browser that verifies records and case files as 'jurat verify' does,
without a network and without this program. It brings no trust: the reader chooses a trust file.

stderr shows the page's SHA-256. Every jurat built from the same source prints the same one, so a person who got the page from
others can compare.`
}

// Run writes the page.
func (c *portalCmd) Run(io stdio) error {
	if err := atomicfile.Replace(c.Out, portal.File(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(io.err, "jurat: wrote %s\n", c.Out)
	_, err := fmt.Fprintf(io.err, "jurat: SHA-256 %x\n", portal.Digest())
	return err
}
