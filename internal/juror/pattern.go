package juror

import (
	"regexp"
	"sync"
)

// A Pattern is a regular expression that is compiled when it is first used. Its methods are those of [regexp.Regexp], and
// several goroutines may call them at once.
type Pattern struct{ compiled func() *regexp.Regexp }

var (
	mu    sync.Mutex
	known []*Pattern
)

// NewPattern returns a pattern, for a variable of a package. An expression that does not compile panics at its first use, so a
// test has all of them compiled by [CompilePatterns].
func NewPattern(expression string) *Pattern {
	p := &Pattern{sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })}
	mu.Lock()
	defer mu.Unlock()
	known = append(known, p)
	return p
}

// CompilePatterns compiles every pattern of this program, and returns how many there are. It panics if one does not compile.
func CompilePatterns() int {
	mu.Lock()
	defer mu.Unlock()
	for _, p := range known {
		p.compiled()
	}
	return len(known)
}

func (p *Pattern) MatchString(s string) bool              { return p.compiled().MatchString(s) }
func (p *Pattern) FindString(s string) string             { return p.compiled().FindString(s) }
func (p *Pattern) FindStringIndex(s string) []int         { return p.compiled().FindStringIndex(s) }
func (p *Pattern) FindStringSubmatch(s string) []string   { return p.compiled().FindStringSubmatch(s) }
func (p *Pattern) FindAllString(s string, n int) []string { return p.compiled().FindAllString(s, n) }
func (p *Pattern) FindAllStringIndex(s string, n int) [][]int {
	return p.compiled().FindAllStringIndex(s, n)
}
func (p *Pattern) FindAllStringSubmatch(s string, n int) [][]string {
	return p.compiled().FindAllStringSubmatch(s, n)
}
func (p *Pattern) ReplaceAllString(s, with string) string {
	return p.compiled().ReplaceAllString(s, with)
}
func (p *Pattern) Split(s string, n int) []string { return p.compiled().Split(s, n) }

// String returns the expression.
func (p *Pattern) String() string { return p.compiled().String() }
