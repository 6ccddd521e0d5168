package main

import (
	"strings"
	"testing"

	"jurat/internal/must"
	"jurat/jurattest"
	"jurat/verify/trust"
)

// TestAuthoritiesOfOneRoot: several authorities have one root: an address that changed, units with policies of their own, a root that the file
// has twice. The trust file names the root once, with the policies of all, the log can be examined, and the tokens of each prove an independent time.
func TestAuthoritiesOfOneRoot(t *testing.T) {
	t.Parallel()
	tsa := must.Get(jurattest.StartTSA())(t)
	t.Cleanup(tsa.Close)
	root, twice := written(t, string(tsa.PEM())), written(t, string(tsa.PEM())+string(tsa.PEM()))
	for _, tt := range []struct {
		name, policies, called string
		adds                   [][]string
	}{
		{"the same authority by another address", "", "old (127.0.0.1:",
			[][]string{{"old", tsa.URL, "--root", root}, {"new", tsa.URL + "/tsr", "--root", root, "--untried"}}},
		{"a root twice in its file", "", "double (127.0.0.1:", [][]string{{"double", tsa.URL, "--root", twice}}},
		{"two policies", "1.2.3.4, 1.2.3.5", "a (127.0.0.1:",
			[][]string{{"a", tsa.URL, "--root", root, "--policy", "1.2.3.4", "--untried"}, {"b", tsa.URL + "/b", "--root", root, "--policy", "1.2.3.5", "--untried"}}},
		{"a policy and any", "", "a (127.0.0.1:",
			[][]string{{"a", tsa.URL, "--root", root, "--policy", "1.2.3.4", "--untried"}, {"b", tsa.URL + "/b", "--root", root, "--untried"}}},
	} {
		data := t.TempDir() + "/data"
		doing(t, 0, "--data", data, "init")
		for _, add := range tt.adds {
			doing(t, 0, append([]string{"--data", data, "tsa"}, add...)...)
		}
		record := written(t, doing(t, 0, "--data", data, "seal", written(t, strings.Replace(action, "AGENT", "mia", 1)), "--tsa", tt.adds[0][0], "--tsa", "built-in"))
		doc := doing(t, 0, "--data", data, "trust")
		file := must.Get(trust.Parse([]byte(doc)))(t)
		if len(file.Authorities) != 2 || strings.Join(file.Authorities[1].Policies, ", ") != tt.policies || !strings.Contains(file.Authorities[1].Name, tt.called) {
			t.Errorf("%s: the trust file has the authorities %+v", tt.name, file.Authorities[1:])
		}
		doing(t, 0, "--data", data, "log", "fsck")
		if tt.policies == "" && !strings.Contains(tt.adds[0][len(tt.adds[0])-1], "untried") {
			doing(t, 0, "verify", "--trust", written(t, doc), "--require", "time=independent", record)
		}
	}
}
