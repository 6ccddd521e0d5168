package llm

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// A Price is the cost of a model's tokens, in US dollars per million tokens, as its vendor publishes it.
type Price struct {
	Model  string  `json:"model"`  // the name, or the beginning of it
	Input  float64 `json:"input"`  // of tokens read
	Cached float64 `json:"cached"` // of tokens read from the cache; 0: as Input
	Output float64 `json:"output"`
}

// Prices is a price table.
type Prices []Price

// Check returns an error for a missing model name and for an impossible price.
func (p Prices) Check() error {
	for i, price := range p {
		if price.Model == "" {
			return fmt.Errorf("prices/%d: model is empty", i)
		}
		for _, value := range []float64{price.Input, price.Cached, price.Output} {
			if !(value >= 0) || math.IsInf(value, 0) {
				return fmt.Errorf("prices/%d: %v is not a price in dollars per million tokens", i, value)
			}
		}
	}
	return nil
}

// Of finds the price of a model: under its full name, or under the longest prefix of it in the table.
func (p Prices) Of(model string) (Price, bool) {
	best, found := Price{}, false
	for _, price := range p {
		if strings.HasPrefix(model, price.Model) && (!found || len(price.Model) > len(best.Model)) {
			best, found = price, true
		}
	}
	return best, found
}

// Cost returns the cost of a call in millionths of a US dollar, rounded up.
func (p Price) Cost(u Usage) int64 {
	cached := p.Cached
	if cached == 0 {
		cached = p.Input
	}
	sum := new(big.Rat)
	for _, part := range []struct {
		tokens int64
		price  float64
	}{{u.Input - u.Cached, p.Input}, {u.Cached, cached}, {u.Output, p.Output}} {
		// The table's decimal, which a float64 usually only approximates.
		price, ok := new(big.Rat).SetString(strconv.FormatFloat(part.price, 'g', -1, 64))
		if !ok {
			continue // not finite: Check refuses such a table
		}
		sum.Add(sum, price.Mul(price, new(big.Rat).SetInt64(part.tokens)))
	}
	up := new(big.Int).Add(sum.Num(), new(big.Int).Sub(sum.Denom(), big.NewInt(1)))
	return up.Div(up, sum.Denom()).Int64()
}
