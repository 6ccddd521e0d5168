// Package words holds all texts in the readers' languages: the names in reports and records (Terms), the sentences of
// incident statements (Statement), the pages of a server (Pages) and the verification portal (Portal).
//
// A language is one file and a line in the list below. The compiler demands each of these tables, and tests demand
// each text in them, with the same places for values as in English. Only Terms names and explains a guarantee; every
// page and statement takes it from there.
//
// Unexported methods return the tables of a language, and an interface of their own asks for those that not every program needs, so
// that the linker drops the tables, and their types, that a program does not use. The portal's program contains neither the pages nor
// the portal's own texts.
package words

import (
	"fmt"
	"strings"
)

// Lang is the two-letter code of a language (ISO 639-1). The zero value is English.
type Lang string

// A language has what every program needs.
type language interface {
	lang() Lang
	name() string // in the language itself
	terms() *Terms
	statement() *Statement
	trusts() *Trusts
	basis() *Basis
	reasons() Reasons
}

// What servers need besides.
type (
	ofPages  interface{ pages() *Pages }
	ofPortal interface{ portal() *Portal }
)

// whole is implemented by the file of each language.
type whole interface {
	language
	ofPages
	ofPortal
}

// languages lists every language, in the order of display. The first is the default.
var languages = []language{english{}, japanese{}, russian{}}

// in returns a language, or the default for an unknown one.
func in(l Lang) language {
	for _, one := range languages {
		if one.lang() == l {
			return one
		}
	}
	return languages[0]
}

// Langs lists every language.
func Langs() []Lang {
	list := make([]Lang, 0, len(languages))
	for _, l := range languages {
		list = append(list, l.lang())
	}
	return list
}

// Name returns the language's name in the language itself.
func (l Lang) Name() string { return in(l).name() }

// TermsIn returns the terms of a language. Like all tables, they are in English for an unknown language.
func TermsIn(l Lang) *Terms { return in(l).terms() }

// StatementIn returns the sentences of statements in a language.
func StatementIn(l Lang) *Statement { return in(l).statement() }

// PagesIn returns the texts of pages in a language.
func PagesIn(l Lang) *Pages { return in(l).(ofPages).pages() }

// PortalIn returns the texts of the portal in a language.
func PortalIn(l Lang) *Portal { return in(l).(ofPortal).portal() }

// A Sentence is a template: {name} is a place for a value. It is a whole sentence, or a whole clause if the language
// can join clauses without inflection. So the translator decides word order and cases, not the program.
type Sentence string

// With inserts values, given as name and value in turn. It does not search inserted text for places, so text from a
// record cannot insert another value.
func (s Sentence) With(pairs ...any) string {
	var old []string
	for i := 0; i+1 < len(pairs); i += 2 {
		old = append(old, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return strings.NewReplacer(old...).Replace(string(s))
}
