package words_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"jurat/evidence"
	"jurat/internal/incident"
	"jurat/internal/must"
	"jurat/internal/pages"
	"jurat/internal/portal/visit"
	"jurat/internal/words"
	"jurat/jurattest"
	"jurat/jury"
	"jurat/verify"
	"jurat/verify/trust"
)

// shown is what a reader sees of a guarantee: the answer, its name and its question.
type shown struct{ status, name, asks string }

func wanted(l words.Lang, g verify.Guarantee, s verify.Status) shown {
	texts := words.Of(l)
	return shown{texts["status."+string(s)], texts["guarantee."+string(g)], texts["asks."+string(g)]}
}

// compare fails if a surface shows other guarantees than a report has, or shows them with other words.
func compare(t *testing.T, surface string, l words.Lang, got []shown, of []verify.Finding) {
	t.Helper()
	if len(got) != len(of) || len(of) == 0 {
		t.Errorf("%s in %s shows %d guarantees of %d", surface, l, len(got), len(of))
		return
	}
	for i, f := range of {
		if want := wanted(l, f.Guarantee, f.Status); got[i] != want {
			t.Errorf("%s in %s shows %s as %q, want %q", surface, l, f.Guarantee, got[i], want)
		}
	}
}

// TestSurfacesUseTheSameWords: pages, the portal and statements name each guarantee, and each answer, alike.
func TestSurfacesUseTheSameWords(t *testing.T) {
	h := jurattest.NewForStrangers(t)
	trial := h.Try(t, jury.MajorityVote)
	bundle := h.Bundle(t, trial.Records...)
	report := verify.Bundle(bundle, h.Options(t))
	v := verified(t, bundle, h.Trust(t))
	for _, l := range words.Langs() {
		first := bundle.Records[0]
		chain := pages.NewChain(first.Payload.ChainID, bundle.Records, report, 1, l)
		compare(t, "the page of a chain", l, answers(t, l, chain), report.Guarantees)
		var ofFirst []verify.Finding
		for _, f := range report.Guarantees {
			ofFirst = append(ofFirst, report.For(f.Guarantee, first.Payload.RecordID))
		}
		compare(t, "the page of a record", l, answers(t, l, pages.NewSealed(first, report, l, "")), ofFirst)

		view := must.Get(v.View(0, l))(t)
		compare(t, "the portal", l, lines(view.Guarantees), findings(view.Guarantees))
		if want := words.Of(l)["status."+string(view.Outcome)]; view.Said != want {
			t.Errorf("the portal in %s says %q, want %q", l, view.Said, want)
		}
		records, err := v.Records(0, 0, 1, l)
		if err != nil || len(records) != 1 {
			t.Fatal(records, err)
		}
		compare(t, "a record in the portal", l, lines(records[0].Lines), findings(records[0].Lines))

		statement := strings.Join(incident.Statement(bundle.Records, report, l), "\n")
		for _, g := range []verify.Guarantee{verify.Completeness, verify.Simultaneity} {
			if name := words.Of(l)["guarantee."+string(g)]; !strings.Contains(statement, "\n"+name) {
				t.Errorf("the statement in %s does not contain %q:\n%s", l, name, statement)
			}
		}
	}
}

// verified is a visit to the portal with the case file of a trial.
func verified(t *testing.T, bundle *evidence.Bundle, trusted *trust.Trust) *visit.Visit {
	t.Helper()
	var sources []visit.Source
	add := func(name string, doc []byte, err error) {
		must.Do(t, err)
		sources = append(sources, visit.Source{Name: name, Size: int64(len(doc)), From: bytes.NewReader(doc)})
	}
	doc, err := bundle.Marshal()
	add("case", doc, err)
	doc, err = trusted.Marshal()
	add("trust", doc, err)
	v := &visit.Visit{Now: time.Now}
	if _, err := v.Verify([]byte(`{"files":[0],"trust":1}`), sources); err != nil {
		t.Fatal(err)
	}
	return v
}

func lines(list []visit.Line) (all []shown) {
	for _, l := range list {
		all = append(all, shown{l.Said, l.Name, l.Asks})
	}
	return all
}

func findings(list []visit.Line) (all []verify.Finding) {
	for _, l := range list {
		all = append(all, verify.Finding{Guarantee: l.Guarantee, Status: l.Status})
	}
	return all
}

// answers reads the guarantees from a served page.
func answers(t *testing.T, l words.Lang, p pages.Page) (all []shown) {
	t.Helper()
	var page bytes.Buffer
	must.Do(t, pages.Write(&page, pages.Frame{Lang: l, Path: "/"}, p))
	doc := must.Get(html.Parse(&page))(t)
	for n := range doc.Descendants() {
		if n.Data != "dl" || attribute(n, "class") != "answers" {
			continue
		}
		for d := range n.Descendants() {
			switch {
			case d.Data == "span" && strings.HasPrefix(attribute(d, "class"), "status "):
				all = append(all, shown{status: text(d)})
			case d.Data == "strong":
				all[len(all)-1].name = text(d)
			case d.Data == "dd":
				all[len(all)-1].asks = strings.TrimSpace(d.FirstChild.Data)
			}
		}
	}
	return all
}

func attribute(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var all strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			all.WriteString(d.Data)
		}
	}
	return strings.TrimSpace(all.String())
}
