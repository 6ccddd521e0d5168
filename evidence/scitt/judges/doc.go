// Package judges has other people's libraries judge jurat's statements and receipts, and jurat judge theirs. It is a module of its own, so that jurat does not
// depend on them. scripts/test runs it.
package judges
