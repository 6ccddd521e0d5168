package jury

import (
	"reflect"
	"strings"
)

// clone copies a value deeply, so that a juror cannot change what another juror or the record holds. A nil list or map that JSON always
// writes becomes an empty one, as it is when it is read again.
func clone[T any](v T) T {
	deepen(reflect.ValueOf(&v).Elem())
	return v
}

// deepen replaces all that a value points to by copies.
func deepen(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), v.Type().Field(i).Tag.Get("json"))
			deepen(v.Field(i))
		}
	case reflect.Pointer:
		if !v.IsNil() {
			copied := reflect.New(v.Type().Elem())
			copied.Elem().Set(v.Elem())
			deepen(copied.Elem())
			v.Set(copied)
		}
	case reflect.Slice:
		deepenList(v)
	case reflect.Map: // of names to numbers
		if !v.IsNil() {
			copied := reflect.MakeMapWithSize(v.Type(), v.Len())
			for key, value := range v.Seq2() {
				copied.SetMapIndex(key, value)
			}
			v.Set(copied)
		}
	}
}

func deepenList(v reflect.Value) {
	if v.IsNil() {
		return
	}
	copied := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
	reflect.Copy(copied, v)
	v.Set(copied)
	if kind := v.Type().Elem().Kind(); kind == reflect.Struct || kind == reflect.Pointer {
		for i := range v.Len() {
			deepen(v.Index(i))
		}
	}
}

// fill makes a nil member empty if its tag does not leave it out. A nil document stays nil: it is no list of bytes.
func fill(v reflect.Value, tag string) {
	switch {
	case tag == "" || strings.Contains(tag, ",omit"):
	case v.Kind() == reflect.Slice && v.IsNil() && v.Type().Elem().Kind() != reflect.Uint8:
		v.Set(reflect.MakeSlice(v.Type(), 0, 0))
	case v.Kind() == reflect.Map && v.IsNil():
		v.Set(reflect.MakeMap(v.Type()))
	}
}

// Clone returns a copy of tables that shares nothing with them; nil of nil.
func (w *Work) Clone() *Work { return clone(w) }
