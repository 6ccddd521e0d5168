package main

import (
	"os"
	"runtime"
)

const (
	// spareHeap is how much the collector takes the heap for larger than it is. What a server holds for long is some tens of megabytes,
	// and what it makes for a record is thrown away at once: with a heap so small the collector would run a hundred times a second.
	// The pages of it are never touched, and so take no room of their own.
	spareHeap = 96 << 20
	// syncing is how many threads are in the middle of a sync most of the time, and do nothing there: the one that commits, and the one
	// that moves the write-ahead log. Others run in their place.
	syncing = 2
)

// roomy has Go's runtime as it is good for a program that seals for many. What the
// environment says goes before. The function that it returns lets go of it.
func roomy() (done func()) {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + syncing)
	}
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return func() {}
	}
	spare := make([]byte, spareHeap)
	return func() { runtime.KeepAlive(spare) }
}
