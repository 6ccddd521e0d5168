package main

// gone is what earlier programs had, and what to use instead.
var gone = map[string]string{
	"--dsse":   "'jurat export --scitt' writes statements that are signed",
	"--export": "'jurat reputation --json' prints all that is known, and 'jurat log case' the records behind it",
}
