package assurance

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Need is what a reader demands of the basis of a proof. The zero Need is the level Operator: what counts by default.
type Need struct {
	Level Level `json:"level,omitzero"`
	Keys  Keys  `json:"keys,omitzero"`
	Time  Clock `json:"time,omitzero"`
	Log   Log   `json:"log,omitzero"`
}

// OfClock reports whether the operator's clock is not enough. Then it answers nothing else either.
func (n Need) OfClock() bool {
	return n.Level == Independent || n.Level == IndependentQualified || n.Time.atLeast(IndependentClock)
}

// Unmet returns the parts of a basis that fall short of the need. logOnly: it is of a checkpoint, which has no keys and times.
func (n Need) Unmet(b *Basis, logOnly bool) []Part {
	if n.check() != nil { // words that are none are met by nothing
		return []Part{PartKeys, PartTime, PartLog}
	}
	var unmet []Part
	independent := n.Level == Independent || n.Level == IndependentQualified
	if !logOnly && (!b.Keys.atLeast(n.Keys) || independent && !b.Keys.atLeast(ByCA)) {
		unmet = append(unmet, PartKeys)
	}
	if short := !b.Time.atLeast(n.Time) || independent && !b.Time.atLeast(IndependentClock) || n.Level == IndependentQualified && b.Time != QualifiedClock; !logOnly && short {
		unmet = append(unmet, PartTime)
	}
	if !b.Log.atLeast(n.Log) || independent && !b.Log.seen() {
		unmet = append(unmet, PartLog)
	}
	return unmet
}

// With returns a need that demands what either does. An error names what they contradict each other about: a level is one.
func (n Need) With(o Need) (Need, error) {
	if n.Level != "" && o.Level != "" && n.Level != o.Level {
		return n, fmt.Errorf("two levels, %s and %s: name the one that you need", n.Level, o.Level)
	}
	if o.Level != "" {
		n.Level = o.Level
	}
	if o.Keys.rank() > n.Keys.rank() {
		n.Keys = o.Keys
	}
	if o.Time.rank() > n.Time.rank() {
		n.Time = o.Time
	}
	if !n.Log.atLeast(o.Log) {
		if n.Log.seen() {
			o.Log = Both
		}
		n.Log = o.Log
	}
	return n, nil
}

// IsNeed reports whether a text is a level, or a demand on a part of the basis such as time=independent.
func IsNeed(text string) bool {
	part, _, is := strings.Cut(text, "=")
	return slices.Contains(Levels(), Level(text)) || is && slices.Contains([]Part{PartKeys, PartTime, PartLog}, Part(part))
}

// ParseNeed reads a level, or a demand on a part of the basis. Its error names the part, and the words that it can have.
func ParseNeed(text string) (Need, error) {
	part, value, is := strings.Cut(text, "=")
	if !is {
		n := Need{Level: Level(text)}
		return n, n.check()
	}
	var n Need
	switch Part(part) {
	case PartKeys:
		n.Keys = Keys(value)
	case PartTime:
		n.Time = Clock(value)
	case PartLog:
		n.Log = Log(value)
	default:
		return n, fmt.Errorf("%q: want a level (%v), or keys=…, time=… or log=…", text, Levels())
	}
	if value == "" {
		return n, fmt.Errorf("%s is empty", part)
	}
	return n, n.check()
}

// check refuses words that are none.
func (n Need) check() error {
	return cmp.Or(oneOf("level", n.Level, Levels()...), oneOf("keys", n.Keys, ByOperator, ByCA, ByOwner),
		oneOf("time", n.Time, OperatorClock, IndependentClock, QualifiedClock), oneOf("log", n.Log, Alone, Compared, Witness, Both))
}

// oneOf refuses a value that is neither empty nor in the list.
func oneOf[T ~string](name string, value T, list ...T) error {
	if value == "" || slices.Contains(list, value) {
		return nil
	}
	return fmt.Errorf("%s is %q: want one of %v", name, value, list)
}
