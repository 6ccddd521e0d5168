package config

import (
	_ "embed"
	"fmt"
	"slices"
	"time"

	"jurat/internal/llm"
	"jurat/jury"

	"github.com/go-json-experiment/json"
)

// A PriceTable holds what is known of vendors' models, and where and when it was read.
type PriceTable struct {
	Date   string  `json:"date"`
	Source string  `json:"source"`
	Note   string  `json:"note"`
	Models []Model `json:"models"`

	Prices llm.Prices `json:"-"` // of today
}

// A Model is a vendor's model: its price, and when the vendor ends it.
type Model struct {
	llm.Price
	Snapshots []string `json:"snapshots,omitempty"` // what follows the name and a hyphen in the names of snapshots with the same price and end
	From      string   `json:"from,omitzero"`       // the first day of the price
	Until     string   `json:"until,omitzero"`      // the last day of the price
	Ends      string   `json:"ends,omitzero"`       // from this day on, the vendor does not answer, or answers with another model; "": not announced
	Successor string   `json:"successor,omitzero"`  // as the vendor recommends it
}

//go:embed models.json
var modelsFile []byte

// BuiltInPrices returns the table of this program, with the prices of a day. Its prices become outdated; a configuration file can give
// others. It returns an error only if the program's own table is wrong.
func BuiltInPrices(now time.Time) (PriceTable, error) {
	var t PriceTable
	err := json.Unmarshal(modelsFile, &t, json.RejectUnknownMembers(true))
	day := now.UTC().Format(time.DateOnly)
	for _, m := range t.Models {
		if day < m.From || m.Until != "" && day > m.Until {
			continue
		}
		for _, name := range m.names() {
			m.Price.Model = name
			t.Prices = append(t.Prices, m.Price)
		}
	}
	if err == nil {
		err = t.Prices.Check()
	}
	if err != nil {
		return t, fmt.Errorf("the built-in prices: %w", err)
	}
	return t, nil
}

func (m *Model) names() []string {
	names := []string{m.Model}
	for _, s := range m.Snapshots {
		names = append(names, m.Model+"-"+s)
	}
	return names
}

// notice is how long before its end a model is warned of.
const notice = 90 * 24 * time.Hour

// ends returns the row of a model whose end is announced; nil: it is not.
func (t *PriceTable) ends(model string) *Model {
	i := slices.IndexFunc(t.Models, func(m Model) bool { return slices.Contains(m.names(), model) })
	if i < 0 || t.Models[i].Ends == "" {
		return nil
	}
	return &t.Models[i]
}

// hasEnded reports whether the vendor has ended the model on that day.
func (m *Model) hasEnded(now time.Time) bool { return m.Ends <= now.UTC().Format(time.DateOnly) }

// Ending says of a model that its vendor has ended it, or ends it soon, and which one follows; "" if no end is near.
func (t *PriceTable) Ending(model string, now time.Time) string {
	m, when := t.ends(model), "ends"
	if m == nil || !m.hasEnded(now.Add(notice)) {
		return ""
	}
	if m.hasEnded(now) {
		when = "ended"
	}
	return fmt.Sprintf("%s %s on %s; its successor is %s", model, when, m.Ends, m.Successor)
}

// Endings says of the models that would be asked which of them their vendors have ended or end soon, each once.
func (p *Plan) Endings(now time.Time) (list []string) {
	if p.Offline {
		return nil
	}
	for _, c := range p.Chairs() {
		if text := p.Ending(c, now); c.Missing == nil && text != "" && !slices.Contains(list, text) {
			list = append(list, text)
		}
	}
	return list
}

// Ending is PriceTable.Ending of a chair's model.
func (p *Plan) Ending(c *Chair, now time.Time) string {
	if !c.ofVendor() {
		return ""
	}
	return p.PriceTable.Ending(c.Model, now)
}

// Ended says of a chair's model that its vendor has ended it; nil: as far as the table knows, it has not.
func (p *Plan) Ended(c *Chair, now time.Time) *jury.Ended {
	if m := p.PriceTable.ends(c.Model); c.ofVendor() && m != nil && m.hasEnded(now) {
		return &jury.Ended{On: m.Ends, Successor: m.Successor}
	}
	return nil
}

// ofVendor reports whether a vendor runs the chair's model. A compatible server may run any model under a vendor's name, for ever.
func (c *Chair) ofVendor() bool { return c.Provider != Compatible && c.Provider != Rules }
