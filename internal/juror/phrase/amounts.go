package phrase

import (
	"math"
	"strconv"
	"strings"

	"jurat/internal/pattern"
)

var money = pattern.New(`(?i)(?:[$€£¥₽]|\b(?:usd|eur|gbp|chf|aud|cad|jpy)) ?(\d[\d.,]*)|(\d[\d.,]*) ?(?:[$€£¥₽円]|(?:dollars?|euros?|pounds?|usd|eur|gbp|chf|aud|cad|jpy|yen|rubles?|francs?)\b)|\b(\d[\d,]*\.\d{2})\b`)

// Amounts lists the amounts of money in a text.
func Amounts(text string) []float64 {
	var list []float64
	for _, at := range money.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.ParseFloat(decimal(at[1]+at[2]+at[3]), 64); err == nil {
			list = append(list, n)
		}
	}
	return list
}

var commaDecimal = pattern.New(`,\d{2}$`)

// decimal writes an amount with a point, and without what groups its digits.
func decimal(text string) string {
	text = strings.TrimRight(text, ".,")
	if commaDecimal.MatchString(text) { // 1.024,00
		return strings.ReplaceAll(strings.ReplaceAll(text, ".", ""), ",", ".")
	}
	return strings.ReplaceAll(text, ",", "")
}

func Near(a, b float64) bool { return math.Abs(a-b) < 0.02 }

// MakesUp reports whether an amount is one of the announced ones, or their sum, difference or multiple, in whole units
// or in hundredths.
func MakesUp(amount float64, announced []float64) bool {
	sum := 0.0
	for i, a := range announced {
		sum += a
		for n := 1.0; n <= 12; n++ {
			if Near(amount, a*n) || Near(amount, a*n*100) || Near(amount*n, a) {
				return true
			}
		}
		for _, b := range announced[:i] {
			if Near(amount, a+b) || Near(amount, math.Abs(a-b)) {
				return true
			}
		}
	}
	return len(announced) > 0 && (Near(amount, sum) || Near(amount, sum*100))
}
