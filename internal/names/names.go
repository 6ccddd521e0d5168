// Package names says which names people and agents may begin to act under, and which names are one person's.
//
// Old logs may have other names. They open and verify as ever: a name is checked where it first comes in.
package names

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"

	"jurat/evidence"
)

// Same reports whether two names can be those of one person: they differ in nothing but case, compatible forms of characters,
// normalisation, spaces, and characters that show nothing. A provider may well give one address in two spellings, and where nobody is to
// decide on their own work, a doubt counts against it. What somebody may do goes by the exact name, and what is sealed is never changed.
func Same(a, b string) bool { return fold(a) == fold(b) }

// fold is a name as it is compared: Unicode's toNFKC_Casefold (chapter 3.13, R5), which folds more than the profiles of RFC 8265 do
// (ß is ss), without what does not show. Each step can make work for the others, so they are repeated until nothing changes.
func fold(name string) string {
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

// freeform accepts the characters of FreeformClass (RFC 8264, section 4.3), where they may stand.
var freeform = precis.NewFreeform(precis.DisallowEmpty)

// Check refuses a name under which no person and no agent may begin to act: readers could not tell it from another name, or could not see it.
// A name needs a letter or a digit.
func Check(name string) error {
	if err := evidence.CheckName(name); err != nil {
		return err
	}
	for _, c := range name {
		if isBlank(c) && !joins(name) {
			return fmt.Errorf("the character U+%04X shows nothing; leave it out", c)
		}
	}
	if err := checkSpaces(name); err != nil {
		return err
	}
	if _, err := freeform.String(name); err != nil {
		return refused(name)
	}
	if !strings.ContainsFunc(fold(name), isLetterOrDigit) {
		first := []rune(name)[0]
		return fmt.Errorf("it has no letter and no digit, only characters such as U+%04X; a name needs at least one", first)
	}
	return nil
}

func isLetterOrDigit(c rune) bool { return unicode.In(c, unicode.L, unicode.N) }

// joins reports whether the only characters of a name that do not show are joiners, which some scripts need between letters: whether they
// stand where these do, FreeformClass says (RFC 5892, appendix A).
func joins(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return isBlank(c) && c != zeroWidthNonJoiner && c != zeroWidthJoiner })
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// checkSpaces refuses spaces that readers overlook: at an end of the name, or beside another space.
func checkSpaces(name string) error {
	const edge = ' '
	before := edge
	for i, c := range name {
		last := i+utf8.RuneLen(c) == len(name)
		if unicode.IsSpace(c) && (unicode.IsSpace(before) || last) {
			return fmt.Errorf("the space U+%04X stands at an end of the name or beside another space; leave it out", c)
		}
		before = c
	}
	return nil
}

// refused names the character for which FreeformClass refuses a name.
func refused(name string) error {
	// A character that is refused alone may be allowed between others, so each is looked at in the name, without the other suspects.
	suspect := func(c rune) bool {
		_, err := freeform.String(string(c))
		return err != nil && !unicode.IsSpace(c)
	}
	for _, c := range name {
		if !suspect(c) {
			continue
		}
		alone := strings.Map(func(other rune) rune {
			if other != c && suspect(other) {
				return -1
			}
			return other
		}, name)
		if _, err := freeform.String(alone); err != nil {
			return fmt.Errorf("the character U+%04X may not stand there in a name (RFC 8264, FreeformClass)", c)
		}
	}
	for i, c := range name {
		if _, err := freeform.String(name[:i+utf8.RuneLen(c)]); err != nil {
			return fmt.Errorf("the character U+%04X may not stand beside those before it in a name (RFC 8264, FreeformClass)", c)
		}
	}
	return errors.New("its characters may not stand together in a name (RFC 8264, FreeformClass)")
}
