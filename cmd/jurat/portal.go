package main

import (
	"fmt"

	"jurat/internal/atomicfile"
	"jurat/internal/portal"
)

type portalCmd struct {
	Out string `help:"Where to write the page." default:"verify.html" placeholder:"FILE"`
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
