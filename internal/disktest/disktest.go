// Package disktest gives a test a small disk of its own, which the test can fill or make read-only. It works only on
// Linux.
package disktest
