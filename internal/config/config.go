// Package config reads how a jury is to sit: a strict YAML file, what flags and environment say instead of it, and keys.
//
// A flag counts more than the environment, the environment more than the file, the file more than the defaults. A file is
// refused, with line and column, for an unknown or repeated key, a value of another type or out of range, an alias, or an empty
// value. No key of a provider stands in a file or on a command line: the file says in which environment variable, or in which
// file of mode 0600, it is found.
//
// # A configuration is read as JSON is
//
// YAML guesses types, repeats keys and has aliases. The tree is turned into a JSON document, with what JSON has not refused, and
// that is decoded as strictly as everything else here; an error names line and column of the YAML.
//
// # Nobody takes a seat silently
//
// A seat whose key is missing stays empty, unless the configuration says who sits there instead; then the records say who that is,
// and in place of whom. Three answers of one vendor would look like a jury of three.
//
// # The configuration does not come with the case
//
// It says to whom keys are sent and who judges, and a case may come from the accused. So it is the one that is named, or the one in
// the working directory, which is told of.
package config

import (
	"fmt"
	"time"

	"jurat/internal/llm"
)

// DefaultFile is the name under which a configuration file is looked for.
const DefaultFile = "jurat.yaml"

// A Kind is what sits in the chairs.
type Kind string

const (
	Offline Kind = "offline" // the rule jurors
	LLM     Kind = "llm"     // what the panel says, by default language models
)

// A Provider is who is asked for an answer.
type Provider string

const (
	OpenAI     Provider = "openai"
	Anthropic  Provider = "anthropic"
	Gemini     Provider = "gemini"
	Compatible Provider = "compatible" // a server that speaks OpenAI's chat completions
	Rules      Provider = "offline"    // nobody: a rule juror
)

// A File is a configuration as it is written. What is nil or empty is left open.
type File struct {
	Jurors        Kind       `json:"jurors,omitzero"`
	Panel         []Seat     `json:"panel,omitzero"`
	Judge         *Seat      `json:"judge,omitzero"`
	Rubric        []Axis     `json:"rubric,omitzero"`
	Method        string     `json:"method,omitzero"`
	Collaborative *bool      `json:"collaborative,omitzero"`
	Rounds        *int       `json:"rounds,omitzero"`
	Threshold     *float64   `json:"threshold,omitzero"`
	CostCeiling   *float64   `json:"cost_ceiling,omitzero"` // US dollars for one trial
	Deadlines     Deadlines  `json:"deadlines,omitzero"`
	Shorten       *int       `json:"shorten_over,omitzero"` // bytes of evidence that are too many
	Prices        llm.Prices `json:"prices,omitzero"`       // they come before the built-in ones
}

// A Seat is a chair, and who sits there.
type Seat struct {
	ID    string `json:"id,omitzero"`
	Role  string `json:"role,omitzero"`
	Focus string `json:"focus,omitzero"`
	Member
	Substitute *Member `json:"substitute,omitzero"` // who sits there where the key is missing; nil: nobody, and the seat is absent
}

// A Member is who answers for a seat, and how it is asked.
type Member struct {
	Provider    Provider `json:"provider,omitzero"`
	Model       string   `json:"model,omitzero"`
	BaseURL     string   `json:"base_url,omitzero"` // "": the vendor's own
	Key         *Key     `json:"key,omitzero"`      // nil: the vendor's usual environment variable
	Temperature *float64 `json:"temperature,omitzero"`
	TopP        *float64 `json:"top_p,omitzero"`
	Seed        *int64   `json:"seed,omitzero"`
	MaxTokens   int      `json:"max_tokens,omitzero"`
	Timeout     Duration `json:"timeout,omitzero"`  // of one call; 0: that of all
	Attempts    int      `json:"attempts,omitzero"` // while the provider is rate limiting or unavailable
	PerMinute   float64  `json:"requests_per_minute,omitzero"`
	Price       *Price   `json:"price,omitzero"`
}

// A Key says where a provider's key is found.
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
}

// Deadlines are how long things may take. 0 is no deadline, but that a call always has one.
type Deadlines struct {
	Call  Duration `json:"call,omitzero"`
	Phase Duration `json:"phase,omitzero"` // of one juror in one phase or round
	Trial Duration `json:"trial,omitzero"`
}

// A Duration is written like 90s or 5m.
type Duration time.Duration

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil || parsed <= 0 {
		return fmt.Errorf("want a duration like 90s or 5m")
	}
	*d = Duration(parsed)
	return nil
}
