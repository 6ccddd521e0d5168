package config

import (
	_ "embed"
	"fmt"

	"jurat/internal/llm"

	"github.com/go-json-experiment/json"
)

// A PriceTable holds models' prices, and where and when they were read.
type PriceTable struct {
	Date   string     `json:"date"`
	Source string     `json:"source"`
	Note   string     `json:"note"`
	Prices llm.Prices `json:"prices"`
}

//go:embed prices.json
var pricesFile []byte

// BuiltInPrices returns the price table of this program. Its prices become outdated; a configuration file can give
// others. It returns an error only if the program's own table is wrong.
func BuiltInPrices() (PriceTable, error) {
	var t PriceTable
	err := json.Unmarshal(pricesFile, &t, json.RejectUnknownMembers(true))
	if err == nil {
		err = t.Prices.Check()
	}
	if err != nil {
		return t, fmt.Errorf("the built-in prices: %w", err)
	}
	return t, nil
}
