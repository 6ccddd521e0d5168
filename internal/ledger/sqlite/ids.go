package sqlite

import (
	"encoding/hex"
	"strings"
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

// idListed is what a value of the list of listed has in the tables.
const idListed = `iif(substr(value, 1, 1) = 'x', unhex(substr(value, 2)), substr(value, 2))`

func listed(ids []string) []string {
	list := make([]string, len(ids))
	for i, id := range ids {
		if b, ok := idOf(id).([]byte); ok {
			list[i] = "x" + hex.EncodeToString(b)
		} else {
			list[i] = "t" + id
		}
	}
	return list
}
