package find

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"jurat/client/api"
	"jurat/internal/court/trial"
	"jurat/jury"
)

// A Sort is the order of a list.
type Sort string

const (
	Newest  Sort = "newest"  // by submission
	Oldest  Sort = "oldest"  // by submission
	Latest  Sort = "latest"  // by the last act, the latest first
	Highest Sort = "highest" // by the jury's score; trials without a verdict are last
	Lowest  Sort = "lowest"
	ByAgent Sort = "agent" // by the agent's name
)

// Sorts lists every order. The first is the default.
func Sorts() []Sort { return []Sort{Newest, Oldest, Latest, Highest, Lowest, ByAgent} }

// None selects trials without a verdict.
const None = "none"

// Positions lists what verdict and outcome can be.
func Positions() []string {
	return []string{string(jury.SafePass), string(jury.NeedsReview), string(jury.UnsafeFail), None}
}

// Trials selects trials.
type Trials struct {
	Agent, Submitter string    // a part of the name, folded
	Juror, Model     string    // a part of a juror's name or role, and of a model's name, folded
	Verdict, Outcome string    // one of Positions; "": any
	Needs            string    // true, false; "": both
	Taken            string    // the reviewer's name, folded; None: by nobody, of those that wait; "": any
	From, To         time.Time // of the submission
	Text             string    // folded, in any record of the trial
	Record           string    // the id of a record of the trial, or of the trial
	Sort             Sort
	After            string // cursor of the page before
	Limit            int    // 0: 100

	Exact string // the agent's whole name; "": any. No parameter sets it
}

// TrialParameters are the names of the parameters that ReadTrials takes.
func TrialParameters() []Parameter {
	return []Parameter{
		{"agent", "trials of agents with this in their name, in any letter case"},
		{"verdict", "the jury's verdict: safe_pass, needs_review, unsafe_fail, or none while there is none"},
		{"outcome", "what counts, after people's decisions: safe_pass, needs_review, unsafe_fail, or none while there is none"},
		{"needs_person", "true: only trials that wait for a person's decision; false: only others"},
		{"taken", "trials that the reviewer of this name has taken; none: those that wait for a person and that no reviewer has taken"},
		{"juror", "trials in which a juror with this in its name or role sat"},
		{"model", "trials in which a model with this in its name sat"},
		{"submitter", "trials of submitters with this in their name"},
		{"from", "submissions from this time on: a date (2026-01-31, in UTC) or an RFC 3339 time"},
		{"to", "submissions up to this day, or before this time"},
		{"text", "trials in which this text occurs, in any letter case: at least three letters, or two characters of a script without spaces"},
		{"record", "the trial that has the record with this id"},
		{"sort", "newest, oldest, latest (by the last act), highest or lowest (by score), or agent; by default newest"},
		{"after", "the cursor of the previous page"},
		{"limit", "the largest number of trials: 1 to 500, by default 100"},
	}
}

// ReadTrials reads a search from its parameters, which get returns by name, "" if a parameter is not given. Its errors
// are FieldErrors.
func ReadTrials(get func(name string) string) (*Trials, error) {
	r := read(get, TrialParameters())
	var sorts []string
	for _, s := range Sorts() {
		sorts = append(sorts, string(s))
	}
	q := &Trials{Agent: r.folded("agent"), Submitter: r.folded("submitter"), Juror: r.folded("juror"), Model: r.folded("model"), Taken: r.folded("taken"),
		Verdict: r.oneOf("verdict", Positions()...), Outcome: r.oneOf("outcome", Positions()...), Needs: r.oneOf("needs_person", "true", "false"),
		Text: r.text(), Record: get("record"), Sort: cmp.Or(Sort(r.oneOf("sort", sorts...)), Newest), After: get("after"), Limit: r.limit()}
	q.From, q.To = r.times()
	return q, r.err
}

// NeedsIndex reports whether the search needs an Index.
func (q *Trials) NeedsIndex() bool { return q.Juror != "" || q.Model != "" || q.Text != "" }

// fits returns a function that reports whether a summary alone fulfils the conditions that can be read from it.
func (q *Trials) fits() func(*trial.Summary) bool {
	agent, submitter := within(q.Agent), within(q.Submitter)
	return func(s *trial.Summary) bool {
		verdict, outcome := positionsOf(s)
		return (q.Verdict == "" || q.Verdict == verdict) && (q.Outcome == "" || q.Outcome == outcome) &&
			(q.Needs == "" || (q.Needs == "true") == s.NeedsPerson()) &&
			(q.Taken == "" || q.Taken == takenBy(s)) &&
			(q.From.IsZero() || !s.Submitted.Before(q.From)) && (q.To.IsZero() || s.Submitted.Before(q.To)) &&
			(q.Exact == "" || q.Exact == s.Agent) && agent(s.Agent) && submitter(s.Submitter)
	}
}

func positionsOf(s *trial.Summary) (verdict, outcome string) {
	if s.Outcome == nil {
		return None, None
	}
	return string(s.Outcome.Verdict.Position), string(s.Outcome.Position)
}

// takenBy returns the folded name of the reviewer who has taken a trial, None if it waits for one, and "" if it does not wait.
func takenBy(s *trial.Summary) string {
	switch now := s.Taken(); {
	case now != nil:
		return Fold(now.Reviewer)
	case s.NeedsPerson():
		return None
	}
	return ""
}

// within returns a function that reports whether a folded text is part of a name. It folds each name once: many trials have the same.
func within(part string) func(name string) bool {
	known := map[string]bool{}
	return func(name string) bool {
		if part == "" {
			return true
		}
		is, seen := known[name]
		if !seen {
			is = strings.Contains(Fold(name), part)
			known[name] = is
		}
		return is
	}
}

