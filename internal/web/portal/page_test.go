package portal

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"jurat/internal/test/must"
	"jurat/internal/web/words"
)

// colours reads the colours of the style sheet: those of the light scheme, and those of the dark one.
func colours(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	before, after, ok := strings.Cut(pageCSS, "@media (prefers-color-scheme: dark) {")
	must.Need(t, ok, "the style sheet has no dark scheme")
	after, _, _ = strings.Cut(after, "\n}\n")
	read := func(text string) map[string]string {
		found := map[string]string{}
		for _, m := range regexp.MustCompile(`--(\w+): (#[0-9a-f]{6});`).FindAllStringSubmatch(text, -1) {
			found[m[1]] = m[2]
		}
		return found
	}
	return read(before), read(after)
}

// luminance is the relative luminance of WCAG 2.2.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	var parts [3]float64
	for i := range parts {
		n := must.Get(strconv.ParseUint(colour[1+2*i:3+2*i], 16, 8))(t)
		if c := float64(n) / 255; c <= 0.04045 {
			parts[i] = c / 12.92
		} else {
			parts[i] = math.Pow((c+0.055)/1.055, 2.4)
		}
	}
	return 0.2126*parts[0] + 0.7152*parts[1] + 0.0722*parts[2]
}

func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast: WCAG 2.2 AA requires 4.5 for text (1.4.3), and 3 for the outlines of controls (1.4.11).
func TestContrast(t *testing.T) {
	got := contrast(t, "#000000", "#ffffff")
	must.Need(t, math.Abs(got-21) <= 1e-9, "black on white: %v", got)
	light, dark := colours(t)
	for name, set := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, ground := range []string{"paper", "sheet"} {
			for ink, least := range map[string]float64{"ink": 4.5, "quiet": 4.5, "link": 4.5, "proved": 4.5, "doubt": 4.5, "false": 4.5, "edge": 3} {
				must.Need(t, set[ink] != "" && set[ground] != "", "%s: %s or %s is no colour", name, ink, ground)
				got := contrast(t, set[ink], set[ground])
				must.Hold(t, got >= least, "%s: %s on %s has %.2f, want %.1f", name, ink, ground, got, least)
			}
		}
	}
	// Every other use of a colour must name one of these.
	loose := regexp.MustCompile(`(?m)^[^-\n]*[ :](#[0-9a-f]{3,8}|rgb|hsl)`).FindAllString(pageCSS, -1)
	must.Hold(t, loose == nil, "colours of their own: %q", loose)
}

func TestFileNeedsNothing(t *testing.T) {
	page := File()
	for _, outside := range []string{"http://", "https://", "src=", "@import", "url("} {
		html := pageHTML + pageCSS + pageJS + workerJS
		must.Hold(t, !strings.Contains(html, outside), "the page has %q in it", outside)
	}
	for _, want := range []string{"connect-src 'none'", hash(pageJS), hash(pageCSS), "default-src 'none'", "THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS"} {
		must.Hold(t, bytes.Contains(page, []byte(want)), "the page has no %q", want)
	}
	for _, place := range []string{"{{", "'unsafe-inline'", "'unsafe-eval'"} {
		must.Hold(t, !bytes.Contains(page, []byte(place)), "the page has %q", place)
	}
	got := fmt.Sprintf("%x", Digest())
	must.Hold(t, len(got) == 64 && bytes.Equal(page, File()), "digest %s", got)
}

// Text inside an element must not be able to end the element.
func TestNothingEndsItsElement(t *testing.T) {
	for name, text := range map[string]string{"script": pageJS, "worker": licensed() + workerJS, "style": pageCSS} {
		for _, end := range []string{"</script", "</style", "<!--", "<script"} {
			must.Hold(t, !strings.Contains(strings.ToLower(text), end), "%s has %s in it", name, end)
		}
	}
	hostile := Served{Script: "/a.js", Style: "/a.css", File: "/verify.html", Trust: []byte(`{"name":"</script><script>alert(1)</script>{{program}}"}`)}.Page()
	must.Hold(t, !bytes.Contains(hostile, []byte("alert(1)</script>")), "a trust file can end the element that it is in")
}

func TestServedPageHasNothingInline(t *testing.T) {
	page := string(Served{Script: "/static/verify-1.js", Style: "/static/verify-1.css", File: "/verify.html"}.Page())
	for _, m := range regexp.MustCompile(`(?s)<(script|style)([^>]*)>`).FindAllStringSubmatch(page, -1) {
		if m[1] == "style" || !strings.Contains(m[2], "src=") && !strings.Contains(m[2], `type="application/json"`) && !strings.Contains(m[2], `type="text/plain"`) {
			t.Errorf("%s is inline, which the content security policy forbids", m[0])
		}
	}
	must.Hold(t, !strings.Contains(page, "style=") && !regexp.MustCompile(`\son\w+=`).MatchString(pageHTML),
		"an attribute has inline style or script, which the content security policy forbids")
}

// maxProgram is the maximum size of the packed verifier, so that the page loads on slow connections.
const maxProgram = 2_000_000

func TestProgramIsSmall(t *testing.T) {
	must.Hold(t, len(packedVerifier) <= maxProgram, "the packed verifier has %d bytes, want at most %d", len(packedVerifier), maxProgram)
}

