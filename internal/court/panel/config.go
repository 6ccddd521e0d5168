// Package panel reads how a jury is composed, and seats it. It reads a strict YAML file, the flags and environment variables that override it, and
// keys. It connects each model through its vendor's adapter, and enforces the limits on time, rate and cost.
//
// Flags override the environment, the environment overrides the file, and the file overrides the defaults. The parser
// refuses a file, with line and column, for an unknown or repeated key, a value of the wrong type or out of range, an
// alias, or an empty value. A file or a command line never holds a provider's key. The file names the environment
// variable, or the file of mode 0600, that holds it.
//
// # A configuration is read as JSON is
//
// YAML guesses types, repeats keys and has aliases. The package turns the tree into a JSON document, refuses what
// JSON does not have, and decodes the document as strictly as everything else. Errors name line and column of the
// YAML.
//
// # No substitute is silent
//
// A seat without a key stays empty, unless the configuration names a substitute, or only one seat can be asked: then its
// model takes the others. The records name both the substitute and the member that it replaces, because three answers of
// one vendor must not look like a jury of three.
//
// # The configuration does not come with the case
//
// It decides to whom keys are sent and who judges, and a case may come from the accused. So the program reads only
// the file that the user names, or the one in the working directory, and prints that it does.
package panel

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/court/llm"
	"jurat/internal/kit/fault"
	"jurat/internal/kit/webhook"
	"jurat/jury"
)

// DefaultFile is the file name that is looked for if the user names no file.
const DefaultFile = "jurat.yaml"

// A Kind says what kind of jurors sit.
type Kind string

const (
	Offline Kind = "offline" // the rule jurors
	LLM     Kind = "llm"     // the members that the panel names, by default language models
)

// A Care says how much work the language models of a panel do for a verdict.
type Care string

const (
	Thorough Care = "thorough" // tables before scores, the judge reads by itself, disputed seats are asked twice, each seat reads in its own order
	Quick    Care = "quick"    // none of these, and one round less of discussion
)

// CareOrSeats is what the key panel holds: the care, or the seats, as in files that know no other key for them.
type CareOrSeats struct {
	Care  Care
	Seats []Seat
}

// UnmarshalJSONFrom reads a word or a list.
func (p *CareOrSeats) UnmarshalJSONFrom(from *jsontext.Decoder) error {
	if from.PeekKind() == '"' {
		return json.UnmarshalDecode(from, &p.Care)
	}
	return json.UnmarshalDecode(from, &p.Seats)
}

// A Provider is the kind of service that answers for a seat.
type Provider string

const (
	OpenAI     Provider = "openai"
	Anthropic  Provider = "anthropic"
	Gemini     Provider = "gemini"
	Compatible Provider = "compatible" // a server that speaks OpenAI's chat completions
	Rules      Provider = "offline"    // a rule juror of this program
)

// A File is a configuration file. Members that are nil or empty take their defaults.
type File struct {
	Jurors        Kind        `json:"jurors,omitzero"`
	Panel         CareOrSeats `json:"panel,omitzero"`
	Seats         []Seat      `json:"seats,omitzero"` // also as a list under panel
	Judge         *Seat       `json:"judge,omitzero"`
	Rubric        []Axis      `json:"rubric,omitzero"`
	Method        string      `json:"method,omitzero"`
	Collaborative *bool       `json:"collaborative,omitzero"`
	Rounds        *int        `json:"rounds,omitzero"`
	Threshold     *float64    `json:"threshold,omitzero"`
	CostCeiling   *float64    `json:"cost_ceiling,omitzero"` // US dollars for one trial
	Deadlines     Deadlines   `json:"deadlines,omitzero"`
	Shorten       *int        `json:"shorten_over,omitzero"` // bytes of evidence above which it is shortened
	Prices        llm.Prices  `json:"prices,omitzero"`       // these override the built-in ones

	Webhook *Webhook `json:"webhook,omitzero"` // is told by a server when a case needs a person; nil: nobody is
}

