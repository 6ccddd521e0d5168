package sqlite

import (
	"context"
	"fmt"

	"jurat/internal/ledger/storage"
	"jurat/internal/plural"
)

// Check implements storage.Checker: SQLite reads every page and compares every index with its table. SQLite does not
// report a missing index, so Check looks for the indexes by which rows are found.
func (s *Store) Check(ctx context.Context) (complaints []string, err error) {
	strays, unique, digests := 0, 0, 0
	err = engine{s}.Read(ctx, func(from storage.Reader) error {
		return from.Run(ctx,
			storage.Statement{Text: `PRAGMA integrity_check`, Row: func(scan storage.Scan) error {
				var line string
				err := scan(&line)
				if line != "ok" {
					complaints = append(complaints, line)
				}
				return err
			}},
			storage.Statement{Text: `SELECT (SELECT count(*) FROM tags WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.idx = tags.idx)),
				(SELECT count(*) FROM pragma_index_list('records') l, pragma_index_info(l.name) i WHERE l."unique" AND i.name = 'record_id'),
				(SELECT count(*) FROM pragma_index_list('records') WHERE name = 'records_by_digest')`,
				Row: func(scan storage.Scan) error { return scan(&strays, &unique, &digests) }})
	})
	if err != nil {
		return complaints, err
	}
	if strays > 0 {
		complaints = append(complaints, fmt.Sprintf("the table of counts has %s without a record", plural.Of(strays, "row")))
	}
	if unique*digests != 1 {
		complaints = append(complaints, "the table of records lacks an index for finding its rows")
	}
	return complaints, nil
}
