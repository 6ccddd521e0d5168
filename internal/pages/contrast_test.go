package pages

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// scheme maps the names of colours in the style sheet to colours.
type scheme map[string]string

var colour = regexp.MustCompile(`--([a-z-]+): (#[0-9a-f]{6});`)

// schemes reads the colours for light and dark. Dark uses the light colour where it has none of its own, as browsers do.
func schemes(t *testing.T, css string) map[string]scheme {
	t.Helper()
	light, dark := scheme{}, scheme{}
	before, after, found := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	if !found {
		t.Fatal("the style sheet has no dark colours")
	}
	after, _, _ = strings.Cut(after, "\n}\n")
	for _, m := range colour.FindAllStringSubmatch(before, -1) {
		light[m[1]], dark[m[1]] = m[2], m[2]
	}
	for _, m := range colour.FindAllStringSubmatch(after, -1) {
		dark[m[1]] = m[2]
	}
	return map[string]scheme{"light": light, "dark": dark}
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, hex string) float64 {
	t.Helper()
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(hex[1+2*i:3+2*i], 16, 8)
		check(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func TestContrastIsComputedRight(t *testing.T) {
	equal(t, fmt.Sprintf("%.2f", contrast(t, "#ffffff", "#000000")), "21.00")
	equal(t, fmt.Sprintf("%.2f", contrast(t, "#777777", "#ffffff")), "4.48")
}

// uses finds the named colours that properties of a kind use.
func uses(css string, properties string) map[string]bool {
	names := map[string]bool{}
	for _, m := range regexp.MustCompile(`[{;\s](?:`+properties+`): ([^;}]*)`).FindAllStringSubmatch(css, -1) {
		for _, v := range regexp.MustCompile(`var\(--([a-z-]+)\)`).FindAllStringSubmatch(m[1], -1) {
			names[v[1]] = true
		}
	}
	return names
}

// TestContrast compares every colour of text with every background in the style sheet, because text of any kind can be
// on any of them. Text on the accent colour has a colour of its own.
func TestContrast(t *testing.T) {
	css := string(assets["jurat.css"].content)
	texts, surfaces := uses(css, "color"), uses(css, "background")
	edges := uses(css, "border|border-color|border-left|outline|text-decoration-color")
	fills := uses(css, "fill")
	for name, s := range schemes(t, css) {
		pairs := 0
		need := func(a, b string, least float64) {
			pairs++
			if s[a] == "" || s[b] == "" {
				t.Fatalf("%s: %s or %s is no colour", name, a, b)
			}
			if got := contrast(t, s[a], s[b]); got < least {
				t.Errorf("%s: %s %s on %s %s has a contrast of %.2f, want %.1f", name, a, s[a], b, s[b], got, least)
			}
		}
		for surface := range surfaces {
			for text := range texts {
				if text != "on-accent" && surface != "accent" {
					need(text, surface, 4.5)
				}
			}
			for edge := range edges {
				if edge != "line" && surface != "accent" { // lines separate parts that are also separate without them
					need(edge, surface, 3)
				}
			}
		}
		need("on-accent", "accent", 4.5)
		for fill := range fills {
			if fill != "track" {
				need(fill, "track", 3)
			}
		}
		if pairs < 60 {
			t.Errorf("%s: only %d pairs were found", name, pairs)
		}
	}
}

// TestColoursAreNamed: every colour in the style sheet has a name, so TestContrast sees all of them.
func TestColoursAreNamed(t *testing.T) {
	css := string(assets["jurat.css"].content)
	rest := colour.ReplaceAllString(css, "")
	if m := regexp.MustCompile(`#[0-9a-fA-F]{3,8}\b|\b(?:rgb|hsl|lab|lch|oklch|color-mix)a?\(|: (?:white|black|red|gray|grey)\b|opacity`).FindString(rest); m != "" {
		t.Errorf("the style sheet has the colour %q outside of the list", m)
	}
}
