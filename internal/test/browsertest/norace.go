//go:build !race

package browsertest

import "testing"

func skipUnderRace(testing.TB) {}
