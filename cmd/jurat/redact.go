package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"jurat/evidence"
	"jurat/internal/atomicfile"
)

type redactCmd struct {
	File   string   `arg:"" help:"A record file or a case file; - is standard input."`
	Field  []string `required:"" help:"The field whose text to take out: prompt, or /metadata/user_id. May be given several times." placeholder:"POINTER" sep:"none"`
	Record string   `help:"Only of the record with this id. Default: of every record in the file." placeholder:"ID"`
	Out    string   `help:"The file to write, which must not be there. Default: standard output." placeholder:"FILE"`
}

// Run redacts one file.
func (c *redactCmd) Run(io stdio) error {
	doc, err := readInput(io.in, c.File)
	if err != nil {
		return err
	}
	pointers, err := readPointers("--field", c.Field)
	if err != nil {
		return err
	}
	file, records, err := openFile(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "only a whole record or case file can be redacted; 'jurat verify' says more")
	}
	if c.Record != "" {
		records = slices.DeleteFunc(slices.Clone(records), func(r *evidence.Record) bool { return r.Payload.RecordID != c.Record })
		if len(records) == 0 {
			return fmt.Errorf("%s: it has no record %q", c.File, c.Record)
		}
	}
	withheld, err := evidence.Withhold(records, pointers)
	if errors.Is(err, evidence.ErrNotApart) {
		err = hint(err, "what is to be withheld later is sealed apart at once: 'jurat seal --apart', 'jurat apart'; nothing was written")
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.File, err)
	}
	if err := c.write(io, file); err != nil {
		return err
	}
	for _, w := range withheld {
		said := "withheld"
		if w.Already {
			said = "the text was not in the file"
		}
		fmt.Fprintf(io.err, "jurat: record %s: %s: %s\n", w.RecordID, w.Pointer, said)
	}
	return nil
}

func (c *redactCmd) write(io stdio, file marshaler) error {
	if c.Out == "" {
		return io.print(file)
	}
	doc, err := file.Marshal()
	if err != nil {
		return err
	}
	err = atomicfile.Create(c.Out, doc, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("--out: %s is there already", c.Out), "name another file, or remove it yourself")
	}
	return err
}

// A marshaler is a record or a bundle.
type marshaler interface{ Marshal() ([]byte, error) }

// openFile opens a record or a bundle in any spelling, so that it can be written again in its canonical form.
func openFile(doc []byte) (marshaler, []*evidence.Record, error) {
	if evidence.IsBundle(doc) {
		b, _, err := evidence.ReadWholeBundle(doc)
		if err != nil {
			return nil, nil, err
		}
		return b, b.Records, nil
	}
	r, _, err := evidence.Read(doc)
	if err != nil {
		return nil, nil, err
	}
	return r, []*evidence.Record{r}, nil
}
