package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"jurat/evidence"
	"jurat/internal/atomicfile"
)

// withhold writes the file without texts.
func (c *exportCmd) withhold(io stdio, doc []byte) error {
	pointers, err := readPointers("--withhold", c.Withhold)
	if err != nil {
		return err
	}
	file, records, err := openFile(doc)
	if err != nil {
		return hint(fmt.Errorf("%s: %w", c.File, err), "only a whole record or case file can be written without texts; 'jurat verify' says more")
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
	if err := writeTo(io, c.Out, file); err != nil {
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

// writeTo writes a file that must not be there; "": to standard output.
func writeTo(io stdio, out string, file marshaler) error {
	if out == "" {
		return io.print(file)
	}
	doc, err := file.Marshal()
	if err != nil {
		return err
	}
	err = atomicfile.Create(out, doc, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return hint(fmt.Errorf("--out: %s is there already", out), "name another file, or remove it yourself")
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
