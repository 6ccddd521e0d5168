package main

import (
	"os"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"jurat/jurattest"
)

// authority NAME starts an outside time-stamping authority. Its URL is in the variable NAME, its root in NAME.pem.
// authority NAME MOOD makes it answer in that way from now on.
func authority(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: authority NAME [MOOD]")
	}
	running := ts.Value(authoritiesKey{}).(authorities)
	if len(args) == 2 {
		if running[args[0]] == nil {
			ts.Fatalf("no authority %s was started", args[0])
		}
		ts.Check(running[args[0]].Be(jurattest.Mood(args[1])))
		return
	}
	a, err := jurattest.StartTSA()
	ts.Check(err)
	ts.Defer(a.Close)
	running[args[0]] = a
	ts.Setenv(strings.ToUpper(args[0]), a.URL)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".pem"), a.PEM(), 0o644))
}

// authorities are the authorities of one script, by name.
type authorities map[string]*jurattest.TSA

// authoritiesKey is their key in the script's values.
type authoritiesKey struct{}