// A Listed is a page of trials.
type Listed struct {
	Trials []trial.Summary
	Next   string          // cursor of the next page; "": this is the last one
	Counts api.TrialCounts // of all pages
}

// maxCompared is up to how many trials a text is compared in, so that the counts are exact.
const maxCompared = 200

// Trials returns a page of what a search finds among the trials of an index that its reader may see (nil: all). x may be nil if
// the search does not need it. Its errors are FieldErrors for a wrong cursor, and those of the index and the log.
func (q *Trials) Trials(ctx context.Context, t *trial.Index, x *Index, visible func(*trial.Summary) bool) (*Listed, error) {
	chain, err := q.chain(ctx, t)
	if err != nil {
		return nil, err
	}
	seated, err := x.seated(ctx, q)
	if err != nil {
		return nil, err
	}
	var places map[string][]int64
	if q.Text != "" {
		if places, err = x.withText(ctx, trialTerm, q.Text); err != nil {
			return nil, err
		}
	}
	fits := q.fits()
	all := t.List(func(s *trial.Summary) bool {
		return (visible == nil || visible(s)) && (q.Record == "" || s.ID == chain) && fits(s) && (seated == nil || seated[s.ID]) &&
			(q.Text == "" || len(places[s.ID]) > 0)
	})
	var has func(*trial.Summary) (bool, error)
	if q.Text != "" {
		has = func(s *trial.Summary) (bool, error) { return x.anyHas(ctx, places[s.ID], q.Text) }
	}
	if has != nil && len(all) <= maxCompared {
		all = slices.DeleteFunc(all, func(s trial.Summary) (lacks bool) {
			if err == nil {
				lacks, err = has(&s)
				lacks = !lacks
			}
			return lacks
		})
		has = nil
	}
	if err != nil {
		return nil, err
	}
	counts := api.TrialCounts{Total: len(all), AtMost: has != nil, Verdicts: map[string]int{}, Outcomes: map[string]int{}}
	for i := range all {
		verdict, outcome := positionsOf(&all[i])
		counts.Verdicts[verdict]++
		counts.Outcomes[outcome]++
		if all[i].NeedsPerson() {
			counts.NeedsPerson++
		}
	}
	listed := &Listed{Trials: []trial.Summary{}, Counts: counts}
	return listed, q.page(listed, q.sorted(all), has)
}

// chain returns the id of the trial with the record that is looked for, "" if there is none or none is.
func (q *Trials) chain(ctx context.Context, t *trial.Index) (string, error) {
	if _, is := t.Get(q.Record); is || q.Record == "" {
		return q.Record, nil
	}
	return t.Holding(ctx, q.Record)
}

type keyed struct {
	key string
	*trial.Summary
}

// sorted sorts trials that are in the order of submission. Equal ones are in that order, the newest first.
func (q *Trials) sorted(list []trial.Summary) []keyed {
	all := make([]keyed, len(list))
	for i := range list {
		all[i] = keyed{q.key(&list[i]), &list[i]}
	}
	if q.Sort != Oldest {
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	return all
}

// key is what a list is sorted by, ascending.
func (q *Trials) key(s *trial.Summary) string {
	score, last := 0, 1000 // of trials without a verdict
	if s.Outcome != nil {
		score, last = s.Outcome.Verdict.Score, 0
	}
	switch q.Sort {
	case Latest:
		return fmt.Sprintf("%020d", 1<<62-s.Last.UnixMilli())
	case Highest:
		return fmt.Sprintf("%04d", 1000-score+last)
	case Lowest:
		return fmt.Sprintf("%04d", score+last)
	case ByAgent:
		return Fold(s.Agent)
	}
	return ""
}

// page fills a page from where the page before ended. has, if it is not nil, says which trials belong there.
func (q *Trials) page(listed *Listed, all []keyed, has func(*trial.Summary) (bool, error)) error {
	begin, err := q.begin(all)
	if err != nil {
		return err
	}
	for i, s := range all[begin:] {
		if has != nil {
			ok, err := has(s.Summary)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
		}
		if listed.Trials = append(listed.Trials, *s.Summary); len(listed.Trials) == cmp.Or(q.Limit, usual) {
			if begin+i+1 < len(all) {
				listed.Next = strconv.Quote(s.key) + s.ID
			}
			break
		}
	}
	return nil
}

// begin returns where a page begins. A cursor has the key and the id of the last trial: where a trial has got another key since, the next
// page begins where it was.
func (q *Trials) begin(all []keyed) (int, error) {
	if q.After == "" {
		return 0, nil
	}
	quoted, err := strconv.QuotedPrefix(q.After)
	key, unquoteErr := strconv.Unquote(quoted)
	id := strings.TrimPrefix(q.After, quoted)
	at := slices.IndexFunc(all, func(s keyed) bool { return s.key == key && s.ID == id })
	if err != nil || unquoteErr != nil || at < 0 && key == "" {
		return 0, &FieldError{"after", "not a cursor of this list"}
	}
	if at >= 0 {
		return at + 1, nil
	}
	if at = slices.IndexFunc(all, func(s keyed) bool { return s.key > key }); at < 0 {
		return len(all), nil
	}
	return at, nil
}

// seated returns the trials in which jurors and models with these in their names sat; nil: the search names none.
func (x *Index) seated(ctx context.Context, q *Trials) (map[string]bool, error) {
	if q.Juror == "" && q.Model == "" {
		return nil, nil
	}
	ids, err := list(ctx, x.db, one[string], "SELECT chain FROM chains WHERE instr(jurors, ?) AND instr(models, ?)", q.Juror, q.Model)
	if err != nil {
		return nil, fmt.Errorf("searching the seats of trials: %w", err)
	}
	seated := map[string]bool{}
	for _, id := range ids {
		seated[id] = true
	}
	return seated, nil
}
