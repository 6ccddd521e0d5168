package model

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/go-json-experiment/json"

	"jurat/evidence"
	"jurat/internal/llm"
	"jurat/internal/subject"
	"jurat/jury"
)

// Version names the code that builds prompts. It changes whenever Prompt or Follow write anything different that does
// not come from a template.
const Version = "jurat/prompt/v2"

//go:embed templates/*.txt
var files embed.FS

var templates = template.Must(template.New("").Option("missingkey=error").ParseFS(files, "templates/*.txt"))

// Template is the digest of all that turns a brief into a prompt: the version, the words of the templates, and the
// edition of Unicode that says which characters are invisible. It is the template digest of a seat.
var Template = sync.OnceValue(func() evidence.Digest {
	list, err := files.ReadDir("templates")
	texts := map[string]string{}
	for _, entry := range list {
		text, readErr := files.ReadFile("templates/" + entry.Name())
		err = errors.Join(err, readErr)
		texts[entry.Name()] = string(text)
	}
	if err != nil {
		panic(err) // the files are embedded in the program
	}
	doc, err := json.Marshal(map[string]any{"version": Version, "unicode": unicode.Version, "templates": texts})
	if err != nil {
		panic(err) // strings always marshal
	}
	form, err := evidence.Canonical(doc)
	if err != nil {
		panic(err)
	}
	return evidence.DigestOf(form)
})

// Prompt returns the question for a brief, to the byte. It returns an error if the brief has no submission, no rubric
// or no readable evidence, or shortens by an unknown rule.
func Prompt(b jury.Brief) (llm.Question, error) {
	s, err := sit(b)
	if err != nil {
		return llm.Question{}, err
	}
	return s.question, nil
}

// A sitting is one request to one seat: the question, and all that the check of an answer needs.
type sitting struct {
	marks
	order
	brief    jury.Brief
	c        *subject.Case
	peers    peers
	members  []member // of the answer
	question llm.Question

	consequential func(*subject.ToolCall) bool // nil: no call is known to have consequences
}

func sit(b jury.Brief) (*sitting, error) {
	if len(b.Saw) == 0 {
		return nil, errors.New("making a prompt: the brief names no submission")
	}
	if len(b.Rubric) == 0 {
		return nil, errors.New("making a prompt: the rubric has no axes")
	}
	c, err := subject.Parse(b.Material)
	if err != nil {
		return nil, fmt.Errorf("making a prompt: %w", err)
	}
	request, err := b.Request.Digest()
	if err != nil {
		return nil, fmt.Errorf("making a prompt: %w", err)
	}
	s := &sitting{brief: b, c: c, peers: peersOf(&b, request), order: orderOf(&b)}
	s.members = s.membersOf(&b, s.peers.known())
	shown, err := showEvidence(c, b.Material, b.Shortening)
	if err != nil {
		return nil, fmt.Errorf("making a prompt: %w", err)
	}
	material := string(b.Material)
	s.boundary = derive(boundaryLabel, b.Saw[0], boundaryBytes, material, shown)
	s.guard = derive(guardLabel, b.Saw[0], boundaryBytes, material, shown)
	said := ""
	if heardJury(&b) {
		said = showJury(c, &b, &s.peers, s.marks)
		s.jury = derive(juryLabel, request, boundaryBytes, shown, said)
	}
	s.code = derive(codeLabel, request, codeBytes, shown, said)
	return s, s.ask(shown, said)
}

// ask composes the question. Text of the accused and of other jurors goes only into the user's message.
func (s *sitting) ask(shown, said string) error {
	data := s.data()
	system, err := fill("system.txt", data)
	if err != nil {
		return err
	}
	name := map[jury.Phase]string{jury.Discussion: "discuss.txt", jury.Judging: "judge.txt"}[s.brief.Phase]
	name = cmp.Or(name, "evaluate.txt")
	task, err := fill(name, data)
	if err != nil {
		return err
	}
	var text strings.Builder
	fmt.Fprintf(&text, "=== BEGIN EVIDENCE %s ===\nguard %s\n%s\n=== END EVIDENCE %s ===\n\n", s.boundary, s.guard, shown, s.boundary)
	if s.jury != "" {
		fmt.Fprintf(&text, "=== BEGIN WHAT THE JURORS SAID %s ===\n%s\n=== END WHAT THE JURORS SAID %s ===\n\n", s.jury, said, s.jury)
	}
	text.WriteString(task)
	s.question = llm.Question{System: system, Messages: []llm.Message{{Text: text.String()}}, Schema: s.schema()}
	return nil
}

