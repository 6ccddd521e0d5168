package rules

import (
	"strings"
	"testing"
)

// BenchmarkHostile measures conversations in which every message makes a rule look back. The cost per message must be about the same for
// every length.
func BenchmarkHostile(b *testing.B) {
	for name, part := range map[string]string{
		"claims in the passive": "user: and booking MR-1\ncall: get_booking {\"ref\":\"MR-1\"}\nresult: {\"ref\":\"MR-1\",\"fare\":40,\"status\":\"open\"}\nagent: Booking MR-1 has been upgraded.\n",
		"questions and acts":    "user: When does my permit end?\ncall: renew_permit {\"id\":\"PP-8\"}\nresult: {\"ends\":\"2027\"}\nagent: In 2027.\n",
	} {
		for _, n := range []int{250, 1000, 4000} {
			c := script(b, plainCard, "system: Do not touch a fee without the holder's consent: ask for the consent first.\n"+strings.Repeat(part, n))
			brief := briefOn(c)
			b.Run(name+"/"+strings.Repeat("I", n/250), func(b *testing.B) {
				for b.Loop() {
					if _, err := alone(0).Answer(b.Context(), brief); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/float64(n), "µs/part")
			})
		}
	}
}
