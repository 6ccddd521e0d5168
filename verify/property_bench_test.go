package verify_test

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"jurat/evidence"
	"jurat/sigma"
	"jurat/verify"
)

// BenchmarkRanges verifies a bundle of 1,000 records, each with a proof that its hidden amount is within 32 bits, on all cores. The limit is measured after it: the
// operations of the group that these proofs need, and nothing else.
func BenchmarkRanges(b *testing.B) {
	const records = 1000
	p := newPurse(b, slicesOf("12.5", records)...)
	carried := map[int][]evidence.PropertyProof{}
	for i := range records {
		carried[i] = []evidence.PropertyProof{p.prove(p.rangeOf(i, "0", "42949672.95"), i)}
	}
	doc, err := p.file(carried).Marshal()
	if err != nil {
		b.Fatal(err)
	}
	o := p.Options(b)
	var verified, bare time.Duration
	for b.Loop() {
		began := time.Now()
		report, err := verify.Read(bytes.NewReader(doc), o)
		if err != nil || len(report.Properties) != records {
			b.Fatalf("%v, %+v", err, report.Guarantees)
		}
		verified += time.Since(began)
		began = time.Now()
		onAllCores(records, bareRange)
		bare += time.Since(began)
	}
	b.ReportMetric(records*float64(b.N)/verified.Seconds(), "records/s")
	b.ReportMetric(records*float64(b.N)/bare.Seconds(), "bare/s")
	b.ReportMetric(bare.Seconds()/verified.Seconds(), "of-bare")
	b.ReportMetric(float64(len(doc))/records, "bytes/record")
}

func slicesOf(text string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(text, i%10))
	}
	return list
}

func onAllCores(n int, do func()) {
	work := make(chan struct{})
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for range work {
				do()
			}
		})
	}
	for range n {
		work <- struct{}{}
	}
	close(work)
	all.Wait()
}

var (
	someScalar = sigma.ScalarOf(12345).Inverse()
	somePoint  = sigma.MulGenerator(someScalar)
	someBytes  = somePoint.Bytes()
)

// bareRange does what the proof of a range of 32 binary digits needs of the group: a commitment to each digit is read; the equation of the sum multiplies G, H
// and the commitment; of each digit one equation multiplies G, H and the commitment, and one H and the commitment; products are added up,
// and each sum is written to be hashed.
func bareRange() {
	const digits = 32
	for range digits {
		if _, err := sigma.ParsePoint(someBytes); err != nil {
			panic(err)
		}
	}
	for range 1 + digits {
		sum := sigma.MulGenerator(someScalar).Add(somePoint.Mul(someScalar)).Add(somePoint.Mul(someScalar))
		sum.Bytes()
	}
	for range digits {
		sum := somePoint.Mul(someScalar).Add(somePoint.Mul(someScalar))
		sum.Bytes()
	}
}
