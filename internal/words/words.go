// Package words holds all texts in the readers' languages. They are data: a file for each language says what records, reports and trust
// files mean, and one in the folder pages what a server's pages and the verification portal say besides. The program of the portal contains
// only the former.
//
// A line of a file is key = "text". Where a key names a value of the format, its last part is that value: position.safe_pass. A place for a
// value is written {so}. A text is a whole sentence, or a whole clause if the language can join clauses without inflection, so that the
// translator decides word order and cases, not the program. Lines that begin with # are notes.
//
// Tests demand the same keys and places in every language, and that something asks for each key.
package words

import (
	"cmp"
	"embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Lang is the two-letter code of a language (ISO 639-1). The zero value is English.
type Lang string

// The languages that have texts.
const (
	English  Lang = "en"
	Japanese Lang = "ja"
	Russian  Lang = "ru"
)

// Langs lists every language, in the order of display. The first is the default.
func Langs() []Lang { return []Lang{English, Japanese, Russian} }

// Name returns the language's name in the language itself.
func (l Lang) Name() string { return Of(l).Say("language") }

// file returns the name of the language's file; English for an unknown language.
func (l Lang) file() string {
	if !slices.Contains(Langs(), l) {
		l = English
	}
	return string(l) + ".txt"
}

// Texts are the texts of a language by their keys.
type Texts map[string]string

// Say returns a text with values in its places, given as name and value in turn. It is "" for a key that has no text, as that of a value
// that this program does not know. It does not search inserted values for places, so text from a record cannot insert another value.
func (t Texts) Say(key string, pairs ...any) string {
	var old []string
	for i := 0; i+1 < len(pairs); i += 2 {
		old = append(old, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return strings.NewReplacer(old...).Replace(t[key])
}

// Name names a value of a kind; a value that has no name in the language is shown as it is.
func (t Texts) Name(kind, value string) string { return cmp.Or(t.Say(kind+"."+value), value) }

//go:embed *.txt
var ofRecords embed.FS

//go:embed pages/*.txt
var ofPages embed.FS

// Of returns what a language says of records, reports and trust files.
func Of(l Lang) Texts { return read(ofRecords, l.file(), nil) }

// OfPages returns all texts of a language.
func OfPages(l Lang) Texts { return read(ofPages, "pages/"+l.file(), Of(l)) }

// made has the texts of each file that was read.
var made sync.Map

// read adds the texts of a file to others. It reads each file once.
func read(files embed.FS, name string, others Texts) Texts {
	if all, is := made.Load(name); is {
		return all.(Texts)
	}
	doc, err := files.ReadFile(name)
	if err != nil {
		panic(fmt.Sprintf("words: %v", err)) // each language has its files
	}
	all := Texts{}
	maps.Copy(all, others)
	maps.Copy(all, Parse(string(doc)))
	made.Store(name, all)
	return all
}

// Parse reads the lines of a file.
func Parse(doc string) Texts {
	all := Texts{}
	for line := range strings.Lines(doc) {
		if key, text, is := strings.Cut(strings.TrimSpace(line), ` = "`); is && key[0] != '#' {
			all[key] = strings.TrimSuffix(text, `"`)
		}
	}
	return all
}
