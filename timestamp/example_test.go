package timestamp_test

import (
	"crypto/sha256"
	"fmt"
	"log"
	"math/big"

	"jurat/timestamp"
)

// A requester, an authority, and a reader who verifies later.
func Example() {
	authority := timestamp.NewMock()
	signature := []byte("the signature over what was said")

	request := timestamp.Request{Imprint: sha256.Sum256(signature), Nonce: big.NewInt(2026), CertReq: true}
	token, err := authority.Issue(&request) // an authority elsewhere is sent request.Marshal, and its answer goes to ParseResponse
	if err != nil {
		log.Fatal(err)
	}

	unverified, err := timestamp.Parse(token)
	if err != nil {
		log.Fatal(err)
	}
	opts := timestamp.Options{Roots: authority.Certificates()[1:], Nonce: request.Nonce}
	_, err = unverified.Verify(sha256.Sum256(signature), opts)
	fmt.Println(err)

	opts.UnsafeAllowMock = true // in a test, and nowhere else
	verified, err := unverified.Verify(sha256.Sum256(signature), opts)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(verified.GenTime, verified.Policy)
	// Output:
	// verifying time stamp token: issued by the mock authority, which proves nothing
	// 2026-01-01 00:00:00 +0000 UTC 2.25.63052736203651960446583647240053785467.2
}
