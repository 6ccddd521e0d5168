module jurat/pkcs11

go 1.26.0

require (
	github.com/ThalesGroup/crypto11 v1.6.2
	github.com/miekg/pkcs11 v1.1.2
	golang.org/x/term v0.46.0
)

require (
	github.com/pkg/errors v0.9.1 // indirect
	github.com/thales-e-security/pool v0.0.2 // indirect
	golang.org/x/sys v0.48.0 // indirect
)
