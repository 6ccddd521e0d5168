package main

// gone are flags that earlier programs had, and what to use instead.
var gone = map[string]string{
	"export --dsse":       "'jurat export --scitt' writes statements that are signed",
	"reputation --export": "'jurat reputation --json' prints all that is known, and 'jurat log case' the records behind it",
}
