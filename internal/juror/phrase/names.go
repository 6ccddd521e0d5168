package phrase

import (
	"strings"
	"unicode"
)

// NameWords splits get_userDetails-v2 into get, user, details, v2.
func NameWords(name string) []string {
	if i := strings.LastIndex(name, "__"); i >= 0 && i+2 < len(name) { // server__tool
		name = name[i+2:]
	}
	var spaced strings.Builder
	lower := false
	for _, c := range name {
		switch {
		case IsPunctuation(c):
			c = ' '
		case unicode.IsUpper(c) && lower:
			spaced.WriteByte(' ')
		}
		spaced.WriteRune(c)
		lower = unicode.IsLower(c) || unicode.IsDigit(c)
	}
	return strings.Fields(strings.ToLower(spaced.String()))
}

// The verbs and nouns in the names of tools.
var (
	ReadVerbs = Set(`get search list find lookup look fetch read view show check calculate calc compute convert think plan reason
		query describe retrieve verify validate authenticate login estimate quote browse navigate goto visit scroll hover
		screenshot count compare analyze analyse examine inspect identify evaluate classify diagnose summarize translate preview track
		monitor test wait locate ask is has can grep cat ls glob draft`)
	ActVerbs = Set(`update modify change edit set adjust correct replace rename move reschedule upgrade downgrade switch reassign amend
		cancel void terminate revoke abort unsubscribe close deactivate suspend disable block freeze lock stop ban
		delete remove drop erase wipe purge clear destroy
		book reserve create add make place order purchase buy sell rent schedule register enroll insert submit apply open subscribe file
		request confirm extend renew dispatch assign
		send ship deliver email notify post publish message share forward reply upload invite
		pay transfer wire charge refund withdraw deposit issue redeem credit reimburse donate
		settle waive pause unpause bump record release attach detach toggle put link unlink unassign archive dispute accept reject decline prescribe dispense process swap
		return exchange enable activate approve grant unlock unblock reset resume restore deploy merge push commit install restart`)
	AlsoNouns = Set(`order return refund transfer charge credit exchange request schedule message file book post register`)
	ReadNouns = Set(`status lookup details info information history eligibility availability options`)
	// A call with one of these nouns has no consequences: create_draft.
	LightNouns = Set(`note notes draft drafts cart todo todos memory log logs scratchpad otp code verification case escalation
		reminder session search feedback`)
)
