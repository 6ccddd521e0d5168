package find_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"

	"jurat/internal/find"
	"jurat/internal/must"
	"jurat/jurattest"
)

// alphabets are what random texts are made of: scripts, combining marks, emoji with joiners, compatible forms, controls.
var alphabets = [][]string{
	{"a", "B", "c", "É", "e\u0301", "ß", "İ", "ſ", " ", "  ", "\t", "$", "1", ","},
	{"щ", "Ё", "е\u0308", "ж", "Я", " ", "-", "1"},
	{"返", "金", "は", "が", "か\u3099", "ガ", "ﾊﾟ", "。", "a", "B", " ", "３"},
	{"👍", "👩\u200d💻", "🇯🇵", "a", " ", "\ufe0f", "b"},
	{"ก", "ำ", "한", "ᄒ", "ᅡ", "ﬁ", "Ⅷ", "x", "\u00ad", "\u200b", "%", "_", "*", `"`, `\`},
}

func randomText(r *rand.Rand, most int) string {
	from := alphabets[r.IntN(len(alphabets))]
	var b strings.Builder
	for range 1 + r.IntN(most) {
		b.WriteString(from[r.IntN(len(from))])
	}
	return b.String()
}

// cutOut returns a random part of a text, in another letter case now and then.
func cutOut(r *rand.Rand, text string) string {
	runes := []rune(text)
	begin := r.IntN(len(runes))
	part := string(runes[begin : begin+1+r.IntN(min(60, len(runes)-begin))])
	switch r.IntN(3) {
	case 0:
		return strings.ToUpper(part)
	case 1:
		return strings.Map(unicode.ToLower, part)
	}
	return part
}

// TestAgainstScan compares the index with reading every text: of an index that followed a growing log, of its file when it is opened again, and of one in memory.
func TestAgainstScan(t *testing.T) {
	h, r := jurattest.New(t), rand.New(rand.NewPCG(7, 11))
	var texts, ids []string
	path := t.TempDir() + "/find.db"
	x := openIndex(t, h, path)
	for i := range 300 {
		text := randomText(r, 120)
		texts, ids = append(texts, text), append(ids, say(t, h, text).Payload.RecordID)
		if i%100 == 50 {
			follow(t, x)
		}
	}
	follow(t, x)
	compare := func(when string, x *find.Index) {
		asked, searches := 0, atLength(400, 120)
		for range searches {
			text := cutOut(r, texts[r.IntN(len(texts))])
			if r.IntN(4) == 0 {
				text = randomText(r, 4)
			}
			q, err := find.ReadRecords(getter("text", text, "limit", "500"))
			if err != nil {
				continue // too short, which TestHostileQueries is about
			}
			asked++
			found := must.Get(x.Records(t.Context(), q, find.Scope{All: true}, nil))(t)
			var got, want []string
			for _, hit := range found.Hits {
				got = append(got, hit.Record.Payload.RecordID)
			}
			for i, said := range slices.Backward(texts) {
				if strings.Contains(find.Fold(said), find.Fold(text)) {
					want = append(want, ids[i])
				}
			}
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %q: found %v, but a scan finds %v", when, text, got, want)
			}
		}
		if asked < searches/2 {
			t.Errorf("%s: only %d of the texts could be looked for", when, asked)
		}
	}
	compare("while it is open", x)
	compare("in another process", openIndex(t, h, path))
	compare("in memory", followed(t, h))
}

func openIndex(t *testing.T, h *jurattest.House, path string) *find.Index {
	t.Helper()
	x := must.Get(find.Open(t.Context(), h.Ledger, path))(t)
	t.Cleanup(func() { x.Close() })
	return x
}

func follow(t *testing.T, x *find.Index) {
	t.Helper()
	must.Do(t, x.Follow(t.Context(), nil))
}

// followed returns an index in memory.
func followed(t *testing.T, h *jurattest.House) *find.Index {
	t.Helper()
	x := openIndex(t, h, "")
	follow(t, x)
	return x
}

// TestFold: how a text was typed does not matter, what it says does.
func TestFold(t *testing.T) {
	for _, same := range [][2]string{{"Straße", "STRASSE"}, {"e\u0301", "É"}, {"ｶﾞ", "ガ"}, {"ﬁne", "FINE"}, {"a \t\n b", "a b"}, {" a\x00b ", "a b"}, {"Ё", "е\u0308"}} {
		if find.Fold(same[0]) != find.Fold(same[1]) {
			t.Errorf("%q and %q differ", same[0], same[1])
		}
	}
	r := rand.New(rand.NewPCG(3, 4))
	for _, in := range []struct{ from, to rune }{{0, 0x80}, {0x400, 0x460}, {0x3000, 0x3130}, {0x4e00, 0xa000}} { // many are folded in a quicker way
		for range 2000 {
			var text string
			for range r.IntN(30) {
				text += string(in.from + r.Int32N(in.to-in.from))
			}
			if want := strings.TrimRight(strings.TrimSuffix(find.Fold(text+"é"), "é"), " "); find.Fold(text) != want {
				t.Errorf("%q folds to %q, want %q", text, find.Fold(text), want)
			}
		}
	}
	for _, other := range [][2]string{{"a b", "ab"}, {"а", "a"}, {"1,000", "1000"}, {"は", "ば"}} {
		if find.Fold(other[0]) == find.Fold(other[1]) {
			t.Errorf("%q and %q are taken for the same", other[0], other[1])
		}
	}
}

// TestHostileQueries: what no text can be is refused with the name of its parameter; everything else is looked for as it stands.
func TestHostileQueries(t *testing.T) {
	h := jurattest.New(t)
	say(t, h, `all 100%_* of "it" \ and '; DROP TABLE records; --`)
	x := openIndex(t, h, "")
	follow(t, x)
	for _, tt := range []struct {
		name, value string
		want        int // hits; -1: refused
	}{
		{"text", "   ", -1}, {"text", "\x00\x00\x00", -1}, {"text", "%", -1}, {"text", "ab", -1}, {"text", "a\xffbc", -1}, {"text", strings.Repeat("я", 2001), -1},
		{"text", "%_*", 1}, {"text", "%_% of", 0}, {"text", "a%", -1}, {"text", "'; drop table", 1}, {"text", "all\x00100", 1}, {"text", "***", 0},
		{"text", strings.Repeat("я", 2000), 0}, {"actor", "' OR 1=1", 0}, {"actor", strings.Repeat("x", 501), -1}, {"action", "%", 0},
		{"from", "yesterday", -1}, {"to", "2026-13-01", -1}, {"after", "-2", -1}, {"after", "x", -1}, {"limit", "0", -1}, {"limit", "501", -1}, {"limit", "1e2", -1},
		{"sort", "score", -1}, {"said", "yes", -1}, {"said", "true", -1},
	} {
		q, err := find.ReadRecords(getter(tt.name, tt.value))
		if tt.want < 0 {
			if err == nil || !strings.HasPrefix(err.Error(), tt.name+": ") {
				t.Errorf("%s %.20q: %v; want a refusal that names the parameter", tt.name, tt.value, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s %.20q: %v", tt.name, tt.value, err)
			continue
		}
		found, err := x.Records(t.Context(), q, find.Scope{All: true}, nil)
		if err != nil || len(found.Hits) != tt.want {
			t.Errorf("%s %.20q: %d hits, %v; want %d", tt.name, tt.value, len(found.Hits), err, tt.want)
		}
	}
	if _, err := find.ReadTrials(getter("verdict", "safe")); err == nil || !strings.Contains(err.Error(), "safe_pass, needs_review, unsafe_fail, none") {
		t.Errorf("%v: want what there is", fmt.Sprint(err))
	}
}
