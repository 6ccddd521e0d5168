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
