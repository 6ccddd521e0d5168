package timestamp

import (
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"
)

// namedAlike makes CA certificates that all have the same subject and issuer name, and signatures by keys that no
// verifier knows.
func namedAlike(t testing.TB, root *x509.Certificate, tag string, n int) (list []*x509.Certificate) {
	t.Helper()
	for i := range n {
		template := &x509.Certificate{SerialNumber: big.NewInt(int64(i + 1)), RawSubject: root.RawSubject, NotBefore: testNotBefore,
			NotAfter: testNotAfter, BasicConstraintsValid: true, IsCA: true}
		key := testKey(fmt.Sprint(tag, i))
		list = append(list, issueTest(t, template, key.Public(), &x509.Certificate{RawSubject: root.RawSubject}, key))
	}
	return list
}

// TestSteps checks the number of steps that a search may take by the names in it. Find tries the certificates only if
// that number is small enough.
func TestSteps(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	elsewhere, _ := authorityCA(t, "elsewhere", nil, nil)
	c := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	many := namedAlike(t, root, "alike", 4)
	for _, tt := range []struct {
		name    string
		between []*x509.Certificate
		roots   []*x509.Certificate
		steps   int
		want    error
	}{
		{"the root alone", nil, []*x509.Certificate{root}, 1, nil},
		{"the root between, too, and twice", []*x509.Certificate{root, root, c}, []*x509.Certificate{root}, 1, nil},
		{"one more of its name", many[:1], []*x509.Certificate{root}, 3, nil},
		{"the same twice", append(many[:1:1], many[0]), []*x509.Certificate{root}, 3, nil},
		{"three more", many[:3], []*x509.Certificate{root}, 31, nil},
		{"four more", many, []*x509.Certificate{root}, maxOfRecord + 1, ErrEffort},
		{"names that lead nowhere", many, []*x509.Certificate{elsewhere}, 0, x509.UnknownAuthorityError{}},
		{"no root", many, nil, 0, x509.UnknownAuthorityError{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			q := Search{From: c, Between: tt.between, Roots: tt.roots, At: testTime, Usage: x509.ExtKeyUsageTimeStamping}
			share := NewShare()
			paths, err := share.Find(q)
			var unknown x509.UnknownAuthorityError
			switch {
			case tt.want == nil && (err != nil || len(paths) != 1):
				t.Errorf("%d paths, %v", len(paths), err)
			case tt.want == ErrEffort && !errors.Is(err, ErrEffort):
				t.Error(err)
			case errors.As(tt.want, &unknown) && !errors.As(err, &unknown):
				t.Error(err)
			}
			if tt.want == nil && share.spent != tt.steps {
				t.Errorf("%d steps, want %d", share.spent, tt.steps)
			}
			q.Between = q.candidates()
			if got := q.count(); tt.want == ErrEffort && got < tt.steps {
				t.Errorf("%d steps, want %d", got, tt.steps)
			}
			if tt.steps == 0 && share.spent > 0 {
				t.Errorf("%d steps although the names rule out every path", share.spent)
			}
		})
	}
}

// A request is a search with a number, and the steps that it takes.
type request struct{ key, steps int }

// run makes the searches of a record, and returns for each whether it has an answer.
func run(s *Share, requests []request) (answers string) {
	for _, r := range requests {
		a := s.once([32]byte{byte(r.key), byte(r.key >> 8)}, r.steps, nil, func() answer { return answer{} })
		answers += fmt.Sprint(a.err == nil, " ")
	}
	return answers
}

// TestBudget checks the limit for one record, which pays for a search once, and the limit for all records.
func TestBudget(t *testing.T) {
	b := NewBudget()
	next := func(want string, requests ...request) {
		t.Helper()
		s := b.Share()
		if got := run(s, requests); got != want || !b.Settle(s) {
			t.Errorf("%v: %s, want %s", requests, got, want)
		}
	}
	next("true true false true true ", request{1, 100}, request{2, 20}, request{3, 9}, request{4, 8}, request{1, 100})
	next("true false true ", request{1, 100}, request{3, 29}, request{3, 28})
	for b.left >= 96 {
		next("true ", request{1, maxOfRecord})
	}
	left := b.left + addedByEach
	next("false true true false ", request{5, left + 1}, request{2, 20}, request{6, left - 20}, request{7, 1})
	next("true false ", request{6, addedByEach}, request{7, 1})
}

// TestBudgetInAnyOrder: records that are examined before their turn get the same answers as in sequence.
func TestBudgetInAnyOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	anew := 0
	for round := range 300 {
		one := &Budget{random.IntN(600)}
		many := &Budget{one.left}
		for i := range 20 {
			var record []request
			for range random.IntN(6) {
				key := random.IntN(40)
				record = append(record, request{key, 1 + key*key%100})
			}
			turn, ahead := one.Share(), NewShare()
			want, got := run(turn, record), run(ahead, record)
			one.Settle(turn)
			if !many.Settle(ahead) {
				anew++
				ahead = many.Share()
				got = run(ahead, record)
				if !many.Settle(ahead) {
					t.Fatal("Settle refused a share that was taken in its turn")
				}
			}
			if got != want || one.left != many.left {
				t.Fatalf("round %d, record %d: %s and %d left, want %s and %d", round, i, got, many.left, want, one.left)
			}
		}
	}
	if anew == 0 {
		t.Error("no record was examined again")
	}
}

// TestHostileCertificates: if a token has more certificates than Verify may try, the error says so, and the token is not
// refuted.
func TestHostileCertificates(t *testing.T) {
	root, rootKey := authorityCA(t, "ca", nil, nil)
	c := issueTest(t, leaf(), testKey("leaf").Public(), root, rootKey)
	for n, want := range map[int]error{3: nil, 4: ErrEffort} {
		f := draftBy(c, testKey("leaf"))
		members := [][]byte{c.Raw}
		for _, other := range namedAlike(t, root, "hostile", n) {
			members = append(members, other.Raw)
		}
		f.certificates = tlv(context0Constructed, members...)
		_, err := verifyToken(f.build(t), Options{Roots: []*x509.Certificate{root}})
		checkError(t, err, want)
	}
}
