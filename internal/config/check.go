package config

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"jurat/internal/names"
)

const (
	minSeats, maxSeats = 2, 12
	maxDollars         = 1_000_000
	maxAttempts        = 20
	maxTokensOfAnswer  = 1 << 20
	maxText            = 2000 // bytes of a role or a focus
)

func wrong(pointer jsontext.Pointer, format string, args ...any) error {
	return &fieldError{pointer, fmt.Sprintf(format, args...)}
}

// check refuses configurations by which no trial can be held, as far as the file alone shows. The jury checks the
// rest, such as the sum of a rubric.
func (f *File) check() error {
	switch {
	case f.Jurors != "" && f.Jurors != Offline && f.Jurors != LLM:
		return wrong("/jurors", "want %s or %s", Offline, LLM)
	case f.Panel.Care != "" && f.Panel.Care.Check() != nil:
		return wrong("/panel", "want %s, %s or a list of seats", Thorough, Quick)
	case f.Panel.Seats != nil && f.Seats != nil:
		return wrong("/seats", "the panel is a list of seats, too: leave one of them out")
	case f.CostCeiling != nil && !(*f.CostCeiling > 0 && *f.CostCeiling <= maxDollars):
		return wrong("/cost_ceiling", "want US dollars, more than 0 and at most %d", maxDollars)
	}
	err := cmp.Or(checkSeats("/panel", f.Panel.Seats), checkSeats("/seats", f.Seats), f.Judge.check("/judge"), f.Webhook.check("/webhook"))
	for i, p := range f.Prices {
		here := jsontext.Pointer(fmt.Sprintf("/prices/%d", i))
		if err == nil && p.Model == "" {
			return wrong(here, "this price has no model")
		}
		err = cmp.Or(err, checkPrice(here, &Price{p.Input, p.Cached, p.Output}))
	}
	return err
}

// Check returns an error for an unknown word.
func (c Care) Check() error {
	if c != Thorough && c != Quick {
		return fmt.Errorf("%q is neither %s nor %s", string(c), Thorough, Quick)
	}
	return nil
}

func checkSeats(here jsontext.Pointer, seats []Seat) error {
	if seats != nil && (len(seats) < minSeats || len(seats) > maxSeats) {
		return wrong(here, "%d seats: want %d to %d", len(seats), minSeats, maxSeats)
	}
	ids := map[string]bool{}
	for i := range seats {
		here := jsontext.Pointer(fmt.Sprintf("%s/%d", here, i))
		seat := &seats[i]
		if seat.ID == "" {
			return wrong(here, "this seat has no id")
		}
		if ids[seat.ID] {
			return wrong(here+"/id", "%q is the id of an earlier seat, too", seat.ID)
		}
		ids[seat.ID] = true
		if err := seat.check(here); err != nil {
			return err
		}
	}
	return nil
}

func (s *Seat) check(here jsontext.Pointer) error {
	if s == nil {
		return nil
	}
	if s.ID != "" {
		if err := names.Check(s.ID); err != nil {
			return wrong(here+"/id", "%v", err)
		}
	}
	switch {
	case len(s.Role) > maxText:
		return wrong(here+"/role", "longer than %d bytes", maxText)
	case len(s.Focus) > maxText:
		return wrong(here+"/focus", "longer than %d bytes", maxText)
	}
	return cmp.Or(s.Member.check(here), s.Substitute.check(here+"/substitute"))
}

func (m *Member) check(here jsontext.Pointer) error {
	if m == nil {
		return nil
	}
	switch m.Provider {
	case OpenAI, Anthropic, Gemini, Compatible:
		if m.Model == "" {
			return wrong(here, "want the name of a model")
		}
	case Rules:
		return m.checkRules(here)
	case "":
		return wrong(here, "want a provider: %s, %s, %s, %s or %s", OpenAI, Anthropic, Gemini, Compatible, Rules)
	default:
		return wrong(here+"/provider", "want %s, %s, %s, %s or %s", OpenAI, Anthropic, Gemini, Compatible, Rules)
	}
	switch {
	case m.Provider == Compatible && m.BaseURL == "":
		return wrong(here, "the provider compatible needs a base_url")
	case m.Temperature != nil && !(*m.Temperature >= 0 && *m.Temperature <= 2):
		return wrong(here+"/temperature", "want 0 to 2")
	case m.TopP != nil && !(*m.TopP > 0 && *m.TopP <= 1):
		return wrong(here+"/top_p", "want more than 0 and at most 1")
	case m.MaxTokens < 0 || m.MaxTokens > maxTokensOfAnswer:
		return wrong(here+"/max_tokens", "want 1 to %d", maxTokensOfAnswer)
	case m.Attempts < 0 || m.Attempts > maxAttempts:
		return wrong(here+"/attempts", "want 1 to %d", maxAttempts)
	case m.PerMinute < 0 || math.IsInf(60/m.PerMinute, 0) && m.PerMinute != 0:
		return wrong(here+"/requests_per_minute", "want more than 0")
	}
	return cmp.Or(checkURL(here+"/base_url", m.BaseURL, m.Key != nil || m.Provider != Compatible), checkPrice(here+"/price", m.Price), m.Key.check(here+"/key"))
}

// checkRules refuses members of a rules seat that only models use.
func (m *Member) checkRules(here jsontext.Pointer) error {
	if *m != (Member{Provider: Rules}) {
		return wrong(here, "the provider %s takes no model, key, parameters or price", Rules)
	}
	return nil
}

func checkURL(here jsontext.Pointer, text string, withKey bool) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return wrong(here, "want an http or https URL")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return wrong(here, "want a URL without user, password, query or fragment, because records hold it")
	case u.Scheme == "http" && withKey && !loopback(u.Hostname()):
		return wrong(here, "want https: over http the key would cross the network unencrypted")
	}
	return nil
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func checkPrice(here jsontext.Pointer, p *Price) error {
	if p == nil {
		return nil
	}
	for _, value := range []float64{p.Input, p.Cached, p.Output} {
		if !(value >= 0 && value <= maxDollars) {
			return wrong(here, "want US dollars per million tokens")
		}
	}
	return nil
}

var variable = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,99}$`)

func (k *Key) check(here jsontext.Pointer) error {
	switch {
	case k == nil:
		return nil
	case (k.Env == "") == (k.File == ""):
		return wrong(here, "want either env or file")
	case k.Env != "" && !variable.MatchString(k.Env):
		return wrong(here+"/env", "want the name of an environment variable in capitals, and never the key itself")
	case strings.ContainsRune(k.File, 0):
		return wrong(here+"/file", "not a valid file name")
	}
	return nil
}
