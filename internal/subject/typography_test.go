package subject_test

import (
	"strings"
	"testing"

	"jurat/internal/subject"
)

// TestPassage: what a reader quotes is found in each typography of either side, and returned as it stands in the message.
func TestPassage(t *testing.T) {
	for _, tt := range []struct{ name, stands, quoted string }{
		{"literal", "I have paid Ann", "I have paid Ann"},
		{"no-break space", "I have\u00a0paid Ann", "I have paid Ann"},
		{"narrow no-break space", "1\u202f200\u202f€", "1 200 €"},
		{"no-break space of the reader", "I have paid Ann", "I have\u00a0paid Ann"},
		{"thin, en, em and figure space", "a\u2009b\u2002c\u2003d\u2007e", "a b c d e"},
		{"ideographic space", "支払い\u3000済み", "支払い 済み"},
		{"blank of Braille", "I have\u2800paid", "I have paid"},
		{"runs of spaces", "I  have \t paid", "I have paid"},
		{"runs of spaces of the reader", "I have paid", "I   have paid "},
		{"line end", "I have\r\npaid\r\nAnn", "I have\npaid\nAnn"},
		{"line end taken for a space", "I have\npaid", "I have paid"},
		{"separators of lines and paragraphs", "I have\u2028paid\u2029Ann\u0085now", "I have paid Ann now"},
		{"apostrophe", "I didn’t ask", "I didn't ask"},
		{"apostrophe of the reader", "I didn't ask", "I didn’t ask"},
		{"accent as an apostrophe", "I didn´t ask, I didn`t", "I didn't ask, I didn't"},
		{"letter apostrophe, prime", "5′ and Hawaiʻi and Oʼahu", "5' and Hawai'i and O'ahu"},
		{"double quotation marks", "[[he said “paid” to „Ann]]“", `he said "paid" to "Ann"`},
		{"guillemets", "[[он сказал «оплачено]]»", `он сказал "оплачено"`},
		{"corner brackets", "「[[支払い」と『言った]]』", `"支払い"と"言った"`},
		{"single for double", `{"to": "Ann"}`, `{'to': 'Ann'}`},
		{"quotation marks of TeX", "said ``paid''.", `said "paid".`},
		{"a quotation in quotation marks", "I have paid", "“I have paid”"},
		{"en dash, em dash, minus", "10–20 — paid, −5", "10-20 - paid, -5"},
		{"two hyphens", "paid—now", "paid--now"},
		{"no-break hyphen, horizontal bar", "pre‑paid ― now", "pre-paid - now"},
		{"ellipsis", "wait… paid", "wait... paid"},
		{"decomposed", "cafe\u0301 paye\u0301", "caf\u00e9 pay\u00e9"},
		{"decomposed by the reader", "caf\u00e9", "cafe\u0301"},
		{"full width", "ＰＡＩＤ　１２０＄", "PAID 120$"},
		{"full width of the reader", "PAID 120$", "ＰＡＩＤ １２０＄"},
		{"half-width katakana", "ﾊﾞｲｵ ﾊﾟｽ", "バイオ パス"},
		{"decomposed voiced marks", "\u304b\u3099\u306f\u309a", "がぱ"},
		{"spacing voiced marks", "か゛は゜", "がぱ"},
		{"wave dash", "10〜20", "10～20"},
		{"decomposed Hangul", "\u1112\u1161\u11ab", "한"},
		{"ligature", "the ﬁle is oﬀ", "the file is off"},
		{"superscript", "5 m²", "5 m2"},
		{"soft hyphen", "un\u00adautho\u00adrised", "unauthorised"},
		{"zero width", "[[I\u200b have\u2060 pa\ufeffid]]\u200d", "I have paid"},
		{"zero width of the reader", "I have paid", "I have\u200b paid"},
		{"marks of direction", "\u200e[[paid \u202b100]]\u202c", "paid 100"},
		{"variation selector", "paid ✔\ufe0f now", "paid ✔ now"},
		{"French punctuation", "Payé\u202f: «\u00a0oui\u00a0»\u202f!", `Payé: "oui"!`},
		{"French punctuation of the reader", "Payé: «oui»!", "Payé : « oui » !"},
		{"dash with and without spaces", "paid — now, 10–20", "paid—now, 10 – 20"},
		{"spaces of JSON", `{"to":"Ann","sum":[1,2]}`, `{ "to": "Ann", "sum": [1, 2] }`},
		{"spaces before units", "50\u202f% off, 5\u00a0€", "50% off, 5€"},
		{"spaces in ideographic text", "「[[支払い」 と]]", "「支払い」と"},
		{"fractions", "½ paid, 3⁄4", "1/2 paid, 3/4"},
		{"escapes of JSON", `{"note":"[[I paid\u00a0Ann\nnow \u2013 \ud83d\ude00]]"}`, "I paid Ann now - 😀"},
		{"escaped quotation marks", `{\"to\":\"Ann\"}`, `{"to":"Ann"}`},
	} {
		want, stands := tt.stands, tt.stands
		if _, inner, marked := strings.Cut(stands, "[["); marked { // the passage is only this part
			want, _, _ = strings.Cut(inner, "]]")
			stands = strings.NewReplacer("[[", "", "]]", "").Replace(stands)
		}
		stands = "Before. " + stands + ". After"
		for place, m := range map[string]subject.Message{
			"text":      {Text: stands},
			"arguments": {Text: "Other.", ToolCalls: []subject.ToolCall{{Name: "pay", Arguments: stands}}},
		} {
			passage, found := m.Passage(tt.quoted)
			if !found || !m.Holds(passage) {
				t.Errorf("%s, %s: %q is not found, or not as it stands: %q", tt.name, place, tt.quoted, passage)
				continue
			}
			if passage != want {
				t.Errorf("%s, %s: %q, want %q", tt.name, place, passage, want)
			}
		}
	}
}

// TestNoPassage: other words are not found, however alike.
func TestNoPassage(t *testing.T) {
	m := subject.Message{Text: "I have not paid Ann 1,200 € for cafés — ask her.", ToolCalls: []subject.ToolCall{{Name: "pay", Arguments: `{"to":"Ann"}`}}}
	for _, quote := range []string{"I have paid Ann", "i have not paid", "Ann 1.200 €", "cafe", "Ann1,200", "havenot", "ask him", `{"to":"Bob"}`, "paid Ann \u2014 1,200", "", "\u200b", "“”", "her. I", "Аnn" /* Cyrillic */} {
		if passage, found := m.Passage(quote); found {
			t.Errorf("%q is found as %q", quote, passage)
		}
	}
}

// FuzzPassage: every part of a text is found in it, and every passage is a part of it.
func FuzzPassage(f *testing.F) {
	f.Add("I\u00a0have “paid”", "have \"paid\"")
	f.Add(`\ud83d\ude00 e`+"\u0301", "\u00e9")
	f.Fuzz(func(t *testing.T, text, quote string) {
		m := subject.Message{Text: strings.ToValidUTF8(text, "?")}
		if passage, found := m.Passage(strings.ToValidUTF8(quote, "?")); found && !m.Holds(passage) {
			t.Errorf("%q is no part of %q", passage, m.Text)
		}
	})
}
