package sqlite

import (
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// syncingData is the name of a VFS that is SQLite's own but syncs files with fdatasync, as SQLite compiled from C does on Linux. modernc.org/sqlite is
// translated with the fallback, fsync, which also waits until the time of the file's last change is on disk: a commit took a third longer. It is "" if the VFS
// cannot be made. Then files are synced with fsync.
var syncingData = sync.OnceValue(func() string {
	tls := libc.NewTLS()
	defer tls.Close()
	const name = "datasync"
	own, vfs := sqlite3.Xsqlite3_vfs_find(tls, 0), reserve[sqlite3.Tsqlite3_vfs](tls)
	text, err := libc.CString(name)
	if own == 0 || vfs == 0 || err != nil {
		return ""
	}
	v := at[sqlite3.Tsqlite3_vfs](vfs)
	*v = *at[sqlite3.Tsqlite3_vfs](own)
	openFile = functionAt[openFunction](v.FxOpen)
	v.FpNext, v.FzName, v.FxOpen = 0, text, addressOfFunction(openToSyncData)
	if sqlite3.Xsqlite3_vfs_register(tls, vfs, 0) != sqlite3.SQLITE_OK {
		return ""
	}
	return name
})

var (
	openFile openFunction // of SQLite's own VFS

	methodsMu sync.Mutex              // guards methods
	methods   = map[uintptr]uintptr{} // of syncingMethods, by the methods that they replace
)

type (
	openFunction = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	syncFunction = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// syncingMethods are the methods of a kind of file, with another sync.
type syncingMethods struct {
	sqlite3.Tsqlite3_io_methods         // first: a file has its address
	usual                       uintptr // the address of a syncFunction
}

// openToSyncData opens a file as SQLite does, and replaces how it is synced.
func openToSyncData(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32 {
	result := openFile(tls, vfs, name, file, flags, outFlags)
	if f := at[sqlite3.TunixFile](file); result == sqlite3.SQLITE_OK && f.FpMethod != 0 {
		f.FpMethod = methodsLike(tls, f.FpMethod)
	}
	return result
}

// methodsLike returns the methods to use instead of SQLite's own ones, of which it has several: they differ by how a file is locked.
func methodsLike(tls *libc.TLS, own uintptr) uintptr {
	methodsMu.Lock()
	defer methodsMu.Unlock()
	if made := methods[own]; made != 0 {
		return made
	}
	made := reserve[syncingMethods](tls)
	if made == 0 {
		return own
	}
	m := at[syncingMethods](made)
	m.Tsqlite3_io_methods = *at[sqlite3.Tsqlite3_io_methods](own)
	m.usual, m.FxSync = m.FxSync, addressOfFunction(syncDataOf)
	methods[own] = made
	return made
}

// syncDataOf makes a file durable, and what is needed to read it. At the first sync of a new file SQLite syncs its folder, too.
func syncDataOf(tls *libc.TLS, file uintptr, flags int32) int32 {
	f := at[sqlite3.TunixFile](file)
	if f.FctrlFlags&sqlite3.UNIXFILE_DIRSYNC != 0 {
		return functionAt[syncFunction](at[syncingMethods](f.FpMethod).usual)(tls, file, flags)
	}
	err := fdatasync(int(f.Fh))
	for err == unix.EINTR {
		err = fdatasync(int(f.Fh))
	}
	if err != nil { // it is not tried again: the system may have given the pages up, and would report success
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

// fdatasync is the system's; tests replace it.
var fdatasync = unix.Fdatasync

// reserve returns the address of memory for a value that SQLite keeps as long as the process runs, or 0.
func reserve[T any](tls *libc.TLS) uintptr {
	return libc.Xcalloc(tls, 1, libc.Tsize_t(unsafe.Sizeof(*new(T))))
}

// at is what is at an address of SQLite's memory.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// functionAt and addressOfFunction convert functions as modernc.org/sqlite does: an address is what a value of Go's points to.
func functionAt[F any](address uintptr) F { return *(*F)(unsafe.Pointer(&address)) }

func addressOfFunction[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }
