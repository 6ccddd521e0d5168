package sqlite

import (
	"encoding/hex"
	"strconv"
	"strings"

	"jurat/internal/ledger/storage"
)

// idOf is a record id as the tables have it: of a UUID its bytes, and any other text as it is.
func idOf(id string) any {
	if b, err := hex.DecodeString(strings.ReplaceAll(id, "-", "")); err == nil && idIn(b) == id {
		return b
	}
	return id
}

// idIn is the record id in a column, or "" if it is of a form that this package does not write.
func idIn(column any) string {
	switch id := column.(type) {
	case string:
		return id
	case []byte:
		if b := hex.EncodeToString(id); len(b) == 32 {
			return b[:8] + "-" + b[8:12] + "-" + b[12:16] + "-" + b[16:20] + "-" + b[20:]
		}
	}
	return ""
}

// packedID is a sql.Scanner.
type packedID storage.ID

func (id *packedID) Scan(column any) error {
	*id = packedID(idIn(column))
	return nil
}

// listed is a record id in a list: see textIn.
func listed(id storage.ID) string {
	if b, is := idOf(string(id)).([]byte); is {
		return "x" + hex.EncodeToString(b)
	}
	return "t" + string(id)
}

func jsonOf(list []int64) string {
	text := []byte{'['}
	for i, n := range list {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return string(append(text, ']'))
}
