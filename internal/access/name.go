package access

import (
	"errors"
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"

	"jurat/evidence"
)

// SameName reports whether two names can be those of one person: they differ in nothing but case, compatible forms of characters,
// normalisation, spaces, and characters that show nothing. A provider may well give one address in two spellings, and where nobody is to
// decide on their own work, a doubt counts against it. What somebody may do goes by the exact name, and what is sealed is never changed.
func SameName(a, b string) bool { return foldName(a) == foldName(b) }

// foldName is a name as it is compared: Unicode's toNFKC_Casefold (chapter 3.13, R5), which folds more than the profiles of RFC 8265 do
// (ß is ss), without what does not show. Each step can make work for the others, so they are repeated until nothing changes.
func foldName(name string) string {
	for range 8 { // two or three times, as far as is known
		folded := cases.Fold().String(norm.NFKC.String(strings.Map(shown, name)))
		if folded == name {
			break
		}
		name = folded
	}
	return name
}

// shown drops a character that shows nothing.
func shown(c rune) rune {
	if unicode.IsSpace(c) || isBlank(c) {
		return -1
	}
	return c
}

// brailleBlank is a pattern of no dots, which Unicode counts among the symbols.
const brailleBlank = '\u2800'

// isBlank reports whether a character that is no space shows nothing: format characters, variation selectors, fillers, joiners, tags.
func isBlank(c rune) bool {
	return c == brailleBlank || unicode.In(c, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// names are those that can be granted: of the characters of FreeformClass (RFC 8264, section 4.3).
var names = precis.NewFreeform(precis.DisallowEmpty)

// CheckName refuses a name under which nothing new may be granted, as people could not tell it from another one, or from none.
func CheckName(name string) error {
	if err := evidence.CheckName(name); err != nil {
		return err
	}
	if !strings.ContainsFunc(foldName(name), func(c rune) bool { return unicode.In(c, unicode.L, unicode.N, unicode.P, unicode.S) }) {
		return errors.New("nothing of it shows")
	}
	for i, c := range name {
		if isBlank(c) && !joins(name) {
			return fmt.Errorf("byte %d: the character U+%04X shows nothing; leave it out", i, c)
		}
	}
	if _, err := names.String(name); err != nil {
		return fmt.Errorf("%w (RFC 8264, FreeformClass)", err)
	}
	return nil
}

// joins reports whether the only characters of a name that do not show are joiners, which some scripts need between letters: whether they
// stand where these do, FreeformClass says (RFC 5892, appendix A).
func joins(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return isBlank(c) && c != '\u200c' && c != '\u200d' })
}
