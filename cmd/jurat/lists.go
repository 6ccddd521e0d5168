package main

type listsCmd struct {
	Fetch listsFetchCmd `cmd:"" help:"Fetch the European Union's trusted lists into a folder."`
}
