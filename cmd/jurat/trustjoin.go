package main

import (
	"errors"
	"fmt"

	"jurat/verify/trust"
)

type trustJoinCmd struct {
	Files []string `arg:"" name:"file" help:"Trust files, each from its owner." placeholder:"FILE"`
}

// Run prints the joined trust file.
func (c *trustJoinCmd) Run(io stdio) error {
	if len(c.Files) < 2 {
		return hint(errors.New("one trust file needs no joining"), "jurat trust join %s OTHER.json", c.Files[0])
	}
	var files []*trust.Trust
	for _, name := range c.Files {
		file, err := readTrust(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		files = append(files, file)
	}
	joined, err := trust.Join(files...)
	if err != nil {
		return err
	}
	return printTrust(joined, io)
}
