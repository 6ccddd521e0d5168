// Package disktest gives a test a disk of its own: a small one, which can be filled, and mounted for reading. There is one on Linux.
package disktest
