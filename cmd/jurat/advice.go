package main

import (
	"errors"
	"strings"

	"jurat/internal/filestore"
	"jurat/internal/installation"
	"jurat/internal/ledger"
	"jurat/internal/postgres"
	"jurat/internal/stamping"
)

// whenBehind says what to do with a log that has lost its end.
const whenBehind = "it came back from an older copy, or its end was cut off: put the latest copy back ('jurat init --from'). Until then it can be read; " +
	"for new records begin another data folder or database"

// advices say what to do next about what can go wrong in any command. The first that fits is given.
var advices = []struct {
	about error
	hint  string
}{
	{installation.ErrNone, "'jurat init' makes one, and so do 'jurat serve', 'jurat trial', 'jurat seal', 'jurat record' and 'jurat import'; --data or JURAT_DATA say where, or --db or JURAT_DB in which database"},
	{installation.ErrNoWrappingKey, "--wrapping-key or JURAT_WRAPPING_KEY names its file, which every machine has a copy of; for a new database 'jurat keys rewrap --new FILE' makes one"},
	{filestore.ErrOtherKey, "--wrapping-key or JURAT_WRAPPING_KEY has to name a copy of the file that the other machines have"},
	{stamping.ErrNotConfigured, "its answers could not be checked; 'jurat tsa NAME URL --root FILE' adds one, 'jurat tsa' shows those there are"},
	{postgres.ErrURL, "--db or JURAT_DB names a PostgreSQL database, and no other kind; for a folder of this machine use --data or JURAT_DATA instead"},
	{postgres.ErrNoDatabase, "'createdb --encoding UTF8 --template template0 --owner ROLE NAME' makes one, and the tables in it are made on first use; or --db or JURAT_DB names another"},
	{postgres.ErrNotLetIn, "the password is taken from PGPASSWORD, ~/.pgpass or the URL of --db or JURAT_DB, where all but letters, digits and -._~ is written as %XX; " +
		"whom the server lets in from where stands in its pg_hba.conf"},
	{postgres.ErrNotAllowed, "the role that --db or JURAT_DB names has to own the schema jurat, or the database in which it is to be made: ALTER DATABASE NAME OWNER TO ROLE"},
	{postgres.ErrUnreachable, "see that the server runs, and listens at the host and port that --db or JURAT_DB names ('pg_isready -h HOST -p PORT' asks it), and that nothing between keeps you apart"},
	{ledger.ErrBehind, whenBehind},
	{ledger.ErrMoved, "put the data folder back as it was, or start jurat again on the one that is there now"},
}

// advise adds to the outcome of a command what to do next, where the command itself had nothing to say.
func advise(err error) error {
	var h hinted
	if err == nil || errors.As(err, &h) {
		return err
	}
	at, unknown := strings.CutSuffix(err.Error(), ": unknown member")
	if instead := gone()[at[max(0, strings.LastIndexByte(at, '/')):]]; unknown && instead != "" {
		return hint(err, "%s", instead)
	}
	for _, a := range advices {
		if errors.Is(err, a.about) {
			return hint(err, "%s", a.hint)
		}
	}
	return err
}