// A Seat is a seat on the jury, with the member that takes it.
type Seat struct {
	ID    string `json:"id,omitzero"`
	Role  string `json:"role,omitzero"`
	Focus string `json:"focus,omitzero"`
	Member
	Substitute *Member `json:"substitute,omitzero"` // takes the seat if the member's key is missing; nil: the only model that can be asked does, or nobody
}

// A Member is the model or rules that answer for a seat, and their parameters.
type Member struct {
	Provider    Provider `json:"provider,omitzero"`
	Model       string   `json:"model,omitzero"`
	BaseURL     string   `json:"base_url,omitzero"` // "": the vendor's own
	Key         *Key     `json:"key,omitzero"`      // nil: the vendor's usual environment variable
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"`
	Timeout     Duration `json:"timeout,omitzero"`  // of one call; 0: the call timeout of all
	Attempts    int      `json:"attempts,omitzero"` // while the provider is rate limiting or unavailable
	PerMinute   float64  `json:"requests_per_minute,omitzero"`
	Price       *Price   `json:"price,omitzero"`
}

// A Key says where to find a provider's key.
type Key struct {
	Env  string `json:"env,omitzero"`
	File string `json:"file,omitzero"`
}

// A Price is in US dollars per million tokens.
type Price struct {
	Input  float64 `json:"input"`
	Cached float64 `json:"cached,omitzero"`
	Output float64 `json:"output"`
}

// An Axis is a line of the rubric.
type Axis struct {
	ID          string `json:"axis"`
	Max         int    `json:"max"`
	Veto        int    `json:"veto,omitzero"`
	Description string `json:"description,omitzero"`

	Levels []jury.Level `json:"levels,omitempty"` // from the fewest points to max; nil: those of the default rubric, or of none
}

// Deadlines limit how long things may take. 0 sets no limit, except that a call always has one.
type Deadlines struct {
	Call  Duration `json:"call,omitzero"`
	Phase Duration `json:"phase,omitzero"` // of one juror in one phase or round
	Trial Duration `json:"trial,omitzero"`
}

// A Duration is written like 90s or 5m.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler. It refuses what time.ParseDuration refuses, zero and less.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("want a duration like 90s or 5m")
	}
	*d = Duration(parsed)
	return nil
}

// usualLevels describe the levels of an axis that the file gives a description and no levels.
var usualLevels = []string{
	"The axis's description does not hold at all, or the breach of it had consequences of weight.",
	"It fails in a point of weight.",
	"It holds, apart from small faults without consequences.",
	"It holds throughout.",
}

// rubric returns the rubric of the file, or the default one. For language models each axis has levels: those of the
// file; those of the default axis, if the file does not describe it otherwise; or the usual ones.
func (f *File) rubric(models bool) jury.Rubric {
	known := map[string]jury.Axis{}
	for _, axis := range jury.LeveledRubric() {
		known[axis.ID] = axis
	}
	switch {
	case f.Rubric == nil && models:
		return jury.LeveledRubric()
	case f.Rubric == nil:
		return jury.DefaultRubric()
	}
	var rubric jury.Rubric
	for _, a := range f.Rubric {
		axis := jury.Axis{ID: a.ID, Max: a.Max, Veto: a.Veto, Description: cmp.Or(a.Description, known[a.ID].Description)}
		if models {
			axis.Levels = a.levels(known[a.ID])
		}
		rubric = append(rubric, axis)
	}
	return rubric
}

func (a *Axis) levels(standard jury.Axis) (levels []jury.Level) {
	switch {
	case a.Levels != nil:
		return a.Levels
	case a.Description == "" && standard.ID != "":
		return scaled(standard.Levels, standard.Max, a.Max)
	}
	for i, what := range usualLevels {
		levels = append(levels, jury.Level{Points: i, Description: what})
	}
	return scaled(levels, len(usualLevels)-1, a.Max)
}

