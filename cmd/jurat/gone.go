package main

// gone are commands and flags that earlier programs had, and what to use instead.
var gone = map[string]string{
	"bench":               "measurements are Go benchmarks now: 'scripts/test bench' in the source prints a table of them",
	"export --dsse":       "'jurat export --scitt' writes statements that are signed",
	"reputation --export": "'jurat reputation --json' prints all that is known, and 'jurat log case' the records behind it",
}
