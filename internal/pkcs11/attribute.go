package pkcs11

import (
	"encoding/binary"
	"errors"
	"unsafe"
)

// A template lists attributes with the values that they have, or are to get.
type template []attribute

type attribute struct {
	kind  word
	value []byte
}

func is(kind word, yes bool) attribute {
	if yes {
		return attribute{kind, []byte{1}}
	}
	return attribute{kind, []byte{0}}
}

func number(kind, n word) attribute {
	value := make([]byte, unsafe.Sizeof(n))
	if len(value) == 4 {
		binary.NativeEndian.PutUint32(value, uint32(n))
	} else {
		binary.NativeEndian.PutUint64(value, uint64(n))
	}
	return attribute{kind, value}
}

func text(kind word, value []byte) attribute { return attribute{kind, value} }

// raw lays a template out as an array of CK_ATTRIBUTE: type, pointer, length.
func (t template) raw(p *pinned) []word {
	var raw []word
	for _, a := range t {
		raw = append(raw, a.kind, p.bytes(a.value), word(len(a.value)))
	}
	return raw
}

// attributeBound is the most bytes of an attribute that are read: an RSA modulus of 8192 bits has 1,024.
const attributeBound = 4096

// unavailable is the length that the library sets where an object lacks an attribute, or does not show it.
const unavailable = ^word(0)

// attribute reads one attribute of an object. It returns nil if the object lacks it or does not show it.
func (s *session) attribute(object, kind word) ([]byte, error) {
	var p pinned
	defer p.Unpin()
	value := make([]byte, attributeBound)
	raw := template{{kind, value}}.raw(&p)
	err := s.call(fnGetAttributeValue, object, p.words(raw), 1)
	if errors.Is(err, errAttributeType) || errors.Is(err, errAttributeSensitive) || err == nil && raw[2] == unavailable {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if raw[2] > attributeBound {
		return nil, errors.New("the library says that an attribute is longer than its buffer")
	}
	return value[:raw[2]], nil
}

// truth reads an attribute that is true or false. An object without it has false.
func (s *session) truth(object, kind word) (bool, error) {
	value, err := s.attribute(object, kind)
	return len(value) == 1 && value[0] == 1, err
}

// find returns the objects that have all attributes of a template, at most a thousand.
func (s *session) find(t template) ([]word, error) {
	const most = 1000
	var p pinned
	defer p.Unpin()
	raw := t.raw(&p)
	if err := s.call(fnFindObjectsInit, p.words(raw), word(len(t))); err != nil {
		return nil, err
	}
	objects, count := make([]word, most), pin(&p, new(word))
	err := s.call(fnFindObjects, p.words(objects), most, address(count))
	if err = errors.Join(err, s.call(fnFindObjectsFinal)); err != nil {
		return nil, err
	}
	return objects[:min(*count, most)], nil
}
