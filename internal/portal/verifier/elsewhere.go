//go:build !js || !wasm

package main

import (
	"fmt"
	"os"
)

// main is what is run where this is no program of a browser: it says how to have one.
func main() {
	fmt.Fprintln(os.Stderr, "verifier: this program runs in a browser: 'jurat portal --out verify.html' writes the page that has it, and 'go generate ./internal/portal' builds it")
	os.Exit(2)
}