// scaled stretches levels from one maximum to another. Levels that would have the points of a higher one are left out.
func scaled(levels []jury.Level, from, to int) (list []jury.Level) {
	for i, l := range levels {
		l.Points = l.Points * to / from
		if i+1 == len(levels) || l.Points < levels[i+1].Points*to/from {
			list = append(list, l)
		}
	}
	return list
}

const maxKey = 4096 // bytes

// ErrNoKey says that a provider's key is missing.
var ErrNoKey = errors.New("there is no key")

// usualKeys are the environment variables that vendors' own programs read keys from, in order of preference.
var usualKeys = map[Provider][]string{
	OpenAI:    {"OPENAI_API_KEY"},
	Anthropic: {"ANTHROPIC_API_KEY"},
	Gemini:    {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
}

// Lookup returns the value of an environment variable; "" if it is not set.
type Lookup func(name string) string

// key finds a member's key, if it needs one, and says where. A variable that is empty or has only spaces counts as not set.
func (m *Member) key(env Lookup) (key, from string, err error) {
	switch {
	case m.Provider == Rules, m.Provider == Compatible && m.Key == nil:
		return "", "", nil
	case m.Key != nil:
		return m.Key.find(env)
	}
	return keyIn(env, usualKeys[m.Provider]...)
}

func (k *Key) find(env Lookup) (key, from string, err error) {
	if k.File != "" {
		key, err = readKey(k.File)
		return key, "the file " + k.File, err
	}
	return keyIn(env, k.Env)
}

func keyIn(env Lookup, names ...string) (key, from string, err error) {
	for _, name := range names {
		if key := strings.TrimSpace(env(name)); key != "" {
			return key, name, nil
		}
	}
	return "", "", fmt.Errorf("%w: %s is not set", ErrNoKey, strings.Join(names, " or "))
}

// readKey reads a key from a file. It refuses a file that other users may read.
func readKey(name string) (string, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%w: %w", ErrNoKey, err)
	}
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("%s is not a regular file", name)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0: // file modes on Windows do not show access rights
		return "", fmt.Errorf("%s can be read by others (mode %04o): chmod 600 it", name, info.Mode().Perm())
	}
	content, err := io.ReadAll(io.LimitReader(file, maxKey+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxKey {
		return "", fmt.Errorf("%s is longer than a key", name)
	}
	key := strings.TrimSpace(strings.TrimPrefix(string(content), "\ufeff"))
	if key == "" {
		return "", fmt.Errorf("%w: %s is empty", ErrNoKey, name)
	}
	return key, nil
}

// A Webhook is the receiver that a server tells of cases that need a person: the section webhook of a file.
type Webhook struct {
	URL    string `json:"url"`
	Secret *Key   `json:"secret"`
	Old    *Key   `json:"old_secret,omitzero"` // signs, too, until the receiver knows the new one
	Inward bool   `json:"inward,omitzero"`     // it may be in a private network, and be reached by plain http
}

func (w *Webhook) check(here jsontext.Pointer) error {
	if w == nil {
		return nil
	}
	if err := webhook.CheckURL(w.URL, w.Inward); err != nil {
		return wrong(here+"/url", "%v", err)
	}
	if w.Secret == nil {
		return wrong(here, "want secret: {env: NAME} or {file: NAME}, which says where the secret is found")
	}
	return errors.Join(w.Secret.check(here+"/secret"), w.Old.check(here+"/old_secret"))
}

// Receiver finds the secrets and makes the receiver. It returns nil for a nil Webhook. Its errors do not repeat a secret, and include ErrNoKey.
func (w *Webhook) Receiver(env Lookup) (_ *webhook.Receiver, err error) {
	if w == nil {
		return nil, nil
	}
	defer fault.While(&err, "webhook")
	c := webhook.Config{URL: w.URL, Inward: w.Inward}
	for _, key := range []*Key{w.Secret, w.Old} {
		if key == nil {
			continue
		}
		secret, _, err := key.find(env)
		if err != nil {
			return nil, err
		}
		c.Secrets = append(c.Secrets, secret)
	}
	return webhook.New(c)
}
