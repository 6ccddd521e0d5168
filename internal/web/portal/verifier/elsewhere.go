//go:build !js || !wasm

package main

import (
	"fmt"
	"os"
)

// main runs on platforms other than a browser. It prints how to get the page.
func main() {
	fmt.Fprintln(os.Stderr, "verifier: this program runs in a browser: 'jurat portal --out verify.html' writes the page that has it, and 'go generate ./internal/web/portal' builds it")
	os.Exit(2)
}
