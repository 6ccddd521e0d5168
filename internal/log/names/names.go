// Package names decides under which names people and agents may begin to act, and which names may belong to one person.
//
// Old logs may have other names. They open and verify as before: a name is checked when an actor first uses it.
package names

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/secure/precis"
	"golang.org/x/text/unicode/norm"

	"jurat/evidence"
)

// Same reports whether two names may belong to one person, or be taken for one: they differ only in case, compatible forms of characters, normalisation,
// spaces, invisible characters, and lookalikes: letters of other scripts, dashes, and l, 1 and I. A provider may spell one address in two ways. Where no person
// may decide on their own work, a doubt counts against the decision. Permissions depend on the exact name, and sealed names never change.
func Same(a, b string) bool {
	return fold(a) == fold(b) || fold(latin(a)) == fold(latin(b)) || fold(strokes.Replace(latin(a))) == fold(strokes.Replace(latin(b)))
}

// strokes writes the characters that many fonts draw with one stroke, or as one ring, as one letter. It looks at the case: I is like l, and i is not.
var strokes = strings.NewReplacer("I", "l", "1", "l", "|", "l", "0", "O")

// CheckNew refuses a name that is new, if readers could take it for one of those that are known. The error names that one.
func CheckNew(name string, known iter.Seq[string]) error {
	for one := range known {
		if one != name && Same(one, name) {
			return fmt.Errorf("readers could take it for %q, which is known here; use that name, or one that looks different", one)
		}
	}
	return nil
}

// latin writes letters of other scripts as the Latin letters that they look like, and dashes and apostrophes as ASCII's. Η is like H, and η like n.
func latin(name string) string {
	name = strings.Map(func(c rune) rune {
		if i := slices.Index(lookalikes, c); i >= 0 {
			return latins[i]
		}
		if unicode.Is(unicode.Pd, c) {
			return '-'
		}
		return shown(c)
	}, norm.NFKD.String(name))
	return dotted.Replace(name)
}

// dotted takes off a dot above a letter that has one: it cannot be seen.
var dotted = strings.NewReplacer("i\u0307", "i", "j\u0307", "j", "I\u0307", "i")

var (
	lookalikes = []rune("АВЕЅІЈКМНОРСТУҮХԀԚԜӀѴаевѕіјкмнорстуүхԁԛԝһӏьѵΑΒΕΖΗΙΚΜΝΟΡΤΥΧϹͿαγηικνορτυχωϲϳσօոսհցզɑɡıɩɪʋȷᴏᴄᴠᴡᴢꜱⲓⲟⲥⲣⲒⲞⲤⲢᎪᎬᎻᎷᏀᏃᏟᏢᏙᏚᎢᏦᏞᎳᎠ−˗⁃’‘ʼʹ′ꞌ`")
	latins     = []rune("ABESIJKMHOPCTYYXDQWlVaebsijkmhopctyyxdqwhlbvABEZHIKMNOPTYXCJaynikvoptuxwcjoonuhgqagiiivjocvwzsiocpIOCPAEHMGZCPVSTKLWD---'''''''")
)

// fold returns a name in a form for comparison: Unicode's toNFKC_Casefold (chapter 3.13, R5) without invisible characters. It folds more
// than the profiles of RFC 8265 do (ß becomes ss). Each step can make work for the others, so fold repeats them until nothing changes.
func fold(name string) string {
	for range 8 { // two or three rounds suffice for all known names
		folded := cases.Fold().String(norm.NFKC.String(strings.Map(shown, name)))
		if folded == name {
			break
		}
		name = folded
	}
	return name
}

// shown drops invisible characters and spaces.
func shown(c rune) rune {
	if unicode.IsSpace(c) || isBlank(c) {
		return -1
	}
	return c
}

// brailleBlank is the braille pattern without dots, which Unicode classifies as a symbol.
const brailleBlank = '\u2800'

// isBlank reports whether a character is invisible and not a space: format characters, variation selectors, fillers, joiners, tags.
func isBlank(c rune) bool {
	return c == brailleBlank || unicode.In(c, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// freeform accepts the characters of FreeformClass in permitted positions (RFC 8264, section 4.3).
var freeform = precis.NewFreeform(precis.DisallowEmpty)

// Check returns an error for a name under which no person and no agent may begin to act: readers could not see it, or could not distinguish
// it from another name. A name needs a letter or a digit.
func Check(name string) error {
	if err := evidence.CheckName(name); err != nil {
		return err
	}
	for _, c := range name {
		if isBlank(c) && !joins(name) {
			return fmt.Errorf("the character U+%04X is invisible; leave it out", c)
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

// joins reports whether joiners are the only invisible characters of a name. Some scripts need joiners between letters. FreeformClass
// decides whether their positions are permitted (RFC 5892, appendix A).
func joins(name string) bool {
	return !strings.ContainsFunc(name, func(c rune) bool { return isBlank(c) && c != zeroWidthNonJoiner && c != zeroWidthJoiner })
}

const (
	zeroWidthNonJoiner = '\u200c'
	zeroWidthJoiner    = '\u200d'
)

// checkSpaces returns an error for spaces that readers overlook: at an end of the name, or beside another space.
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

// refused returns an error that names the character for which FreeformClass refuses a name.
func refused(name string) error {
	// A character that is refused alone may be permitted between others. So each is tested in the name, without the other suspects.
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
			return fmt.Errorf("a name may not have the character U+%04X in this position (RFC 8264, FreeformClass)", c)
		}
	}
	for i, c := range name {
		if _, err := freeform.String(name[:i+utf8.RuneLen(c)]); err != nil {
			return fmt.Errorf("a name may not have the character U+%04X after those before it (RFC 8264, FreeformClass)", c)
		}
	}
	return errors.New("a name may not combine these characters (RFC 8264, FreeformClass)")
}
