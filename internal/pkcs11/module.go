package pkcs11

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// A Module is a vendor's library, loaded and initialised. It is safe for concurrent use.
type Module struct{ list *functionList }

type functionList struct {
	version   [2]byte // padded to a word
	functions [functions]uintptr
}

// Load loads a library and initialises it. Close ends that. It returns an error if the file is not a PKCS #11
// library, and the Error of the library.
func Load(path string) (*Module, error) {
	m, err := load(path)
	if err != nil {
		return nil, fmt.Errorf("loading PKCS #11 library %s: %w", path, err)
	}
	return m, nil
}

func load(path string) (*Module, error) {
	lister, err := functionLister(path)
	if err != nil {
		return nil, err
	}
	var p pinned
	defer p.Unpin()
	list := pin(&p, new(*functionList))
	if result, _, _ := purego.SyscallN(lister, address(list)); result != 0 {
		return nil, fmt.Errorf("C_GetFunctionList: %w", Error(result))
	}
	if *list == nil || (*list).version[0] < 2 {
		return nil, errors.New("the library's list of functions is empty or older than version 2")
	}
	m := &Module{*list}
	return m, m.initialize()
}

func (m *Module) initialize() error {
	var p pinned
	defer p.Unpin()
	// CK_C_INITIALIZE_ARGS: no functions of ours, and the library locks by what the system offers.
	args := pin(&p, &[6]word{4: flagOSLocking})
	if err := m.call(fnInitialize, address(args)); err != nil {
		return fmt.Errorf("C_Initialize: %w", err)
	}
	return nil
}

// again initialises the library anew. No call may be under way.
func (m *Module) again() error {
	if err := m.Close(); err != nil && !errors.Is(err, errNotInitialized) {
		return err
	}
	return m.initialize()
}

// Close ends the use of the library. No call may be under way. It returns the Error of the library.
func (m *Module) Close() error {
	if err := m.call(fnFinalize, 0); err != nil {
		return fmt.Errorf("C_Finalize: %w", err)
	}
	return nil
}

// call calls a function of the library. Addresses in args are of pinned memory.
func (m *Module) call(function int, args ...uintptr) error {
	address := m.list.functions[function]
	if address == 0 {
		return errors.New("the library lacks this function")
	}
	if result, _, _ := purego.SyscallN(address, args...); result != 0 {
		return Error(result)
	}
	return nil
}

// pinned is the memory that one call to the library names.
type pinned struct{ runtime.Pinner }

func pin[T any](p *pinned, value *T) *T {
	p.Pin(value)
	return value
}

// address is what the library gets of pinned memory.
func address[T any](value *T) uintptr { return uintptr(unsafe.Pointer(value)) }

// bytes pins what is in b, and returns its address: 0 if b is empty.
func (p *pinned) bytes(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return address(pin(p, &b[0]))
}

// words pins what is in w, and returns its address.
func (p *pinned) words(w []word) uintptr {
	if len(w) == 0 {
		return 0
	}
	return address(pin(p, &w[0]))
}

// TokenInfo is what a token says of itself.
type TokenInfo struct {
	Slot                               word
	Label, Manufacturer, Model, Serial string
	flags                              word
}

// rawTokenInfo is CK_TOKEN_INFO.
type rawTokenInfo struct {
	label, manufacturer [32]byte
	model, serial       [16]byte
	flags               word
	_                   [10]word // counts of sessions, lengths of PINs, memory
	_                   [4]byte  // versions of hardware and firmware
	_                   [16]byte // utcTime
}

// Tokens lists the tokens that are present and initialised. It returns the Error of the library.
func (m *Module) Tokens() ([]TokenInfo, error) {
	slots, err := m.slots()
	if err != nil {
		return nil, fmt.Errorf("C_GetSlotList: %w", err)
	}
	var tokens []TokenInfo
	for _, slot := range slots {
		info, err := m.tokenInfo(slot)
		if e := Error(0); errors.As(err, &e) && e.lost() {
			continue // pulled out since
		}
		if err != nil {
			return nil, fmt.Errorf("C_GetTokenInfo: %w", err)
		}
		if info.flags&tokenInitialized != 0 {
			tokens = append(tokens, info)
		}
	}
	return tokens, nil
}

func (m *Module) slots() ([]word, error) {
	const most = 1024
	var p pinned
	defer p.Unpin()
	// A call without a list makes the library look for slots anew. The number it returns may be outdated by the second call.
	count := pin(&p, new(word))
	if err := m.call(fnGetSlotList, 1, 0, address(count)); err != nil {
		return nil, err
	}
	slots := make([]word, most)
	*count = most
	if err := m.call(fnGetSlotList, 1, p.words(slots), address(count)); err != nil {
		return nil, err
	}
	return slots[:min(*count, most)], nil
}

func (m *Module) tokenInfo(slot word) (TokenInfo, error) {
	var p pinned
	defer p.Unpin()
	raw := pin(&p, new(rawTokenInfo))
	if err := m.call(fnGetTokenInfo, slot, address(raw)); err != nil {
		return TokenInfo{}, err
	}
	return TokenInfo{slot, padded(raw.label[:]), padded(raw.manufacturer[:]), padded(raw.model[:]), padded(raw.serial[:]), raw.flags}, nil
}

// padded reads a text that is filled up with blanks, or, by libraries that err, with zeros.
func padded(text []byte) string {
	text, _, _ = bytes.Cut(text, []byte{0})
	return strings.ToValidUTF8(strings.TrimRight(string(text), " "), "?")
}

// URI names the token.
func (i TokenInfo) URI() string {
	return strings.TrimSuffix(URI{Token: i.Label, Manufacturer: i.Manufacturer, Model: i.Model, Serial: i.Serial}.String(), ";type=private")
}
