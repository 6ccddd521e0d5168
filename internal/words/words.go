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
	"strconv"
	"strings"
	"sync"

	"jurat/verify"
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

// Reason says in a language why a finding is what it is. In English it is the finding's own reason, in package verify's words. Those have
// values: names, digests, times. Other languages take these over as they are; text from a file is never translated.
func Reason(l Lang, f verify.Finding) string {
	t := Of(l)
	if t["reason.with"] == "" || f.Reason == "" {
		return f.Reason
	}
	said := t.reason(f)
	values := valuesIn(f.Reason)
	if len(values) == 0 || f.Status == verify.Proved {
		return said
	}
	return t.Say("reason.with", "said", said, "values", strings.Join(values, ", "))
}

func (t Texts) reason(f verify.Finding) string {
	if f.Status == verify.Proved {
		return cmp.Or(t.Say("reason.proved/"+string(f.Guarantee)+"/"+f.Rule), t.Say("reason.proved/"+string(f.Guarantee)))
	}
	if f.Rule == "" { // nothing was examined
		return t.Say("reason.unopened")
	}
	keys := []string{string(f.Guarantee) + "/" + f.Rule, f.Rule}
	if f.Status == verify.Refuted {
		keys = []string{keys[0] + "!", keys[0], keys[1] + "!", keys[1]}
	} else if slices.Contains(ofReplay, f.Rule) && slices.Contains(aboutTrials, f.Guarantee) {
		keys = []string{"followed?"} // one act refuted another guarantee, and the rest could not be followed
	}
	for _, key := range keys {
		if said := t.Say("reason." + key); said != "" {
			return said
		}
	}
	return t.Say("reason.other", "rule", strconv.Quote(f.Rule))
}

var (
	ofReplay    = []string{"answer", "body", "completion", "consensus", "levels", "position", "previous", "request", "sequence", "settings", "simultaneity", "submission", "verdict"}
	aboutTrials = []verify.Guarantee{verify.Completeness, verify.Simultaneity, verify.Verdict}
)

// mostValues is how many values of a reason are taken over.
const mostValues = 6

// valuesIn returns the values in an English reason, each once: quoted texts, digests, record ids and times.
func valuesIn(reason string) []string {
	var found []string
	add := func(value string) {
		if value != "" && len(found) < mostValues && !slices.Contains(found, value) {
			found = append(found, value)
		}
	}
	for reason != "" {
		if quoted, err := strconv.QuotedPrefix(reason); err == nil && reason[0] == '"' {
			add(quoted)
			reason = reason[len(quoted):]
			continue
		}
		n := strings.IndexAny(reason, " \"")
		switch {
		case n < 0:
			n = len(reason)
		case n == 0:
			n = 1
		}
		if word := strings.Trim(reason[:n], ",;:.()"); isValue(word) {
			add(word)
		}
		reason = reason[n:]
	}
	return found
}

// isValue recognises a digest, a record id and a time, by its form.
func isValue(word string) bool {
	switch {
	case strings.HasPrefix(word, "sha256:"):
		return true
	case len(word) == 36:
		return strings.Count(word, "-") == 4
	}
	return len(word) >= len("2026-01-01T00:00:00Z") && word[4] == '-' && word[10] == 'T' && strings.HasSuffix(word, "Z")
}
