package timestamp

import (
	"encoding/hex"
	"strconv"
	"testing"
)

// TestOpenSSLOnTokenRules asks OpenSSL about each token that the rules accept. OpenSSL must accept it as a time stamp
// or, because its time stamps know only PKCS #7, as CMS. One token is left out: OpenSSL refuses any embedded certificate
// that it cannot read. The rules refuse it only if it is the signer's.
func TestOpenSSLOnTokenRules(t *testing.T) {
	s := newSSL(t)
	s.certificates("root.pem", testRoot(t))
	with := []string{"-in", "token.tst", "-CAfile", "root.pem", "-attime", strconv.FormatInt(testTime.Unix(), 10)}
	asTimeStamp := append([]string{"ts", "-verify", "-sha256", "-digest", hex.EncodeToString(testImprint[:]), "-token_in"}, with...)
	asCMS := append([]string{"cms", "-verify", "-inform", "DER", "-purpose", "timestampsign", "-out", "content"}, with...)
	for _, rule := range tokenRules(t) {
		if rule.want != nil || rule.name == "embedded certificate unreadable, and not the signer's" {
			continue
		}
		f := newDraft(t)
		rule.change(f)
		s.write("token.tst", f.build(t))
		if _, err := s.run(asTimeStamp...); err != nil {
			t.Run(rule.name, func(t *testing.T) { sslDir{t, s.dir}.must(asCMS...) })
		}
	}
}
