package main

import (
	"reflect"
	"testing"
)

// TestCommandsAreFew: how many commands can be run, and how many flags they have: those that a command has alone, and those that several share,
// each once. More of either is decided, and not found.
func TestCommandsAreFew(t *testing.T) {
	const mostCommands, mostFlags, mostShared = 50, 245, 48
	leaves := model(t).Leaves(false)
	if len(leaves) > mostCommands {
		t.Errorf("%d commands, and at most %d are allowed", len(leaves), mostCommands)
	}
	users := map[reflect.Type]int{} // of each group of flags
	for _, n := range leaves {
		groupsOf(n.Target.Type(), users)
	}
	own, shared := 0, 0
	for in, commands := range users {
		switch n := flagsOf(in); {
		case commands > 1:
			shared += n
		default:
			own += n
		}
	}
	if own > mostFlags || shared > mostShared {
		t.Errorf("%d flags of one command and %d that several share, and at most %d and %d are allowed", own, shared, mostFlags, mostShared)
	}
}

// groupsOf counts a type of flags, and those that are embedded in it, as used once more.
func groupsOf(in reflect.Type, users map[reflect.Type]int) {
	users[in]++
	for f := range in.Fields() {
		if f.Anonymous {
			groupsOf(f.Type, users)
		}
	}
}

// flagsOf counts the flags that a type has itself.
func flagsOf(in reflect.Type) (n int) {
	for f := range in.Fields() {
		if _, argument := f.Tag.Lookup("arg"); !argument && !f.Anonymous && f.IsExported() {
			n++
		}
	}
	return n
}
