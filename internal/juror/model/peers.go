package model

import (
	"cmp"
	"crypto/sha256"
	"regexp"
	"slices"
	"strings"

	"jurat/evidence"
	"jurat/jury"
)

// ownName replaces the reader's own id in what the others say.
const ownName = "your seat"

// peers are the other jurors as one reader sees them: by letters, in an order for this reader alone.
type peers struct {
	ids    []string          // in the order of the letters
	names  map[string]string // by id, the reader's own too
	anyID  *regexp.Regexp    // nil: there are no ids
	reader string            // own id; "" for the judge
}

// peersOf orders all other jurors that said anything by the hashes of request and id.
func peersOf(b *jury.Brief, request evidence.Digest) peers {
	p := peers{names: map[string]string{}}
	if b.Phase != jury.Judging {
		p.reader = b.Seat.JurorID
		p.names[p.reader] = ownName
	}
	for _, e := range b.Evaluations {
		p.add(e.JurorID)
	}
	for _, round := range b.Rounds {
		for _, s := range round.Statements {
			p.add(s.JurorID)
		}
	}
	rank := func(id string) string {
		sum := sha256.Sum256([]byte(orderLabel + " " + request.String() + " " + id))
		return string(sum[:])
	}
	slices.SortFunc(p.ids, func(a, b string) int { return cmp.Compare(rank(a), rank(b)) })
	for i, id := range p.ids {
		p.names[id] = "Juror " + string(rune('A'+i))
	}
	if len(p.ids) > 0 {
		p.anyID = idPattern(p.names)
	}
	return p
}

func (p *peers) add(id string) {
	if id != p.reader && !slices.Contains(p.ids, id) {
		p.ids = append(p.ids, id)
	}
}

// idPattern matches any of the ids as a whole word, the longest first. \b knows only ASCII letters, so the pattern
// has no \b beside an id's first or last character that is not one.
func idPattern(names map[string]string) *regexp.Regexp {
	var ids []string
	for id := range names {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for i, id := range ids {
		quoted := regexp.QuoteMeta(id)
		if wordByte(id[0]) {
			quoted = `\b` + quoted
		}
		if wordByte(id[len(id)-1]) {
			quoted += `\b`
		}
		ids[i] = quoted
	}
	return regexp.MustCompile(strings.Join(ids, "|"))
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// hide replaces ids by the names that the reader knows.
func (p *peers) hide(text string) string {
	if p.anyID == nil {
		return text
	}
	return p.anyID.ReplaceAllStringFunc(text, func(id string) string { return p.names[id] })
}

// Letters of jurors as models write them: Juror A, Jurors A and B, jurors A, B, and C.
var (
	lettered = regexp.MustCompile(`\b[Jj]urors? [A-L](?:(?:, and |, or |, | and | or | & |/)[A-L])*\b`)
	letter   = regexp.MustCompile(`\b[A-L]\b`)
)

// reveal replaces the names that the reader knows by ids. It leaves a letter that stands for no juror.
func (p *peers) reveal(text string) string {
	if len(p.ids) == 0 {
		return text
	}
	return lettered.ReplaceAllStringFunc(text, func(names string) string {
		letters := letter.FindAllString(names, -1)
		for _, one := range letters {
			if int(one[0]-'A') >= len(p.ids) {
				return names
			}
		}
		list := names[strings.IndexByte(names, ' ')+1:]
		return letter.ReplaceAllStringFunc(list, func(one string) string { return p.ids[one[0]-'A'] })
	})
}

// id returns the id of the juror that a reader calls by a name.
func (p *peers) id(name string) (string, bool) {
	i := slices.IndexFunc(p.ids, func(id string) bool { return p.names[id] == name })
	if i < 0 {
		return "", false
	}
	return p.ids[i], true
}

// known lists the names of the others in order.
func (p *peers) known() []string {
	list := make([]string, len(p.ids))
	for i, id := range p.ids {
		list[i] = p.names[id]
	}
	return list
}
