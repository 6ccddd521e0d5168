package main

import (
	"errors"
	"fmt"

	"jurat/verify/trust"
)

type trustJoinCmd struct {
	Files []string `arg:"" name:"file" help:"Trust files, each from its owner." placeholder:"FILE"`
}

// Help is shown by 'jurat trust join --help'.
func (*trustJoinCmd) Help() string {
	return `Writes one trust file that trusts what each of several does, to verify files of several owners together. Check the fingerprint of each with its
owner first. The files must not contradict each other, and must demand the same witnesses.

    jurat trust join ours.json theirs.json > both.json
    jurat verify --trust both.json ours.jurat theirs.jurat`
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
