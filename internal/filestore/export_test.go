package filestore

// SmallPacks has a packed folder take packs of so many bytes as full.
func (f *Folder) SmallPacks(bytes int64) { f.packer.most = bytes }
