package llm

import (
	"errors"
	"sync"
	"testing"
)

func TestPurse(t *testing.T) {
	p := NewPurse(100, 30)
	first, err := p.Reserve(40)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Reserve(31); !errors.Is(err, ErrSpent) {
		t.Errorf("reserving 31 when 30 are left: %v", err)
	}
	second, err := p.Reserve(30)
	if err != nil {
		t.Fatalf("the last 30: %v", err)
	}
	if _, err := p.Reserve(1); !errors.Is(err, ErrSpent) {
		t.Errorf("one more: %v", err)
	}
	first(10)
	first(10) // a second settlement has no effect
	if p.Spent() != 40 {
		t.Errorf("%d spent, want 40", p.Spent())
	}
	if _, err := p.Reserve(31); !errors.Is(err, ErrSpent) {
		t.Errorf("reserving 31 with 40 spent and 30 reserved: %v", err)
	}
	second(80) // more than was reserved
	if _, err := p.Reserve(0); !errors.Is(err, ErrSpent) || p.Spent() != 120 {
		t.Errorf("beyond the ceiling: %v, %d spent", err, p.Spent())
	}
}

// TestPurseOfNegativeNumbers: a negative reservation or settlement does not increase the money.
func TestPurseOfNegativeNumbers(t *testing.T) {
	p := NewPurse(10, 0)
	settle, err := p.Reserve(-50)
	if err != nil {
		t.Fatal(err)
	}
	settle(-50)
	if _, err := p.Reserve(11); !errors.Is(err, ErrSpent) || p.Spent() != 0 {
		t.Errorf("%v, %d spent", err, p.Spent())
	}
}

func TestPurseWithoutCeiling(t *testing.T) {
	p := NewPurse(0, 0)
	settle, err := p.Reserve(1 << 60)
	if err != nil {
		t.Fatal(err)
	}
	settle(7)
	if p.Spent() != 7 {
		t.Errorf("%d spent", p.Spent())
	}
}

// TestPurseOfMany: many concurrent reservations together stay below the ceiling.
func TestPurseOfMany(t *testing.T) {
	p := NewPurse(1000, 0)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 20 {
				if settle, err := p.Reserve(7); err == nil {
					settle(7)
				}
			}
		})
	}
	all.Wait()
	if spent := p.Spent(); spent > 1000 || spent < 994 {
		t.Errorf("%d spent of 1000", spent)
	}
}

// TestPursesWithin: purses within one budget cannot spend more than it together, and what one of them refuses costs the budget nothing.
func TestPursesWithin(t *testing.T) {
	run := NewPurse(100, 0)
	small, large := NewPurse(30, 0).Within(run), NewPurse(0, 0).Within(run)
	if _, err := small.Reserve(31); !errors.Is(err, ErrSpent) || run.Spent() != 0 {
		t.Errorf("%v", err)
	}
	settle, err := small.Reserve(30)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := large.Reserve(71); !errors.Is(err, ErrSpent) {
		t.Errorf("30 of 100 are set aside, and 71 more: %v", err)
	}
	settle(10)
	settle(10)
	if small.Spent() != 10 || run.Spent() != 10 || large.Spent() != 0 {
		t.Errorf("%d, %d, %d", small.Spent(), run.Spent(), large.Spent())
	}
	if settle, err = large.Reserve(90); err != nil {
		t.Fatal(err)
	}
	settle(90)
	if _, err := small.Reserve(1); !errors.Is(err, ErrSpent) {
		t.Errorf("all is spent: %v", err)
	}
	if small.reserved != 0 {
		t.Errorf("%d stay set aside for a call that the budget refused", small.reserved)
	}
	if !large.Limited() || NewPurse(0, 0).Limited() {
		t.Error("which purses can refuse?")
	}
}
