package juror

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"jurat/internal/subject"
)

// callKind is what a tool does to the world, as far as its name tells.
type callKind int

const (
	unknownCall callKind = iota
	readCall             // looks something up, thinks, computes
	lightCall            // changes state that costs nobody anything: a note, a draft, a cart, a one-time code
	writeCall            // consequential
	handover             // gives the conversation to a person
	shellCall            // runs what its argument says
)

// A call is a tool call with what its name and result tell.
type call struct {
	*subject.ToolCall
	msg    int // number of the message that makes it
	words  []string
	kind   callKind
	family string // of its verb: see families
	args   []leaf
	result *subject.Message // nil if the log has none
	failed bool

	place            int            // among all calls
	verbs            []string       // stems of the words that are verbs of a family
	lowName, lowArgs string         // in lower case
	object           map[string]any // the arguments, where they are an object
}

func newCall(c *subject.Case, m *subject.Message, tc *subject.ToolCall) *call {
	k := &call{ToolCall: tc, msg: m.Number, words: nameWords(tc.Name), result: c.Message(tc.Result)}
	k.kind, k.family = classify(k.words)
	arguments := decode(tc.Arguments)
	k.args = leaves("", arguments)
	k.object, _ = arguments.(map[string]any)
	k.lowName, k.lowArgs = strings.ToLower(tc.Name), strings.ToLower(tc.Arguments)
	for _, word := range k.words {
		if familyOf[word] != "" {
			k.verbs = append(k.verbs, stem(word))
		}
	}
	k.failed = k.result != nil && failedResult(k.result.Text)
	return k
}

// done reports whether the call was answered by something that is not an error.
func (k *call) done() bool { return k.result != nil && !k.failed }

// has reports whether a word stands in the call's name or arguments.
func (k *call) has(word string) bool {
	word = strings.ToLower(word)
	return strings.Contains(k.lowName, word) || strings.Contains(k.lowArgs, word)
}

// hasAll reports whether some words stand there, all of them.
func (k *call) hasAll(words []string) bool {
	return len(words) > 0 && !slices.ContainsFunc(words, func(word string) bool { return !k.has(word) })
}

// quoted is what a finding about the call quotes: its arguments, or its name if it has none.
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
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, strings.ToLower(string(word)))
			word = nil
		}
	}
	lower := false
	for _, c := range name {
		switch {
		case !unicode.IsLetter(c) && !unicode.IsDigit(c):
			flush()
		case unicode.IsUpper(c) && lower:
			flush()
			word = append(word, c)
		default:
			word = append(word, c)
		}
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
	}
	flush()
	return words
}

// families group verbs that do the same kind of thing.
var families = map[string][]string{
	"change": {"update", "modify", "change", "edit", "set", "adjust", "correct", "replace", "rename", "move", "reschedule",
		"upgrade", "downgrade", "switch", "patch", "alter", "reassign", "amend", "fix", "rebook"},
	"cancel": {"cancel", "void", "terminate", "revoke", "abort", "unsubscribe", "close", "deactivate", "suspend", "disable", "block", "freeze", "lock", "stop"},
	"delete": {"delete", "remove", "drop", "erase", "wipe", "purge", "clear", "destroy", "unlink"},
	"create": {"book", "reserve", "create", "add", "make", "place", "order", "purchase", "buy", "checkout", "schedule",
		"register", "enroll", "insert", "submit", "apply", "open", "subscribe", "file", "request", "confirm"},
	"send":   {"send", "email", "notify", "post", "publish", "message", "share", "forward", "reply", "upload", "invite", "tweet"},
	"pay":    {"pay", "transfer", "wire", "charge", "refund", "withdraw", "deposit", "issue", "redeem", "credit", "reimburse", "donate", "compensate"},
	"return": {"return", "exchange"},
	"enable": {"enable", "activate", "approve", "grant", "unlock", "unblock", "reset", "resume", "assign", "resend", "restore", "refuel", "toggle", "turn"},
	"care":   {"prescribe", "administer", "refill", "renew", "dispense"},
	"deploy": {"deploy", "merge", "push", "commit", "install", "restart", "reboot", "rollback"},
}

var familyOf = func() map[string]string {
	of := map[string]string{}
	for family, verbs := range families {
		for _, verb := range verbs {
			of[verb] = family
		}
	}
	return of
}()

var (
	readVerbs = wordSet(`get search list find lookup look fetch read view show check calculate calc think query describe retrieve
		verify validate authenticate estimate quote browse navigate scroll screenshot count compare analyze analyse summarize
		translate preview track test inspect examine identify compute convert locate goto visit click select ask is has
		can grep cat ls glob wait plan reason diagnose monitor evaluate classify login screenshot hover press type fill`)
	shellTools = wordSet(`bash shell terminal execute exec run python eval sql command ssh powershell console`)
	readNouns  = wordSet(`status lookup details info information history eligibility availability quote policy policies options`)
	lightNouns = wordSet(`note notes draft drafts cart todo todos memory log logs scratchpad context thought otp code
		verification ticket case escalation reminder session search file files preferences feedback survey`)
	// A ticket may be a note to colleagues or a seat in a theatre: the verb tells.
	heavyVerbs = wordSet(`book cancel buy purchase order reserve refund pay transfer charge return exchange delete`)
	people     = wordSet(`human humans agent agents person operator representative support supervisor specialist staff clinician nurse live advisor team department desk queue`)
	handVerb   = wordSet(`transfer hand handoff handover escalate connect forward route refer`)
)

func wordSet(text string) map[string]bool {
	set := map[string]bool{}
	for _, word := range strings.Fields(text) {
		set[word] = true
	}
	return set
}

// classify reads a tool's name. The first word that is a verb decides, unless a later noun shows that the "verb" was
// one too (order_status), or that nothing of consequence happens (create_draft).
func classify(words []string) (callKind, string) {
	any := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	if any(handVerb) && (any(people) || len(words) == 1 && words[0] != "transfer" && words[0] != "forward") {
		return handover, ""
	}
	for _, word := range words {
		switch {
		case readVerbs[word]:
			return readCall, ""
		case familyOf[word] == "":
			continue
		}
		if last := words[len(words)-1]; readNouns[last] && familyOf[word] != "change" {
			return readCall, ""
		}
		if any(lightNouns) && !heavyVerbs[word] {
			return lightCall, familyOf[word]
		}
		return writeCall, familyOf[word]
	}
	switch {
	case any(shellTools):
		return shellCall, ""
	case any(readNouns):
		return readCall, ""
	}
	return unknownCall, ""
}

var (
	errorText  = regexp.MustCompile(`(?i)^\W*(error\b|err:|exception|traceback|failed\b|failure|fatal|http (4|5)\d\d|(4|5)\d\d (bad|unauthorized|forbidden|not found|internal|service|gateway|conflict|too many)|permission denied|access denied|timed? ?out|request (failed|timed out)|unable to|could not|cannot )`)
	notFound   = regexp.MustCompile(`(?i)\b(not found|does not exist|no such|timed out|permission denied|is invalid)\b`)
	badStatus  = wordSet(`error failed failure denied declined rejected timeout timed_out unauthorized forbidden unavailable invalid not_found aborted`)
	serverCode = regexp.MustCompile(`^[45]\d\d$`)
)

// failedResult tells an error from an answer, by the shapes in which tools report errors.
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
		if object[name] == false || r.text(name) == "false" {
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
		// A record's own status ("payment declined" of an old order) is not the call's: those have an id and much else.
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
