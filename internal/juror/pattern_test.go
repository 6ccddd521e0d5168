package juror

import (
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// TestAsRegexp: each method gives what that of the compiled expression gives.
func TestAsRegexp(t *testing.T) {
	const expression, text = `(?i)\b(ref)und(\w*)`, "Refunds: two refunds, one REFUNDED.\nNo other."
	p, r := NewPattern(expression), regexp.MustCompile(expression)
	for _, s := range []string{text, "none", ""} {
		for method, pair := range map[string][2]any{
			"MatchString":           {p.MatchString(s), r.MatchString(s)},
			"FindString":            {p.FindString(s), r.FindString(s)},
			"FindStringIndex":       {p.FindStringIndex(s), r.FindStringIndex(s)},
			"FindStringSubmatch":    {p.FindStringSubmatch(s), r.FindStringSubmatch(s)},
			"FindAllString":         {p.FindAllString(s, 2), r.FindAllString(s, 2)},
			"FindAllStringIndex":    {p.FindAllStringIndex(s, 2), r.FindAllStringIndex(s, 2)},
			"FindAllStringSubmatch": {p.FindAllStringSubmatch(s, 2), r.FindAllStringSubmatch(s, 2)},
			"ReplaceAllString":      {p.ReplaceAllString(s, "${2}x"), r.ReplaceAllString(s, "${2}x")},
			"Split":                 {p.Split(s, 2), r.Split(s, 2)},
		} {
			if !reflect.DeepEqual(pair[0], pair[1]) {
				t.Errorf("%s of %q: %v, and the compiled expression gives %v", method, s, pair[0], pair[1])
			}
		}
	}
}

// TestFirstUses: several goroutines use a pattern for the first time at once.
func TestFirstUses(t *testing.T) {
	p := NewPattern(`^a+$`)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if !p.MatchString("aaa") || p.MatchString("b") {
				t.Error("it matches something else")
			}
		})
	}
	all.Wait()
}

// TestWrongExpression: an expression that does not compile is found without a use of it.
func TestWrongExpression(t *testing.T) {
	before := CompilePatterns()
	NewPattern(`(`)
	defer func() {
		if said := recover(); said == nil || !strings.Contains(said.(string), "missing closing )") {
			t.Errorf("it says %v", said)
		}
		mu.Lock()
		defer mu.Unlock()
		known = known[:before]
	}()
	CompilePatterns()
}
