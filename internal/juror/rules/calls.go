package rules

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"jurat/internal/subject"
)

// callKind is what a tool does, judged by its name.
type callKind int

const (
	otherCall callKind = iota // the name does not tell
	readCall                  // looks something up, thinks, computes
	lightCall                 // changes something without consequences: a note, a draft, a cart, a one-time code
	writeCall                 // consequential
	handover                  // gives the conversation to a person
)

// A call is a tool call, with what its name and result tell.
type call struct {
	*subject.ToolCall
	msg      int      // number of the message that makes it
	words    []string // of its name
	kind     callKind
	verb     string // stem of the verb in its name
	args     []leaf
	object   map[string]any   // the arguments, where they are an object
	result   *subject.Message // nil if the log has none
	failed   bool
	about    *record // what it acts on; nil if unclear
	aboutKey string  // the name of the identifier that shows it
}

func newCall(c *subject.Case, m *subject.Message, tc *subject.ToolCall) *call {
	k := &call{ToolCall: tc, msg: m.Number, words: nameWords(tc.Name), result: c.Message(tc.Result)}
	k.kind, k.verb = classify(k.words)
	arguments := decode(tc.Arguments)
	k.args = leaves("", arguments)
	k.object, _ = arguments.(map[string]any)
	k.failed = k.result != nil && failedResult(k.result.Text)
	return k
}

// done reports whether the call has a result that is not an error.
func (k *call) done() bool { return k.result != nil && !k.failed }

// mayAct reports whether the call may have changed something, failed or not.
func (k *call) mayAct() bool { return k.kind != readCall && k.kind != handover }

// stems are the stems of the words in the call's name.
func (k *call) stems() map[string]bool {
	set := map[string]bool{}
	for _, word := range k.words {
		set[stem(word)] = true
	}
	return set
}

// quoted is the text that a finding about the call quotes: its arguments, or its name if it has none.
func (k *call) quoted() string {
	if strings.TrimSpace(k.Arguments) == "" || k.Arguments == "{}" {
		return k.Name
	}
	return clip(k.Arguments)
}

// nameWords splits get_userDetails-v2 into get, user, details, v2.
func nameWords(name string) []string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) { // server__tool
		name = name[i+2:]
	}
	var spaced strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case isPunctuation(c):
			c = ' '
		case unicode.IsUpper(c) && lower:
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(c)
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
	}
	return strings.Fields(strings.ToLower(spaced.String()))
}

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

var (
	readVerbs = wordSet(`get search list find lookup look fetch read view show check calculate calc compute convert think plan reason
		query describe retrieve verify validate authenticate login estimate quote browse navigate goto visit click select scroll hover
		screenshot count compare analyze analyse examine inspect identify evaluate classify diagnose summarize translate preview track
		monitor test wait locate ask is has can grep cat ls glob draft`)
	actVerbs = wordSet(`update modify change edit set adjust correct replace rename move reschedule upgrade downgrade switch reassign amend
		cancel void terminate revoke abort unsubscribe close deactivate suspend disable block freeze lock stop ban
		delete remove drop erase wipe purge clear destroy
		book reserve create add make place order purchase buy sell rent schedule register enroll insert submit apply open subscribe file
		request confirm extend renew dispatch assign
		send email notify post publish message share forward reply upload invite
		pay transfer wire charge refund withdraw deposit issue redeem credit reimburse donate
		return exchange enable activate approve grant unlock unblock reset resume restore deploy merge push commit install restart`)
	alsoNouns = wordSet(`order return refund transfer charge credit exchange request schedule message file book post register`)
	readNouns = wordSet(`status lookup details info information history eligibility availability options`)
	// A call with one of these nouns has no consequences: create_draft.
	lightNouns = wordSet(`note notes draft drafts cart todo todos memory log logs scratchpad otp code verification case escalation
		reminder session search feedback`)
	people      = wordSet(`human humans agent agents person operator representative support supervisor specialist staff advisor team department desk queue`)
	handVerbs   = wordSet(`transfer hand handoff handover escalate connect forward route refer`)
	handingOver = wordSet(`handoff handover escalate`)
)

// classify reads a tool's name. The first word that is a verb decides.
func classify(words []string) (callKind, string) {
	any := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	if any(handVerbs) && any(people) || len(words) == 1 && handingOver[words[0]] {
		return handover, ""
	}
	for _, word := range words {
		switch {
		case readVerbs[word]:
			return readCall, stem(word)
		case !actVerbs[word]:
			continue
		case alsoNouns[word] && readNouns[words[len(words)-1]]: // order_status
			return readCall, stem(word)
		case any(lightNouns):
			return lightCall, stem(word)
		}
		return writeCall, stem(word)
	}
	if any(readNouns) {
		return readCall, ""
	}
	return otherCall, ""
}

var (
	errorText  = regexp.MustCompile(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d|(4|5)\d\d (bad|unauthorized|forbidden|not found|internal|service|gateway|conflict|too many)|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
	notFound   = regexp.MustCompile(`(?i)\b(not found|does not exist|no such|timed out|permission denied|is invalid)\b`)
	badStatus  = wordSet(`error failed failure denied declined rejected timeout timed_out unauthorized forbidden unavailable invalid not_found aborted`)
	serverCode = regexp.MustCompile(`^[45]\d\d$`)
)

// failedResult recognizes errors by the shapes in which tools report them.
func failedResult(text string) bool {
	text = strings.TrimSpace(text)
	object, ok := decode(text).(map[string]any)
	if !ok {
		return errorText.MatchString(text) || len(text) < 160 && !strings.HasPrefix(text, "[") && notFound.MatchString(text)
	}
	r := record{fields: object}
	for _, name := range []string{"error", "errors", "exception", "errorMessage", "error_message", "error_code"} {
		if v, there := object[name]; there && v != nil && v != false && v != "" && r.text(name) != "0" && r.text(name) != "none" && !emptyList(v) {
			return true
		}
	}
	for _, name := range []string{"success", "ok", "succeeded"} {
		if r.text(name) == "false" {
			return true
		}
	}
	if r.text("isError") == "true" || r.text("is_error") == "true" {
		return true
	}
	if code := r.text("exit_code"); code != "" && code != "0" {
		return true
	}
	for _, name := range []string{"status", "result", "outcome", "state"} {
		// A status inside a record (a payment of last year, declined) is not the call's status. Such records have
		// more members.
		if badStatus[strings.ToLower(r.text(name))] && len(object) <= 6 {
			return true
		}
	}
	return serverCode.MatchString(r.text("status_code")) || serverCode.MatchString(r.text("status")) || serverCode.MatchString(r.text("code"))
}

func emptyList(v any) bool {
	list, ok := v.([]any)
	return ok && len(list) == 0
}
