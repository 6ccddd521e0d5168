// Package words holds everything that people read in a language: what reports and records speak of (Terms), the sentences of
// incident statements (Statement), the pages of a server (Pages) and the verification portal (Portal).
//
// A language is one file and its line in the list below. The compiler asks it for each of these tables, and tests for each text in them, with
// the same places for values as in English. One thing has one name: a guarantee is named and explained in Terms alone, and every
// surface takes it from there.
//
// The tables of a language are reached by unexported methods, so that the linker drops those that a program does not ask for: the
// program of the portal has neither pages nor the portal's own texts in it.
package words

import (
	"fmt"
	"strings"
)

// Lang is a language by its two letters (ISO 639-1). The zero value is English.
type Lang string

// A language is what the file of each language holds.
type language interface {
	lang() Lang
	name() string // in itself
	terms() *Terms
	statement() *Statement
	pages() *Pages
	portal() *Portal
}

// languages lists every language, as readers are offered them. The first is for those whose own is not here.
var languages = []language{english{}, japanese{}, russian{}}

// in returns a language, or the first where it is not here.
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

// Name is what a language calls itself.
func (l Lang) Name() string { return in(l).name() }

// TermsIn returns the terms of a language; like all tables, in English for a language that is not here.
func TermsIn(l Lang) *Terms { return in(l).terms() }

// StatementIn returns the sentences of statements in a language.
func StatementIn(l Lang) *Statement { return in(l).statement() }

// PagesIn returns what pages say in a language.
func PagesIn(l Lang) *Pages { return in(l).pages() }

// PortalIn returns what the portal says in a language.
func PortalIn(l Lang) *Portal { return in(l).portal() }

// A Sentence is a template: {name} stands for what is inserted. It is whole, or a whole clause where a language can join
// clauses without inflecting them: word order and cases are the translator's, never the program's.
type Sentence string

// With inserts values, given as name and value by turns. What is inserted is not searched for places again, so that text from
// a record cannot ask for another value.
func (s Sentence) With(pairs ...any) string {
	var old []string
	for i := 0; i+1 < len(pairs); i += 2 {
		old = append(old, fmt.Sprintf("{%v}", pairs[i]), fmt.Sprint(pairs[i+1]))
	}
	return strings.NewReplacer(old...).Replace(string(s))
}
