package pkcs11

import (
	"context"

	"jurat/evidence"
)

// Export asks the token for a private key as it is, and wrapped under a key that may wrap.
func (t *Token) Export(ctx context.Context, label, wrapper string) (value, wrapped []byte, err error) {
	err = t.with(ctx, func(s *session) error {
		key, err := s.find(URI{Object: label}.template(classPrivateKey))
		if err != nil {
			return err
		}
		wrapping, err := s.find(template{text(attrLabel, []byte(wrapper))})
		if err != nil {
			return err
		}
		const attrValue = 0x11
		if value, err = s.attribute(key[0], attrValue); err != nil {
			return err
		}
		wrapped, err = s.wrap(wrapping[0], key[0])
		return err
	})
	return value, wrapped, err
}

func (s *session) wrap(wrapping, key word) ([]byte, error) {
	const fnWrapKey, mechanismAESKeyWrapPad, most = 60, 0x210A, 8192
	var p pinned
	defer p.Unpin()
	wrapped, count := make([]byte, most), pin(&p, new(word))
	*count = most
	err := s.call(fnWrapKey, p.words([]word{mechanismAESKeyWrapPad, 0, 0}), wrapping, key, p.bytes(wrapped), address(count))
	if err != nil {
		return nil, err
	}
	return wrapped[:*count], nil
}

// SignBare has the library sign, and does nothing else that costs: the limit of every rate.
func (t *Token) SignBare(ctx context.Context, uri string, data []byte) error {
	return t.with(ctx, func(s *session) error {
		k, err := t.find(s, uri)
		if err != nil {
			return err
		}
		if k.Algorithm == evidence.ES256 {
			_, err = s.signRaw(mechanismECDSA, k.handle, data)
		} else {
			_, err = s.sign(k, data)
		}
		return err
	})
}
