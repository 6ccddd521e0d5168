package pages

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
)

// texts returns the text of every element of a class or, if the class is "", of a kind, each in one line.
func texts(doc *html.Node, kind, class string) (list []string) {
	for _, n := range elements(doc) {
		if n.Data == kind && (class == "" || hasClass(n, class)) {
			list = append(list, strings.Join(strings.Fields(content(n)), " "))
		}
	}
	return list
}

// TestPagesOfRecordsSayOnWhoseWord: beside the outcome, each page of records says in its own language on whose word the
// proof rests, and each answer has its reason in that language. So does an answer that refutes.
func TestPagesOfRecordsSayOnWhoseWord(t *testing.T) {
	h := jurattest.New(t)
	records := h.Try(t, jury.MajorityVote).Records
	chain, whole := proved(t, h, records...)
	_, cut := proved(t, h, slices.Delete(slices.Clone(records), 2, 3)...)
	equal(t, []verify.Status{whole.Outcome, cut.Outcome}, []verify.Status{verify.Proved, verify.Refuted})
	for _, report := range []*verify.Report{whole, cut} {
		for _, lang := range words.Langs() {
			for name, page := range map[string]Page{"record": NewSealed(chain[0], report, lang, ""), "chain": NewChain("trial", chain, report, 1, lang)} {
				doc := parse(t, write(t, Frame{Lang: lang}, page))
				rests := strings.Join(texts(doc, "p", "whose"), "")
				want := words.Of(lang)["status."+string(report.Outcome)] + " " + words.RestsOn(lang, report)
				if !strings.HasPrefix(rests, strings.Join(strings.Fields(want), " ")) {
					t.Errorf("%s in %s: %q does not begin with %q", name, lang, rests, want)
				}
				all := strings.Join(texts(doc, "dd", ""), "\n")
				for _, f := range report.Guarantees {
					if name == "record" {
						f = report.For(f.Guarantee, chain[0].Payload.RecordID)
					}
					if said := strings.Join(strings.Fields(words.Reason(lang, f)), " "); !strings.Contains(all, said) {
						t.Errorf("%s in %s does not say of %s: %s", name, lang, f.Guarantee, said)
					}
				}
				if lists := strings.Join(texts(doc, "li", ""), "\n"); name == "chain" {
					for _, f := range report.Details {
						if said := words.Reason(lang, f); !strings.Contains(lists, said) {
							t.Errorf("the doubts in %s do not say: %s", lang, said)
						}
					}
				}
			}
		}
	}
}
