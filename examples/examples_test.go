package examples_test

import (
	"os"
	"testing"

	"jurat/examples"
	"jurat/internal/court/subject"
	"jurat/internal/test/must"
)

func TestExamplesAreCases(t *testing.T) {
	folders := must.Get(os.ReadDir("."))(t)
	n := 0
	for _, f := range folders {
		if f.IsDir() {
			n++
		}
	}
	must.Hold(t, len(examples.Names()) == n && n != 0, "%d names for %d folders", len(examples.Names()), n)
	for _, name := range examples.Names() {
		card, conversation, err := examples.Read(name)
		must.Do(t, err)
		c := must.Get(subject.New(card, conversation))(t)
		onDisk, err := subject.Load(name)
		must.Hold(t, err == nil && onDisk.Digest() == c.Digest(), "%s in the program differs from %s in the folder: %v", name, name, err)
	}
	for _, name := range []string{"", "..", "../examples/kitchen-return", "nothing"} {
		_, _, err := examples.Read(name)
		must.Hold(t, err != nil, "there is an example %q", name)
	}
}
