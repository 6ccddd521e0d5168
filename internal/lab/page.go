package lab

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"strings"
	"sync"
)

//go:embed report.html
var source string

var parsed = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("report").Funcs(template.FuncMap{
		"figure": figure, "difference": difference, "dollars": dollars, "seconds": seconds, "number": number, "percent": percent,
		"areas": areas, "tags": tags, "differences": differences, "scores": scores, "sure": sure, "join": strings.Join, "rate": rateText, "firsts": firsts, "rounded": rounded,
	}).Parse(source))
})

// Render returns the page.
func Render(r *Report) ([]byte, error) {
	var out bytes.Buffer
	if err := parsed().Execute(&out, r); err != nil {
		return nil, fmt.Errorf("writing page: %w", err)
	}
	return out.Bytes(), nil
}

const unknown = "–"

func interval(format string, value, low, high *float64) string {
	if value == nil {
		return unknown
	}
	text := fmt.Sprintf(format, *value)
	if low != nil && high != nil {
		text += fmt.Sprintf(" ("+format+" to "+format+")", *low, *high)
	}
	return text
}

func figure(f Figure) string         { return interval("%.2f", f.Value, f.Low, f.High) }
func difference(d Difference) string { return interval("%+.2f", d.Value, d.Low, d.High) }

func dollars(micro float64) string { return fmt.Sprintf("$%.4f", micro/1e6) }

func rateText(d Difference) string {
	if d.Value == nil {
		return unknown
	}
	scaled := func(v *float64) *float64 {
		if v == nil {
			return nil
		}
		return new(*v / 1e6)
	}
	return interval("%+.4f", scaled(d.Value), scaled(d.Low), scaled(d.High))
}

func seconds(millis float64) string { return fmt.Sprintf("%.1f s", millis/1000) }

func number(v *float64) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf("%.2f", *v)
}

func rounded(v float64) string { return fmt.Sprintf("%.1f", v) }

func percent(part, whole int) string {
	if whole == 0 {
		return unknown
	}
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(whole))
}

// firsts shortens a list, and says so in the page.
func firsts(list []FindingKind) []FindingKind { return list[:min(len(list), mostFindings)] }

const mostFindings = 25

// A line is a row of a plot of intervals.
type line struct {
	name             string
	value, low, high *float64
}

func areas(r *Report) template.HTML {
	var lines []line
	for _, p := range r.Panels {
		lines = append(lines, line{p.Name, p.All.AUC.Value, p.All.AUC.Low, p.All.AUC.High})
	}
	lines = append(lines, line{"bare length", r.Length.Value, r.Length.Low, r.Length.High})
	return intervals("AUC of the final score of each panel, with intervals", lines, 0, 1, 0.5)
}

func tags(groups []Group) template.HTML {
	var lines []line
	for _, g := range groups {
		name := g.Tag
		if name == "" {
			name = "no tag"
		}
		lines = append(lines, line{name, g.AUC.Value, g.AUC.Low, g.AUC.High})
	}
	return intervals("AUC of the final score for each tag, with intervals", lines, 0, 1, 0.5)
}

func differences(list []Comparison) template.HTML {
	var lines []line
	for _, c := range list {
		lines = append(lines, line{c.A + " − " + c.B, c.AUC.Value, c.AUC.Low, c.AUC.High})
	}
	return intervals("Differences in AUC of panels on the same cases, with intervals", lines, -1, 1, 0)
}

const (
	plotWidth = 420.0
	rowHeight = 30.0
	nameWidth = 130.0
	plotEdge  = 18.0
)

