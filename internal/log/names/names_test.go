package names_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"jurat/internal/log/names"
	"jurat/internal/test/must"
)

func TestSame(t *testing.T) {
	for _, same := range [][2]string{
		{"mia", "Mia"}, {"mia", " m i a\u00a0"}, {"mia", "mi\u200ba"}, {"mia", "mia\ufe0f"}, {"mia", "m\U000e0101ia"}, {"mia", "mia\u3164"}, {"mia", "\u115fmia"},
		{"mia", "m\u1160ia"}, {"mia", "mia\uffa0"}, {"mia", "mia\u2800"}, {"mia", "mi\u034fa"}, {"mia", "mia\u180b"}, {"mia", "mia\u17b4"}, {"mia", "mia\U000e0061"},
		{"mia", "mia\u2060\ufeff\u00ad"}, {"STRASSE", "straße"}, {"STRAẞE", "straße"}, {"ﬁn", "FIN"}, {"jose\u0301", "JOSÉ"}, {"e\u034f\u0301", "é"}, {"ｍｉａ", "mia"},
		{"\u212bsa", "åsa"}, {"ὈΔΥΣΣΕΎΣ", "ὀδυσσεύς"}, {"ǅ", "dž"}, {"ᾳ", "ΑΙ"},
		{"mia", "mi\u0430"}, {"mia", "м\u0456\u0430"}, {"MIA", "\u039c\u0399\u0391"}, {"Mia", "\u039cia"}, {"Nancy", "\u039da\u03b7cy"}, {"HOPE", "\u041d\u041e\u0420\u0415"}, {"élan", "\u0435\u0301lan"},
		{"Mia", "\uff2d\u0456\u200b\u0430"}, {"paul", "ра\u057d\u04cf"}, {"Sig", "S\u0131\u0261"}, {"\u0421\u0410\u0421", "CAC"},
		{"a-b", "a\u2010b"}, {"a-b", "a\u2011b"}, {"a-b", "a\u2013b"}, {"a\u2014b", "a\u2212b"}, {"a-b", "\u0430\u058ab"}, {"O'Hara", "O\u2019Hara"}, {"o\u02bchara", "\u03bf'HARA"},
		{"ivan", "\u0130van"}, {"ivan", "i\u0307van"}, {"ivan", "i\u0475an"}, {"ivan", "\u0269van"}, {"ivan", "\u2c93van"}, {"MAX", "\u13b7AX"},
		{"shopl", "shop1"}, {"shopl", "shopI"}, {"Ian", "lan"}, {"agent-0", "agent-O"}, {"agent-1\u043e", "agent\u2010l0"},
	} {
		must.Hold(t, names.Same(same[0], same[1]) && names.Same(same[1], same[0]), "%+q and %+q count as different names", same[0], same[1])
	}
	for _, other := range [][2]string{{"mia", "mía"}, {"mia", "mja"}, {"mia.s", "mias"}, {"mia1", "mia2"}, {"ミア", "ミヤ"}, {"か", "が"}, {"Ольга", "Олег"}, {"Иван", "Ivan"}, {"нос", "нас"}, {"Νίκος", "Nikos"}, {"mia", "miя"}, {"ian", "lan"}, {"Bill", "Bili"}, {"agent-1", "agent-7"},
		{"a_b", "a-b"}, {"a-b", "ab"}, {"a\u30fcb", "a-b"}, {"か\u30fc", "か-"}} {
		must.Hold(t, !names.Same(other[0], other[1]), "%+q and %+q count as the same name", other[0], other[1])
	}
}

// TestCheck: a name that readers cannot tell from another one is refused, and the error names the character.
// TestCheckNew: a new name must not look like a known one, and the known ones stay in use.
func TestCheckNew(t *testing.T) {
	known := slices.Values([]string{"mia", "Ольга", "agent 7"})
	for name, fits := range map[string]bool{"mia": true, "Mia": false, "mi\u0430": false, "\uff4dia": false, "m ia": false, "Агент 7": true, "\u0430gent 7": false, "ольга": false, "max": true, "agent-7": true, "agent\u00a07": false, "rnia": true} {
		err := names.CheckNew(name, known)
		must.Hold(t, (err == nil) == fits, "%+q: %v", name, err)
	}
}

func TestCheck(t *testing.T) {
	for _, name := range []string{"a", "7", "mia@example.org", "Mia O’Hara-Straße 2", "José", "jose\u0301", "山田 太郎", "山田　太郎", "ア・イ", "Ольга", "logistics-agent-v1", "urn:agent/1",
		"نامه\u200cای", "agent 🤖", "क्\u200dष", "l·l", "٣", strings.Repeat("x", 200), "../../etc/passwd", `EXAMPLE\mia`} {
		must.Want(t, names.Check(name), nil, strconv.QuoteToASCII(name))
	}
	for name, character := range map[string]string{
		"\u3164": "U+3164", "\u115f\u1160": "U+115F", "\uffa0": "U+FFA0", "\u2800\u2800": "U+2800", "\ufe0f": "U+FE0F", "\u200b": "U+200B", "\u00ad": "U+00AD",
		"\U000e0020": "U+E0020", "\u0301": "U+0301", "\u200d": "U+200D", "mia\u3164": "U+3164", "mi\u200ba": "U+200B", "mia\u2800": "U+2800", "mi\u200da": "U+200D",
		"m\u034fia": "U+034F", "mia\ue000": "U+E000", "mia\ufdd0": "U+FDD0", "mia\u202e": "U+202E", "mia\x00": "U+0000", "l·l mia\ue000": "U+E000", "a·b": "U+00B7",
		"ア・イ a·b": "U+00B7", "٣۳": "U+06F3", " mia": "U+0020", "mia ": "U+0020", "mia\u00a0": "U+00A0", "\u3000mia": "U+3000", "mia  s": "U+0020", "mia \u2003s": "U+2003",
		".": "U+002E", "---": "U+002D", "…": "U+2026", "。": "U+3002", "🤖": "U+1F916", "☃!": "U+2603", "€": "U+20AC",
	} {
		must.Say(t, names.Check(name), character, strconv.QuoteToASCII(name))
	}
	for _, name := range []string{"", " ", "\xff", strings.Repeat("x", 300)} {
		must.Hold(t, names.Check(name) != nil, "%+q is a name", name)
	}
}
