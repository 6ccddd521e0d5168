package sigma

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// A Relation is a system of linear equations over points, with secret scalars. Make one with [NewRelation], and fill it with its methods.
type Relation struct {
	points    []Point // the first is G
	equations []equation
	scalars   int
}

// An equation says that the sum of the image is the sum of the terms.
type equation struct {
	image []Part
	terms []Term
}

// A Part of an image is a point of the relation, times a public factor.
type Part struct {
	Factor Scalar
	Point  int // as Relation.Point numbers it; 0 is G
}

// A Term is the product of a secret scalar, a public factor and a point of the relation.
type Term struct {
	Scalar int // as Relation.Scalar numbers it
	Factor Scalar
	Point  int // as Relation.Point numbers it; 0 is G
}

// One is the factor that changes nothing.
var One = ScalarOf(1)

// NewRelation returns a relation whose only point is G, number 0.
func NewRelation() *Relation { return &Relation{points: []Point{Generator()}} }

// Point adds a point, and returns its number.
func (r *Relation) Point(p Point) int {
	r.points = append(r.points, p)
	return len(r.points) - 1
}

// Scalar adds a secret scalar, and returns its number.
func (r *Relation) Scalar() int {
	r.scalars++
	return r.scalars - 1
}

// Scalars returns how many secret scalars the relation has.
func (r *Relation) Scalars() int { return r.scalars }

// Equate adds an equation: the sum of the image is the sum of the terms.
func (r *Relation) Equate(image []Part, terms ...Term) {
	r.equations = append(r.equations, equation{image, terms})
}

// maxSize bounds the equations, points, scalars, parts and terms of a relation. The draft allows more; no statement of this program needs them.
const maxSize = 1 << 16

// Check returns an error for a relation that can be no statement, by the draft's section on the validation of instances: without
// equations, parts or terms, with a number that nothing has, with a point or scalar that nothing uses, with the identity as a point or
// as the image of an equation, or with a scalar that has no effect.
func (r *Relation) Check() error {
	if n := len(r.equations); n == 0 || n > maxSize || len(r.points) > maxSize || r.scalars > maxSize {
		return fmt.Errorf("it has %d equations, %d points and %d scalars: want at least one equation, and at most %d of each", n, len(r.points), r.scalars, maxSize)
	}
	for i, p := range r.points {
		if p.IsIdentity() {
			return fmt.Errorf("point %d is the identity", i)
		}
	}
	if !r.points[0].Equal(Generator()) {
		return errors.New("point 0 is not the generator")
	}
	used := newUse(r)
	for i := range r.equations {
		if err := used.equation(&r.equations[i]); err != nil {
			return fmt.Errorf("equation %d: %w", i, err)
		}
	}
	if err := used.all(); err != nil {
		return err
	}
	for i := range r.equations {
		var image combination
		for _, p := range r.equations[i].image {
			image = image.add(p.Point, p.Factor)
		}
		if r.isIdentity(image) {
			return fmt.Errorf("equation %d: its image is the identity", i)
		}
	}
	return nil
}

// A use keeps which points and scalars equations use.
type use struct {
	relation *Relation
	points   []bool
	scalars  []bool // with an effect
}

func newUse(r *Relation) *use {
	return &use{r, make([]bool, len(r.points)), make([]bool, r.scalars)}
}

func (u *use) equation(e *equation) error {
	if n, m := len(e.image), len(e.terms); n == 0 || m == 0 || n > maxSize || m > maxSize {
		return fmt.Errorf("it has %d parts and %d terms: want 1 to %d of each", n, m, maxSize)
	}
	for _, p := range e.image {
		if err := u.point(p.Point); err != nil {
			return err
		}
	}
	effects := map[int]combination{} // of each scalar: the sum of its factors and points
	for _, t := range e.terms {
		if err := u.point(t.Point); err != nil {
			return err
		}
		if t.Scalar < 0 || t.Scalar >= len(u.scalars) {
			return fmt.Errorf("there is no scalar %d", t.Scalar)
		}
		effects[t.Scalar] = effects[t.Scalar].add(t.Point, t.Factor)
	}
	for scalar, effect := range effects {
		u.scalars[scalar] = u.scalars[scalar] || !u.relation.isIdentity(effect)
	}
	return nil
}

