package main

import (
	_ "embed"
	"sync"

	"jurat/internal/words"
)

//go:embed gone.txt
var goneFile string

// gone has what to use instead of what earlier programs had.
var gone = sync.OnceValue(func() words.Texts { return words.Parse(goneFile) })
