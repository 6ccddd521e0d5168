package main

import (
	"errors"
	"path/filepath"

	"jurat/internal/lab"
)

// show prints the parts of a report that one looks for first. The page has all.
func (s streams) show(parts []lab.Part, dir string) (err error) {
	for _, p := range parts {
		if p.Detail {
			continue
		}
		if p.Heading != "" {
			err = errors.Join(err, s.say("%s", p.Heading))
		}
		for _, text := range p.Text {
			err = errors.Join(err, s.say("  %s", text))
		}
		err = errors.Join(err, s.table(p.Table))
	}
	return errors.Join(err, s.say("Report: %s and report.json beside it", filepath.Join(dir, "report.html")))
}
