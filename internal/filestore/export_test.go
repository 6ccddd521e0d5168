package filestore

// SmallPacks has a packed folder take packs of so many bytes as full.
func (f *Folder) SmallPacks(bytes int64) { f.packer.most = bytes }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
