package words

// Portal holds the texts of the portal's page: {name} is a place for a value. The texts about records and reports
// come from Terms and Statement. The page finds a text by the name of its JSON member.
type Portal struct {
	NoScript string `json:"-"` // what a browser without scripts shows, in every language

	Choice string `json:"choice"` // of the language

	Title      string `json:"title"`
	Heading    string `json:"heading"`
	Lead       string `json:"lead"`
	Saved      string `json:"saved"`
	ServedHead string `json:"served_head"`
	Served     string `json:"served"`
	Download   string `json:"download"`

	What      string `json:"what"`
	Drop      string `json:"drop"`
	DropHint  string `json:"drop_hint"`
	Choose    string `json:"choose"`
	Paste     string `json:"paste"`
	PasteHint string `json:"paste_hint"`
	Pasted    string `json:"pasted"`
	Remove    string `json:"remove"`

	Whom        string `json:"whom"`
	WhomHint    string `json:"whom_hint"`
	ChooseTrust string `json:"choose_trust"`
	NoTrust     string `json:"no_trust"`
	Holds       string `json:"holds"`
	Compare     string `json:"compare"`
	UseServers  string `json:"use_servers"`
	ServersName string `json:"servers_name"`
	ServersHint string `json:"servers_hint"`
	BadTrust    string `json:"bad_trust"`

	More        string `json:"more"`
	Before      string `json:"before"`
	At          string `json:"at"`
	CRLs        string `json:"crls"`
	Checkpoint  string `json:"checkpoint"`
	Consistency string `json:"consistency"`
	Entries     string `json:"entries"`

	Check     string `json:"check"`
	Cancel    string `json:"cancel"`
	Starting  string `json:"starting"`
	Working   string `json:"working"`
	Reading   string `json:"reading"`
	Cancelled string `json:"cancelled"`
	Failed    string `json:"failed"`
	Nothing   string `json:"nothing"`
	Done      string `json:"done"`

	Found        string `json:"found"`
	Records      string `json:"records"`
	FromLog      string `json:"from_log"`
	AllProved    string `json:"all_proved"`
	NotProved    string `json:"not_proved"`
	Refuted      string `json:"refuted"`
	WithoutTrust string `json:"without_trust"`
	ByTrust      string `json:"by_trust"`
	Unchecked    string `json:"unchecked"`
	Uncounted    string `json:"uncounted"`
	OfRecord     string `json:"of_record"`
	Also         string `json:"also"`
	Others       string `json:"others"`
	NotShown     string `json:"not_shown"`
	Mended       string `json:"mended"`
	Statement    string `json:"statement"`
	Copy         string `json:"copy"`
	Copied       string `json:"copied"`
	Save         string `json:"save"`

	Said       string `json:"said"`
	SaidHint   string `json:"said_hint"`
	Shown      string `json:"shown"`
	ShowMore   string `json:"show_more"`
	Actor      string `json:"actor"`
	Model      string `json:"model"`
	NoModel    string `json:"no_model"`
	Claimed    string `json:"claimed"`
	ProvedTime string `json:"proved_time"`
	NoTime     string `json:"no_time"`
	Digest     string `json:"digest"`
	Apart      string `json:"apart"`
	Withheld   string `json:"withheld"`
	Signed     string `json:"signed"`
	CopyExact  string `json:"copy_exact"`

	Members Members `json:"members"` // of records
}

// Members holds the readable names of a record's members.
type Members struct {
	Prompt           string `json:"prompt"`
	Context          string `json:"context"`
	ToolsUsed        string `json:"tools_used"`
	Response         string `json:"response"`
	ModifiedResponse string `json:"modified_response"`
	Changes          string `json:"changes"`
	Parameters       string `json:"parameters"`
	Metadata         string `json:"metadata"`
}
