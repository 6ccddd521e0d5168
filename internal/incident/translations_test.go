package incident_test

import "jurat/internal/words"

// disclaimers are the last sentences of every statement, one for each item.
var disclaimers = []string{
	"None of this says that what was said is correct", "that anybody is legally responsible for it",
	"that it is safe or appropriate", "that the decision should be carried out",
}

// in translates an English sentence, or a part of one. A text without a translation is the same in all languages.
func in(lang words.Lang, english string) string {
	if said, ok := translations[english]; ok && lang != words.English {
		return map[words.Lang]string{words.Japanese: said.ja, words.Russian: said.ru}[lang]
	}
	return english
}

// translations are written here a second time, not taken from the tables. The tests must find a table that says "proved"
// in the place of "not proved".
var translations = map[string]struct{ ja, ru string }{
	signedByActor: {"その主体のものと確認されている鍵で署名されています", "подписано ключом, который известен как ключ этого участника"},
	existedAt:     {"時点で存在していました", "Подпись существовала в момент"},
	unchanged:     {"それ以後変更されていません", "с тех пор не изменялось"},
	inLog:         {"ログの 0 番の位置にあります", "Номер записи в журнале: 0"},
	juryJudged:    {"陪審の判定は", "Решение присяжных:"},
	actsUnchanged: {"すべての行為は、それぞれの主体によって署名され、変更されていません。", "Каждое действие подписано своим участником и не изменено."},

	`This model output was recorded as that of agent "courier" with the model gpt-4.1 (version gpt-4.1-2026-01)`: {
		`この行為（種別：モデル出力）は、モデル gpt-4.1（バージョン gpt-4.1-2026-01）を用いたエージェント "courier" のものとして記録され`,
		`Действие вида «выход модели» записано как произведённое участником "courier" (роль: агент) с использованием модели gpt-4.1 (версия gpt-4.1-2026-01)`},
	"rests on the operator's word": {"運用者の時計と言明にとどまります", "основано лишь на часах и слове оператора"},
	`By the record, the context was: "Snow on the passes."`: {
		`記録によれば、コンテキストは "Snow on the passes." です。`, `Согласно записи, контекст: "Snow on the passes.".`},
	"the context was: sealed apart":                         {"コンテキストは別途封印されています", "контекст запечатан отдельно"},
	"It is not proved who produced this model output":       {"この行為（種別：モデル出力）を誰が行ったかは証明されていません", "Не доказано, кем произведено действие вида «выход модели»"},
	`It names agent "courier"`:                              {`記録にはエージェント "courier" の名`, `участник "courier" (роль: агент)`},
	"with the model gpt-4.1 (version gpt-4.1-2026-01)":      {"モデル gpt-4.1（バージョン gpt-4.1-2026-01）", "модель gpt-4.1 (версия gpt-4.1-2026-01)"},
	"It is refuted that this model output":                  {"その主体が署名したとおりのものであることは反証されています", "Опровергнуто, что действие вида «выход модели»"},
	"It is not proved that the content is what was sealed.": {"内容が封印されたとおりのものであることは証明されていません。", "Не доказано, что содержание совпадает с тем, что было запечатано."},
	"It is refuted that the content is what was sealed.":    {"内容が封印されたとおりのものであることは反証されています。", "Опровергнуто, что содержание совпадает с тем, что было запечатано."},
	"Its author gives the time 2025-12-31T23:59:00Z.":       {"作成者が申告している時刻は 2025-12-31T23:59:00Z です。", "Время, заявленное автором: 2025-12-31T23:59:00Z."},
	"No proved time stands behind that":                     {"証明された時刻はありません", "Доказанного времени, подтверждающего это заявление, нет."},
	"The time stamp that comes with it is refuted":          {"タイムスタンプは反証されています", "Приложенная метка времени опровергнута."},
	"No proved time stands behind that: pending since": {
		"証明された時刻はありません。信頼された時刻認証局による時刻は確認できません（検証の理由：まだどの機関もタイムスタンプを押していません",
		"нет. Время не подтверждено службой меток времени, которой доверяет читатель (основание: «ни одна служба ещё не поставила метку времени"},

	"The jury judged safe_pass with":                 {"陪審の判定は safe_pass（安全・合格）、", "Решение присяжных: safe_pass («безопасно, пройдено»);"},
	"The jury judged needs_review":                   {"陪審の判定は needs_review（要確認）、", "Решение присяжных: needs_review («требуется проверка»);"},
	"by final_judge":                                 {"判定方法は final_judge（最終裁定者による判定）", "метод: final_judge («решение итогового судьи»)"},
	"The file states the judgment safe_pass":         {"ファイルに記載された判定は safe_pass（安全・合格）", "В файле указано решение: safe_pass («безопасно, пройдено»)"},
	"The file states the judgment unsafe_fail":       {"ファイルに記載された判定は unsafe_fail（危険・不合格）", "В файле указано решение: unsafe_fail («небезопасно, не пройдено»)"},
	"that this follows from the votes is not proved": {"これが票から導かれることは証明されていません", "Не доказано, что оно следует из голосов"},
	"that this follows from the votes is refuted":    {"これが票から導かれることは反証されています", "Опровергнуто, что оно следует из голосов"},
	"That the acts are their actors' is not proved":  {"記載された主体によるものであることは証明されていません", "Не доказано, что действия принадлежат указанным участникам"},
	"That the acts are what was sealed is refuted":   {"各行為が封印されたとおりのものであることは反証されています", "Опровергнуто, что действия совпадают с тем, что было запечатано"},
	"Completeness: proved":                           {"所定の位置にあること）は証明されています", "на своём месте): доказана"},
	"Completeness: not proved":                       {"所定の位置にあること）は証明されていません", "на своём месте): не доказана"},
	"Completeness: refuted":                          {"所定の位置にあること）は反証されています", "на своём месте): опровергнута"},
	"Simultaneity: proved":                           {"誰も見ずに発言したこと）は証明されています", "в том же раунде): доказана"},
	"The file holds no judgment.":                    {"このファイルには最終判定が含まれていません。", "Файл не содержит итогового решения."},
	"The trial was degraded":                         {"審理は不完全な状態（degraded）で行われました。", "Разбирательство прошло в неполном составе или со сбоем (degraded):"},
	"It states that the trial was degraded":          {"ファイルの記載では、審理は不完全な状態（degraded）で行われ", "В файле указано, что разбирательство прошло в неполном составе"},
	"The trial was inconclusive":                     {"審理は結論に至りませんでした（inconclusive）。", "Разбирательство не привело к определённому результату (inconclusive):"},

	"None of this says that what was said is correct": {"以上の記述は、次のいずれのことも示すものではありません：述べられた内容が正しいこと", "Ничто из изложенного не доказывает ни того, что сказанное верно"},
	"that anybody is legally responsible for it":      {"誰かがそれについて法的責任を負うこと", "того, что кто-либо несёт за это юридическую ответственность"},
	"that it is safe or appropriate":                  {"それが安全または適切であること", "того, что это безопасно или уместно"},
	"that the decision should be carried out":         {"その決定を実行すべきであること。", "того, что решение следует исполнить."},
}
