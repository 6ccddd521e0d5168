// Command views computes the view of each line of facts in a file. The test builds it for WebAssembly.
package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/go-json-experiment/json"

	"jurat/reputation"
)

func main() {
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(file string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(doc) {
		f := new(reputation.Facts)
		if err := json.Unmarshal(line, f, json.RejectUnknownMembers(true)); err != nil {
			return err
		}
		v, err := f.View()
		if err != nil {
			return err
		}
		form, err := v.Marshal()
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(form); err != nil {
			return err
		}
	}
	return nil
}
