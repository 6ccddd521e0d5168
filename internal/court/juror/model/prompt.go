package model

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/evidence"
	"jurat/internal/court/llm"
	"jurat/internal/court/subject"
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
	doc, notWritten := json.Marshal(map[string]any{"version": Version, "unicode": unicode.Version, "templates": texts})
	form, notCanonical := evidence.Canonical(doc)
	if err := errors.Join(err, notWritten, notCanonical); err != nil {
		panic(err) // the files are embedded in the program, and strings always marshal
	}
	return evidence.DigestOf(form)
})

// Prompt returns the question for a brief, to the byte. It returns an error if the brief has no submission, no rubric
// or no readable evidence, or shortens by an unknown rule.
func Prompt(b jury.Brief) (llm.Question, error) {
	s, err := sit(b, nil)
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

func sit(b jury.Brief, c *subject.Case) (s *sitting, err error) {
	if len(b.Saw) == 0 {
		return nil, errors.New("making a prompt: the brief names no submission")
	}
	if len(b.Rubric) == 0 {
		return nil, errors.New("making a prompt: the rubric has no axes")
	}
	if c == nil || c.Digest() != evidence.DigestOf(b.Material) {
		if c, err = subject.Parse(b.Material); err != nil {
			return nil, fmt.Errorf("making a prompt: %w", err)
		}
	}
	request, err := b.Request.Digest()
	if err != nil {
		return nil, fmt.Errorf("making a prompt: %w", err)
	}
	s = &sitting{brief: b, c: c, peers: peersOf(&b, request), order: orderOf(&b)}
	s.members = s.membersOf(&b, s.peers.known())
	shown, err := showEvidence(c, b.Shortening)
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
	ids := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
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

// nobody stands for "no other juror" in a finding's origin. Some vendors refuse an empty string among the values of a
// schema.
const nobody = "none"

// A member is one member of an object that an answer must have.
type member struct {
	name   string
	schema jsontext.Value
	parts  []member // of an object, or of each object in a list
	list   bool
	values []string // the only ones allowed; nil: any
}

// The schema uses only what every vendor's structured output supports: it states ranges in words, and read checks
// them. It has no null: a passage that the record does not have is message 0 with an empty quotation. Members stand in
// the order in which a model should think of them: the tables and the reasons before the levels, and these before the
// position.
func (s *sitting) schema() llm.Schema {
	name := map[jury.Phase]string{jury.Discussion: "statement", jury.Judging: "judgment"}[s.brief.Phase]
	name = cmp.Or(name, "evaluation")
	return llm.Schema{Name: name, JSON: objectOf(s.members)}
}

// membersOf lists the members of an answer, with the names of the other jurors for the origin of findings.
func (o *order) membersOf(b *jury.Brief, peers []string) []member {
	var list []member
	for _, table := range o.tables {
		list = append(list, listOf(table, tableMembers[table]))
	}
	list = append(list, listOf("findings", o.findingMembers(b, peers)))
	if b.Phase == jury.Discussion {
		list = append(list, textMember("statement"), textMember("reasoning"))
	}
	list = append(list, textMember("rationale"))
	levels, points := o.scoreMembers()
	if levels != nil {
		list = append(list, member{name: "levels", schema: objectOf(levels), parts: levels})
	}
	if points != nil {
		list = append(list, member{name: "axisScores", schema: objectOf(points), parts: points})
	}
	return append(list,
		choice("position", o.positions...),
		member{name: "confidence", schema: typed("number", "0 to 1")},
		member{name: "evidenceCode", schema: typed("string", "the code in the task")})
}

// tableMembers are the members of a row of each table. What shows a state stands before the state.
var tableMembers = map[string][]member{
	requestsTable: append(passageMembers("", "shown"),
		choice("state", jury.RequestDone, jury.RequestPartly, jury.RequestNotDone, jury.RequestDeclined, jury.RequestOpen)),
	actsTable: append(passageMembers("", "clause", "fact"),
		choice("holds", jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)),
	amountsTable: append(passageMembers("announced", "charged"),
		choice("agrees", jury.AnsweredYes, jury.AnsweredNo, jury.Unclear)),
}

// passageMembers are the members of a row's passages: message and quote, or with a name before them, such as
// shownMessage and shownQuote.
func passageMembers(names ...string) []member {
	var list []member
	for _, name := range names {
		message, quote := passageNames(name)
		list = append(list, member{name: message, schema: typed("integer", "")}, textMember(quote))
	}
	return list
}

func passageNames(name string) (message, quote string) {
	if name == "" {
		return "message", "quote"
	}
	return name + "Message", name + "Quote"
}

func (o *order) findingMembers(b *jury.Brief, peers []string) []member {
	axes := make([]string, len(o.axes))
	for i, axis := range o.axes {
		axes[i] = axis.ID
	}
	list := append(passageMembers(""),
		textMember("rule"),
		choice("axis", axes...),
		choice("severity", jury.Minor, jury.Major, jury.Critical),
		textMember("explanation"))
	if heardJury(b) {
		list = append(list, choice("from", append([]string{nobody}, peers...)...))
	}
	return list
}

// heardJury reports whether a seat is shown what jurors said.
func heardJury(b *jury.Brief) bool { return b.Phase == jury.Discussion || b.Phase == jury.Judging }

// scoreMembers are the levels of the axes that have some, and the points of the others.
func (o *order) scoreMembers() (levels, points []member) {
	for _, axis := range o.axes {
		if n := len(axis.Levels); n > 0 {
			levels = append(levels, member{name: axis.ID, schema: typed("integer", fmt.Sprintf("0 to %d", n-1))})
		} else {
			points = append(points, member{name: axis.ID, schema: typed("integer", fmt.Sprintf("0 to %d", axis.Max))})
		}
	}
	return levels, points
}

func textMember(name string) member { return member{name: name, schema: typed("string", "")} }

func listOf(name string, parts []member) member {
	return member{name: name, schema: fields("type", "array", "items", objectOf(parts)), parts: parts, list: true}
}

func objectOf(members []member) jsontext.Value {
	var properties []any
	names := make([]string, len(members))
	for i, m := range members {
		properties = append(properties, m.name, m.schema)
		names[i] = m.name
	}
	return fields("type", "object", "properties", fields(properties...), "required", names, "additionalProperties", false)
}

func typed(kind, description string) jsontext.Value {
	if description == "" {
		return fields("type", kind)
	}
	return fields("type", kind, "description", description)
}

func choice[T ~string](name string, values ...T) member {
	m := member{name: name, schema: fields("type", "string", "enum", values)}
	for _, v := range values {
		m.values = append(m.values, string(v))
	}
	return m
}

// fields writes an object from names and values in turn, in this order. It copies values that are JSON already:
// schemas are nested, and each would otherwise be parsed again at every level above it.
func fields(list ...any) jsontext.Value {
	doc := []byte("{")
	for i, v := range list {
		switch {
		case i%2 == 1:
			doc = append(doc, ':')
		case i > 0:
			doc = append(doc, ',')
		}
		doc = appendValue(doc, v)
	}
	return append(doc, '}')
}

func appendValue(doc []byte, v any) []byte {
	var err error
	switch v := v.(type) {
	case jsontext.Value:
		doc = append(doc, v...)
	case string:
		doc, err = jsontext.AppendQuote(doc, v)
	default:
		var value []byte
		value, err = json.Marshal(v)
		doc = append(doc, value...)
	}
	if err != nil {
		panic(fmt.Sprintf("writing a schema: %v", err)) // a brief's names are valid UTF-8: its request has a digest
	}
	return doc
}

// The tables of an answer, by the members that hold them.
const (
	requestsTable = "requests"
	actsTable     = "acts"
	amountsTable  = "amounts"
)

// An order is the order in which one seat reads, writes and scores. Each seat of a panel has its own, so that the
// jurors do not share what an order does to a reader. A seat that is asked again gets another one: an answer that
// depends on it is no judgment.
type order struct {
	reading   jury.Reading
	tables    []string // in the order in which they are filled in; nil: the answer has none
	axes      jury.Rubric
	positions []jury.Position
	sections  []string // of the system text, after the rules about evidence
	best      bool     // the levels of an axis are listed from the best one down
}

func orderOf(b *jury.Brief) order {
	o := order{reading: b.Seat.Reading, positions: []jury.Position{jury.SafePass, jury.NeedsReview, jury.UnsafeFail},
		sections: []string{"axes", "positions", "quoting"}}
	if b.Phase == jury.Repetition {
		o.reading, o.best = another(o.reading), true
		slices.Reverse(o.positions)
		slices.Reverse(o.sections)
	}
	o.tables, o.axes = []string{requestsTable, amountsTable, actsTable}, slices.Clone(b.Rubric)
	switch o.reading {
	case jury.PolicyFirst:
		o.tables = []string{actsTable, requestsTable, amountsTable}
		slices.Reverse(o.axes)
	case jury.ActsFirst:
		o.tables = []string{actsTable, amountsTable, requestsTable}
		o.axes = append(o.axes[1:], o.axes[0])
	case jury.ClaimsFirst:
	default:
		o.tables = []string{requestsTable, actsTable, amountsTable}
	}
	if !b.Tables {
		o.tables = nil
	}
	return o
}

// another returns the reading of a seat that is asked again. It is never the seat's own.
func another(r jury.Reading) jury.Reading {
	switch r {
	case jury.PolicyFirst:
		return jury.ActsFirst
	case jury.ActsFirst:
		return jury.ClaimsFirst
	}
	return jury.PolicyFirst
}

// A shownAxis is an axis as the system text shows it.
type shownAxis struct {
	jury.Axis
	Least  string // the least level or points that allow a pass; "": any do
	Levels []shownLevel
}

type shownLevel struct {
	Number      int
	Description string
}

func (o *order) shownAxes() []shownAxis {
	var list []shownAxis
	for _, axis := range o.axes {
		a := shownAxis{Axis: axis, Least: leastOf(axis)}
		for i, level := range axis.Levels {
			a.Levels = append(a.Levels, shownLevel{i, level.Description})
		}
		if o.best {
			slices.Reverse(a.Levels)
		}
		list = append(list, a)
	}
	return list
}