func (s *sitting) data() map[string]any {
	b := &s.brief
	levels, points := s.scoreMembers()
	kept := slices.ContainsFunc(alone(b, b.Seat.JurorID), func(e *jury.Evaluation) bool { return e.Work != nil }) // from before the discussion
	return map[string]any{"Role": b.Seat.RoleName, "Focus": b.Seat.RoleFocus, "Boundary": s.boundary, "Code": s.code,
		"Sections": s.sections, "Axes": s.shownAxes(), "Positions": s.positions, "Reading": s.reading, "Tables": s.tables,
		"Levels": levels != nil, "Points": points != nil, "Round": b.RoundNumber,
		"From": heardJury(b), "Speaks": b.Phase == jury.Discussion, "Blind": blind(b), "Kept": kept, "Own": b.Own != nil}
}

func fill(name string, data any) (string, error) {
	var text strings.Builder
	if err := templates.ExecuteTemplate(&text, name, data); err != nil {
		return "", fmt.Errorf("making a prompt: %w", err)
	}
	return text.String(), nil
}

// Follow returns the question after a recorded attempt that was invalid. If the attempt has no answer or a blank one, that is the
// same question again. If it tripped the canary, the question does not repeat the answer. It returns an error only if
// a template of this program fails.
func Follow(q llm.Question, a jury.Attempt) (llm.Question, error) {
	if llm.Blank(a.Answer) {
		return q, nil
	}
	answer, name, data := a.Answer, "again.txt", map[string]any{}
	if strings.HasPrefix(a.Problem, tripped) {
		withdrawn, err := fill("withdrawn.txt", data)
		if err != nil {
			return q, err
		}
		answer, name = strings.TrimSpace(withdrawn), "tripped.txt"
	} else {
		var problem strings.Builder
		barred(&problem, a.Problem)
		data["Problem"] = strings.TrimSuffix(problem.String(), "\n")
	}
	text, err := fill(name, data)
	if err != nil {
		return q, err
	}
	q.Messages = append(q.Messages[:len(q.Messages):len(q.Messages)], llm.Message{ByModel: true, Text: answer}, llm.Message{Text: text})
	return q, nil
}

// Labels of the derived tokens. They contain the format's version, so that two versions never share a token.
const (
	boundaryLabel = "jurat/prompt/v2 evidence"
	guardLabel    = "jurat/prompt/v2 guard"
	juryLabel     = "jurat/prompt/v2 jury"
	codeLabel     = "jurat/prompt/v2 code"
	orderLabel    = "jurat/prompt/v2 order"
)

const (
	boundaryBytes = 16
	codeBytes     = 6
)

// marks are the tokens of a prompt. The authors of the text shown in it cannot know them.
type marks struct {
	boundary string // of the evidence; the same for every seat of a trial
	guard    string // inside the evidence's frame: no answer may carry it; the same for every seat of a trial
	jury     string // boundary of what the jurors said; of this request alone. "" if they have not spoken yet
	code     string // every answer must carry it; of this request alone
}

// derive makes a token from a seed. While the token occurs in one of the texts, it derives the next one.
func derive(label string, seed evidence.Digest, n int, texts ...string) string {
	for counter := 0; ; counter++ {
		sum := sha256.Sum256([]byte(label + " " + seed.String() + " " + strconv.Itoa(counter)))
		token := hex.EncodeToString(sum[:n])
		if !slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(text, token) }) {
			return token
		}
	}
}

// leaked reports whether a text carries a token that no answer may carry.
func (m marks) leaked(text string) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc([]string{m.guard, m.boundary, m.jury}, func(token string) bool { return token != "" && strings.Contains(text, token) })
}

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

func (p *peers) id(name string) (string, bool) {
	i := slices.IndexFunc(p.ids, func(id string) bool { return p.names[id] == name })
	if i < 0 {
		return "", false
	}
	return p.ids[i], true
}

func (p *peers) known() []string {
	list := make([]string, len(p.ids))
	for i, id := range p.ids {
		list[i] = p.names[id]
	}
	return list
}