// intervals draws a line for each interval on one scale, with a mark where nothing is told.
func intervals(title string, lines []line, from, to, nothing float64) template.HTML {
	x := func(v float64) float64 {
		return nameWidth + (math.Max(from, math.Min(to, v))-from)/(to-from)*(plotWidth-nameWidth-plotEdge)
	}
	bottom := rowHeight*float64(len(lines)) + 8
	var s strings.Builder
	fmt.Fprintf(&s, `<svg viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, plotWidth, bottom+24, template.HTMLEscapeString(title))
	for i := range 5 {
		v := from + (to-from)*float64(i)/4
		fmt.Fprintf(&s, `<line class="grid" x1="%.1f" y1="0" x2="%.1f" y2="%.1f"/><text class="scale" x="%.1f" y="%.1f" text-anchor="middle">%.2g</text>`, x(v), x(v), bottom, x(v), bottom+18, v)
	}
	fmt.Fprintf(&s, `<line class="nothing" x1="%.1f" y1="0" x2="%.1f" y2="%.1f"/>`, x(nothing), x(nothing), bottom)
	for i, l := range lines {
		y := rowHeight*float64(i) + rowHeight/2 + 2
		fmt.Fprintf(&s, `<text x="0" y="%.1f">%s</text>`, y+5, template.HTMLEscapeString(shortened(l.name)))
		if l.value == nil {
			fmt.Fprintf(&s, `<text class="scale" x="%.1f" y="%.1f">not defined</text>`, nameWidth+4, y+5)
			continue
		}
		if l.low != nil && l.high != nil {
			fmt.Fprintf(&s, `<line class="interval" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(*l.low), y, x(*l.high), y)
		}
		fmt.Fprintf(&s, `<circle class="value" cx="%.1f" cy="%.1f" r="5"/>`, x(*l.value), y)
	}
	s.WriteString(`</svg>`)
	return template.HTML(s.String()) // names are escaped above, and all else is numbers
}

// shortened keeps a name within its column. The table has it whole.
func shortened(name string) string {
	letters := []rune(name)
	if len(letters) <= 16 {
		return name
	}
	return string(letters[:15]) + "…"
}

func scores(bins []Bin) template.HTML {
	return curve("How often a run was good, by its score", bins, 100)
}

func sure(bins []Bin) template.HTML {
	return curve("How often a vote was right, by the confidence that its juror stated", bins, 1)
}

// curve draws how often something was so, over how much of it was stated. A faithful statement lies on the diagonal.
func curve(title string, bins []Bin, end float64) template.HTML {
	const size, left, below = 300.0, 44.0, 34.0
	x := func(v float64) float64 { return left + v/end*(size-left-16) }
	y := func(v float64) float64 { return 8 + (1-v)*(size-below-8) }
	var s strings.Builder
	fmt.Fprintf(&s, `<svg class="square" viewBox="0 0 %.0f %.0f" role="img" aria-label="%s">`, size, size, template.HTMLEscapeString(title))
	for i := range 5 {
		part := float64(i) / 4
		fmt.Fprintf(&s, `<line class="grid" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/><text class="scale" x="%.1f" y="%.1f" text-anchor="end">%.2f</text>`, left, y(part), size-16, y(part), left-6, y(part)+4, part)
		fmt.Fprintf(&s, `<text class="scale" x="%.1f" y="%.1f" text-anchor="middle">%.4g</text>`, x(part*end), size-below+20, part*end)
	}
	fmt.Fprintf(&s, `<line class="nothing" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(0), y(0), x(end), y(1))
	var path []string
	for _, b := range bins {
		if b.Right.Value == nil {
			continue
		}
		at := x(b.Stated)
		fmt.Fprintf(&s, `<line class="interval" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, at, y(*b.Right.Low), at, y(*b.Right.High))
		path = append(path, fmt.Sprintf("%.1f,%.1f", at, y(*b.Right.Value)))
	}
	fmt.Fprintf(&s, `<polyline class="curve" points="%s"/>`, strings.Join(path, " "))
	for _, point := range path {
		cx, cy, _ := strings.Cut(point, ",")
		fmt.Fprintf(&s, `<circle class="value" cx="%s" cy="%s" r="5"/>`, cx, cy)
	}
	s.WriteString(`</svg>`)
	return template.HTML(s.String()) // numbers alone
}
