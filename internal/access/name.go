package access

import (
	"strings"
	"unicode"
)

// SameName reports whether two names can be those of one person: they differ in nothing but case, spaces, and characters that
// show nothing. A provider may well give one address in two spellings, and where nobody is to decide on their own work, a doubt
// counts against it. What somebody may do goes by the exact name.
func SameName(a, b string) bool { return strings.EqualFold(plain(a), plain(b)) }

func plain(name string) string {
	return strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || unicode.Is(unicode.Cf, c) {
			return -1
		}
		return c
	}, name)
}