// run runs a program that judges, or skips the test where it is missing.
func run(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		must.Need(t, os.Getenv("CI") != "true", "%s is missing, and CI must run this test", name)
		t.Skipf("%s is missing, which judges the page's program", name)
	}
	return must.Get(exec.Command(name, args...).Output())(t)
}

// TestProgramDecompressed: the worker decompresses to the byte what xz does. A wrong byte in the program's data would
// not keep it from starting.
func TestProgramDecompressed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "verifier.wasm")
	run(t, "node", "testdata/worker.js", "page", file)
	must.Hold(t, bytes.Equal(must.Get(os.ReadFile(file))(t), run(t, "xz", "--format=lzma", "-dc", "page/verifier.wasm.lzma")),
		"the worker decompresses another program than xz")
}

// TestDamagedProgram: the worker starts no program of which a byte was changed, or whose tail is missing: its data could be wrong and its code valid.
func TestDamagedProgram(t *testing.T) {
	run(t, "node", "--version") // or it is skipped
	folder := t.TempDir()
	for _, name := range []string{"wasm_exec.js", "worker.js"} {
		must.Do(t, os.WriteFile(filepath.Join(folder, name), must.Get(os.ReadFile(filepath.Join("page", name)))(t), 0o600))
	}
	last := len(packedVerifier) - 1
	for at := range 10 {
		flipped := bytes.Clone(packedVerifier)
		flipped[last-50*at] ^= 1 << (at % 8)
		for _, damaged := range [][]byte{flipped, packedVerifier[:last-at]} {
			must.Do(t, os.WriteFile(filepath.Join(folder, "verifier.wasm.lzma"), damaged, 0o600))
			out, err := exec.Command("node", "testdata/worker.js", folder, filepath.Join(folder, "program")).Output()
			must.Need(t, err != nil && bytes.Contains(out, []byte("the verifier is damaged")), "%d before the end: %v, %s", at, err, out)
		}
	}
}

// TestProgramHasNothingElse: the linker has dropped the pages' texts, and what writes archives.
func TestProgramHasNothingElse(t *testing.T) {
	program := run(t, "xz", "--format=lzma", "-dc", "page/verifier.wasm.lzma")
	for text, want := range map[string]bool{words.OfPages(words.Russian)["home.lead"]: false, words.Of(words.Russian)["statement.hidden.own_word"]: true,
		"archive/zip.": false, "compress/flate": false, "crypto/x509.": true} {
		got := bytes.Contains(program, []byte(text))
		must.Hold(t, got == want, "the program contains %q: %v, want %v", text, got, want)
	}
}

// written returns the texts of every language in the page, by their JSON names.
func written(t *testing.T) map[string]map[string]any {
	t.Helper()
	found := regexp.MustCompile(`<script type="application/json" id="texts">(.*?)</script>`).FindSubmatch(File())
	must.Need(t, found != nil, "the page has no texts")
	var list []map[string]any
	must.Do(t, json.Unmarshal(found[1], &list))
	all := map[string]map[string]any{}
	for _, l := range list {
		all[l["lang"].(string)] = l
	}
	return all
}

// TestPageHasItsTexts: the page has every text of package words, member by member, in every language.
func TestPageHasItsTexts(t *testing.T) {
	all := written(t)
	must.Equal(t, len(all), len(words.Langs()))
	for _, lang := range words.Langs() {
		got := all[string(lang)]
		must.Hold(t, got["language"] == lang.Name(), "%s calls itself %v", lang, got["language"])
		texts := words.OfPages(lang)
		for key, want := range texts {
			name, is := strings.CutPrefix(key, "portal.")
			must.Hold(t, !is || strings.Contains(name, ".") || got[name] == want, "%s: %s is %v, want %q", lang, name, got[name], want)
		}
		must.Contain(t, string(File()), "\t<p lang=\""+string(lang)+"\">"+texts["noscript.portal"]+"</p>\n")
	}
	members := all["ja"]["members"].(map[string]any)
	must.Hold(t, members["modified_response"] == "修正後の出力" && len(members) == 8, "members: %v", members)
}

// A text that the script asks for and the page does not have would show as empty. A text that it never asks for is
// superfluous.
func TestPageSaysWhatThereIs(t *testing.T) {
	asked := map[string]bool{"lang": true, "language": true, "title": true, "members": true} // read by other means
	for _, pattern := range []string{`data-text="(\w+)"`, `\bsay\("(\w+)"`, `\bsaying\("(\w+)"`, `\bstate\("(\w+)"`, `\bbutton\("(\w+)"`, `\blater\("(\w+)"`} {
		found := regexp.MustCompile(pattern).FindAllStringSubmatch(pageHTML+pageJS, -1)
		must.Hold(t, len(found) != 0, "nothing is asked for by %s", pattern)
		for _, m := range found {
			asked[m[1]] = true
		}
	}
	// These names are in a table or in a variable of the script.
	for _, name := range []string{"refuted", "without_trust", "all_proved", "not_proved", "actor", "model", "claimed", "proved_time", "digest", "apart", "withheld"} {
		must.Contain(t, pageJS, `"`+name+`"`)
		asked[name] = true
	}
	there := map[string]bool{}
	for name := range written(t)["en"] {
		there[name] = true
	}
	must.Equal(t, cmp.Diff(slices.Sorted(maps.Keys(there)), slices.Sorted(maps.Keys(asked))), "")
}
