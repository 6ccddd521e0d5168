package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/internal/stats"
)

// TestWeightsBelongToAModel: --check names jurors whose weights do not say on what they were measured, and weights of another model are refused.
func TestWeightsBelongToAModel(t *testing.T) {
	dir := t.TempDir()
	calibrated := func(name, made string) string {
		var votes strings.Builder
		for item := range 12 {
			for _, juror := range []string{"juror-gpt", "juror-claude", "juror-gemini"} {
				fmt.Fprintf(&votes, "{\"item\":\"%d\",\"juror\":%q,\"vote\":\"safe_pass\",\"label\":\"safe_pass\"%s}\n", item, juror, made)
			}
		}
		file := filepath.Join(dir, name+".json")
		ballots := must.Get(stats.Read(strings.NewReader(votes.String())))(t)
		measured := must.Get(stats.Calibrate(ballots))(t)
		doc := must.Get(marshalIndented(measured))(t)
		return write(t, file, string(doc))
	}
	check := func(want int, file string, more ...string) string {
		out, said := ran(t, want, append([]string{"trial", filepath.Join("..", "..", "examples", "pharmacy-refill"), "--check", "--jurors", "offline", "--method", "calibrated", "--calibration", file}, more...)...)
		return out + said
	}
	of := calibrated("of-nothing", "")
	has(t, strings.Join(strings.Fields(check(0, of)), " "), "does not say on which model and template these were measured", "juror-gpt, juror-claude, juror-gemini")
	has(t, check(0, of, "--json"), `"unbound"`, `"juror-claude"`)
	has(t, check(2, calibrated("of-another", `,"model":"gpt-4.1"`)), "juror-gpt", `was measured as model "gpt-4.1"`, "jurat-lab calibrate")
}
