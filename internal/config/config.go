// Package config reads how a jury is composed: a strict YAML file, flags and environment variables that override it,
// and keys.
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
package config

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/llm"
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

// A Panel is what the key panel holds: the care, or the seats, as in files that know no other key for them.
type Panel struct {
	Care  Care
	Seats []Seat
}

// UnmarshalJSONFrom reads a word or a list.
func (p *Panel) UnmarshalJSONFrom(from *jsontext.Decoder) error {
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
	Jurors        Kind       `json:"jurors,omitzero"`
	Panel         Panel      `json:"panel,omitzero"`
	Seats         []Seat     `json:"seats,omitzero"` // also as a list under panel
	Judge         *Seat      `json:"judge,omitzero"`
	Rubric        []Axis     `json:"rubric,omitzero"`
	Method        string     `json:"method,omitzero"`
	Collaborative *bool      `json:"collaborative,omitzero"`
	Rounds        *int       `json:"rounds,omitzero"`
	Threshold     *float64   `json:"threshold,omitzero"`
	CostCeiling   *float64   `json:"cost_ceiling,omitzero"` // US dollars for one trial
	Deadlines     Deadlines  `json:"deadlines,omitzero"`
	Shorten       *int       `json:"shorten_over,omitzero"` // bytes of evidence above which it is shortened
	Prices        llm.Prices `json:"prices,omitzero"`       // these override the built-in ones

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