func (u *use) point(i int) error {
	if i < 0 || i >= len(u.points) {
		return fmt.Errorf("there is no point %d", i)
	}
	u.points[i] = true
	return nil
}

func (u *use) all() error {
	for i, used := range u.points[1:] {
		if !used {
			return fmt.Errorf("nothing uses point %d", i+1)
		}
	}
	for i, used := range u.scalars {
		if !used {
			return fmt.Errorf("scalar %d has no effect", i)
		}
	}
	return nil
}

// A combination is a sum of points of a relation, each once, times a factor.
type combination []Part

// add adds a point, times a factor. In proofs, of one point there are many terms and of most few.
func (c combination) add(point int, factor Scalar) combination {
	for i := range c {
		if c[i].Point == point {
			c[i].Factor = c[i].Factor.Add(factor)
			return c
		}
	}
	return append(c, Part{Factor: factor, Point: point})
}

// isIdentity reports whether a combination comes to the identity.
func (r *Relation) isIdentity(c combination) bool {
	c = slices.DeleteFunc(c, func(p Part) bool { return p.Factor.IsZero() })
	if len(c) < 2 {
		return len(c) == 0 // the order is a prime, so no multiple of a point is the identity
	}
	return r.total(c).IsIdentity()
}

// total returns what a combination of public points and factors comes to.
func (r *Relation) total(c combination) Point {
	sum := identity()
	for _, p := range c {
		switch {
		case p.Factor == One:
			sum = sum.Add(r.points[p.Point])
		case p.Point == 0:
			sum = sum.Add(MulGenerator(p.Factor))
		default:
			sum = sum.Add(r.points[p.Point].Mul(p.Factor))
		}
	}
	return sum
}

// image returns the sum of an equation's image.
func (r *Relation) image(e *equation) Point { return r.total(e.image) }

// commitment returns the sum of an equation's terms with these responses, less the challenge times its image: that is what the prover committed
// to. All of it is public. It multiplies each point once.
func (r *Relation) commitment(e *equation, responses []Scalar, challenge Scalar) Point {
	var c combination
	for _, t := range e.terms {
		c = c.add(t.Point, times(responses[t.Scalar], t.Factor))
	}
	minus := challenge.Negate()
	for _, p := range e.image {
		c = c.add(p.Point, times(minus, p.Factor))
	}
	return r.total(c)
}

func times(s, factor Scalar) Scalar {
	if factor == One {
		return s
	}
	return s.Mul(factor)
}

// sum returns what an equation's terms come to with these scalars, in constant time.
func (r *Relation) sum(e *equation, scalars []Scalar) Point {
	sum := identity()
	for _, t := range e.terms {
		s := times(scalars[t.Scalar], t.Factor)
		if t.Point == 0 {
			sum = sum.Add(MulGenerator(s))
		} else {
			sum = sum.Add(r.points[t.Point].Mul(s))
		}
	}
	return sum
}

// Bytes writes the relation as the draft serialises instances: it is what the challenge is made from.
func (r *Relation) Bytes() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(r.equations)))
	for _, e := range r.equations {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.image)))
		for _, p := range e.image {
			b = binary.LittleEndian.AppendUint32(b, uint32(p.Point))
			b = append(b, p.Factor[:]...)
		}
		b = binary.LittleEndian.AppendUint32(b, uint32(len(e.terms)))
		for _, t := range e.terms {
			b = binary.LittleEndian.AppendUint32(b, uint32(t.Scalar))
			b = binary.LittleEndian.AppendUint32(b, uint32(t.Point))
			b = append(b, t.Factor[:]...)
		}
	}
	for _, p := range r.points[1:] {
		b = append(b, p.Bytes()...)
	}
	return b
}
