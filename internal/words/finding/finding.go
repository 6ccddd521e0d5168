// Package finding has the texts of the pages that search trials, put two side by side and show an agent's history, in each
// language of package words. A test demands every text in every language, with the same places for values.
package finding

import "jurat/internal/words"

// Texts are the texts of these pages. A place for a value is written {so}.
type Texts struct {
	Title, Lead, Filters, Agent, Verdict, Outcome, Needs, Juror, Model, Submitter, From, To, Text, TextHelp, Record, Sort, Any, None, Yes, No, Search, Clear string
	Newest, Oldest, Latest, Highest, Lowest, ByAgent                                                                                                         string
	Count, AtMost, Nothing, Submitted, Score, Trial, Waits, More, CSV, JSON, Behind, First, Second, Compare, CompareHelp                                     string

	SideBySide, Same, Different, One, Other, Criterion, Total, Reasons, Both, OnlyOne, OnlyOther, NoFindings, By, Message, Unfounded, NoJudgment, NoAnswer string

	SearchTitle, SearchLead, HitHelp, OnlySaid, Actor, Action, Claimed, Chain, Hits, HitsBehind, ProvedHelp, NotYet, NoHits, SaidIn, GivenIn, ItsTrial, SawActOf string

	History, HistoryLead, NoHistory, Cost, Agreement, Kappa, Moved, Turned, Seat, Asked, Answered, Changes, Undefined string
}

var texts = map[words.Lang]*Texts{words.English: &english, words.Japanese: &japanese, words.Russian: &russian}

// In returns the texts in a language, English for an unknown one.
func In(l words.Lang) *Texts {
	if t := texts[l]; t != nil {
		return t
	}
	return &english
}

var english = Texts{
	Title: "Find trials", Lead: "Trials that you may read. All filters hold at the same time.", Filters: "Filters",
	Agent: "Agent", Verdict: "The jury's verdict", Outcome: "Outcome", Needs: "Waits for a person", Juror: "Juror or role", Model: "Model", Submitter: "Submitter",
	From: "Submitted from", To: "to", Text: "Text", TextHelp: "In any record of the trial: at least three letters, or two characters of a script without spaces.",
	Record: "Record id", Sort: "Order", Any: "any", None: "none yet", Yes: "yes", No: "no", Search: "Search", Clear: "Clear all filters",
	Newest: "newest first", Oldest: "oldest first", Latest: "last act first", Highest: "highest score first", Lowest: "lowest score first", ByAgent: "by agent",
	Count: "Trials: {n}", AtMost: "Trials: at most {n}", Nothing: "No trial matches.", Submitted: "Submitted", Score: "Score", Trial: "Trial", Waits: "waits for a person",
	More: "More", CSV: "As CSV", JSON: "As JSON", Behind: "The index is {n} records behind, so trials may be missing.",
	First: "First", Second: "Second", Compare: "Compare", CompareHelp: "Choose two trials to see them side by side.",
	SideBySide: "Two trials side by side", Same: "Both judged the same evidence.", Different: "They judged different evidence. Findings count as the same if rule and axis are.",
	One: "First trial", Other: "Second trial", Criterion: "Juror and axis", Total: "total", Reasons: "Reasons",
	Both: "Found in both", OnlyOne: "Only in the first", OnlyOther: "Only in the second", NoFindings: "None.", By: "by", Message: "message {n}", Unfounded: "the message does not have this quotation",
	NoJudgment: "There is no judgment yet.", NoAnswer: "has not answered",
	SearchTitle: "Find records", SearchLead: "Who said this, and when. You find records that you may read; all conditions hold at the same time.",
	HitHelp:  "In any letter case: at least three letters, or two characters of a script without spaces. What is sealed apart is not found.",
	OnlySaid: "Only where the actor said the text itself, and was not only given it", Actor: "Who (the whole name)", Action: "Kind of act", Claimed: "Claimed time from", Chain: "Chain or trial",
	Hits: "Records on this page: {n}", HitsBehind: "The index is {n} records behind, so records may be missing.",
	ProvedHelp: "Who said it and when is checked by this server with its own trust file. The record's page has the file that proves it to others.",
	NotYet:     "None so far. The search goes on on the next page.", NoHits: "No record matches.", SaidIn: "Said in", GivenIn: "Was given in", ItsTrial: "Its trial:", SawActOf: "saw an act of",
	History: "Trials of this agent", HistoryLead: "Numbers of the {n} newest finished trials.", NoHistory: "No trial of an agent with this name.",
	Cost: "Cost of the jurors' answers", Agreement: "Agreement of the jurors before discussion", Kappa: "Fleiss' kappa", Moved: "Changes of position in discussions", Turned: "Trials whose majority the discussion changed",
	Seat: "Juror", Asked: "asked", Answered: "answered", Changes: "changes of position", Undefined: "not defined",
}

var japanese = Texts{
	Title: "審理を探す", Lead: "あなたが読める審理です。条件はすべて同時に適用されます。", Filters: "条件",
	Agent: "エージェント", Verdict: "陪審の評決", Outcome: "結果", Needs: "人の判断を待っている", Juror: "陪審員または役割", Model: "モデル", Submitter: "提出者",
	From: "提出日（から）", To: "（まで）", Text: "文字列", TextHelp: "審理のいずれかの記録に含まれる文字列。3文字以上、分かち書きしない文字は2文字以上。",
	Record: "記録ID", Sort: "並び順", Any: "指定なし", None: "未定", Yes: "はい", No: "いいえ", Search: "検索", Clear: "条件をすべて消す",
	Newest: "新しい順", Oldest: "古い順", Latest: "最後の行為が新しい順", Highest: "点数の高い順", Lowest: "点数の低い順", ByAgent: "エージェント順",
	Count: "審理：{n}件", AtMost: "審理：最大{n}件", Nothing: "該当する審理はありません。", Submitted: "提出", Score: "点数", Trial: "審理", Waits: "人の判断待ち",
	More: "続き", CSV: "CSVで取得", JSON: "JSONで取得", Behind: "索引がまだ{n}件の記録に追いついていないため、審理が欠けている可能性があります。",
	First: "1件目", Second: "2件目", Compare: "比較する", CompareHelp: "2つの審理を選ぶと、並べて表示します。",
	SideBySide: "2つの審理の比較", Same: "どちらも同じ証拠を審理しました。", Different: "異なる証拠を審理しました。規則と評価軸が同じ指摘は同じものとみなします。",
	One: "1件目の審理", Other: "2件目の審理", Criterion: "陪審員と評価軸", Total: "合計", Reasons: "理由",
	Both: "両方にある指摘", OnlyOne: "1件目だけの指摘", OnlyOther: "2件目だけの指摘", NoFindings: "ありません。", By: "指摘者", Message: "メッセージ{n}", Unfounded: "このメッセージに引用文はありません",
	NoJudgment: "まだ判決がありません。", NoAnswer: "未回答",
	SearchTitle: "記録を探す", SearchLead: "誰がいつ言ったかを探します。あなたが読める記録だけが見つかり、条件はすべて同時に適用されます。",
	HitHelp:  "大文字と小文字は区別しません。3文字以上、分かち書きしない文字は2文字以上。別に封印された文字列は見つかりません。",
	OnlySaid: "行為者自身が言ったものだけ（受け取っただけのものを除く）", Actor: "行為者（完全な名前）", Action: "行為の種類", Claimed: "申告時刻（から）", Chain: "連鎖または審理",
	Hits: "このページの記録：{n}件", HitsBehind: "索引がまだ{n}件の記録に追いついていないため、記録が欠けている可能性があります。",
	ProvedHelp: "誰がいつ言ったかは、このサーバーが自身の信頼ファイルで確認しています。他の人に証明するためのファイルは記録のページにあります。",
	NotYet:     "まだ見つかっていません。検索は次のページに続きます。", NoHits: "該当する記録はありません。", SaidIn: "発言の場所", GivenIn: "受け取った場所", ItsTrial: "この記録の審理：", SawActOf: "記録した行為の主体：",
	History: "このエージェントの審理", HistoryLead: "終了した最新の審理{n}件の数値です。", NoHistory: "この名前のエージェントの審理はありません。",
	Cost: "陪審員の回答の費用", Agreement: "討議前の陪審員の一致度", Kappa: "フライスのカッパ", Moved: "討議中の立場の変更", Turned: "討議で多数意見が変わった審理",
	Seat: "陪審員", Asked: "質問数", Answered: "回答数", Changes: "立場の変更", Undefined: "定義されません",
}

var russian = Texts{
	Title: "Поиск разбирательств", Lead: "Разбирательства, которые вам можно читать. Все условия действуют одновременно.", Filters: "Условия",
	Agent: "Агент", Verdict: "Вердикт присяжных", Outcome: "Итог", Needs: "Ждёт решения человека", Juror: "Присяжный или роль", Model: "Модель", Submitter: "Податель",
	From: "Подано с", To: "по", Text: "Текст", TextHelp: "В любой записи разбирательства: не менее трёх букв или двух знаков письма без пробелов.",
	Record: "Идентификатор записи", Sort: "Порядок", Any: "любой", None: "пока нет", Yes: "да", No: "нет", Search: "Найти", Clear: "Сбросить условия",
	Newest: "сначала новые", Oldest: "сначала старые", Latest: "сначала с последним действием", Highest: "сначала с высшим баллом", Lowest: "сначала с низшим баллом", ByAgent: "по агенту",
	Count: "Разбирательств: {n}", AtMost: "Разбирательств: не более {n}", Nothing: "Подходящих разбирательств нет.", Submitted: "Подано", Score: "Баллы", Trial: "Разбирательство", Waits: "ждёт человека",
	More: "Далее", CSV: "В виде CSV", JSON: "В виде JSON", Behind: "Указатель отстаёт на записи ({n}), поэтому разбирательства могут отсутствовать.",
	First: "Первое", Second: "Второе", Compare: "Сравнить", CompareHelp: "Выберите два разбирательства, чтобы увидеть их рядом.",
	SideBySide: "Два разбирательства рядом", Same: "В обоих рассмотрены одни и те же доказательства.", Different: "Рассмотрены разные доказательства. Замечания считаются одинаковыми, если совпадают правило и критерий.",
	One: "Первое разбирательство", Other: "Второе разбирательство", Criterion: "Присяжный и критерий", Total: "всего", Reasons: "Обоснования",
	Both: "Найдено в обоих", OnlyOne: "Только в первом", OnlyOther: "Только во втором", NoFindings: "Нет.", By: "нашли", Message: "сообщение {n}", Unfounded: "в сообщении нет этой цитаты",
	NoJudgment: "Решения пока нет.", NoAnswer: "не ответил",
	SearchTitle: "Поиск записей", SearchLead: "Кто это сказал и когда. Находятся записи, которые вам можно читать; все условия действуют одновременно.",
	HitHelp:  "Регистр букв не важен: не менее трёх букв или двух знаков письма без пробелов. Запечатанное отдельно не находится.",
	OnlySaid: "Только то, что сказал сам участник, а не то, что ему лишь передали", Actor: "Кто (полное имя)", Action: "Вид действия", Claimed: "Заявленное время с", Chain: "Цепочка или разбирательство",
	Hits: "Записей на этой странице: {n}", HitsBehind: "Указатель отстаёт на записи ({n}), поэтому записи могут отсутствовать.",
	ProvedHelp: "Кто и когда это сказал, проверяет этот сервер по собственному файлу доверия. Файл, который доказывает это другим, есть на странице записи.",
	NotYet:     "Пока ничего. Поиск продолжается на следующей странице.", NoHits: "Подходящих записей нет.", SaidIn: "Сказано в", GivenIn: "Получено в", ItsTrial: "Её разбирательство:", SawActOf: "видел действие агента",
	History: "Разбирательства этого агента", HistoryLead: "Числа по последним завершённым разбирательствам ({n}).", NoHistory: "Нет разбирательств агента с таким именем.",
	Cost: "Стоимость ответов присяжных", Agreement: "Согласие присяжных до обсуждения", Kappa: "Каппа Флейса", Moved: "Смены позиции в обсуждениях", Turned: "Разбирательства, где обсуждение изменило большинство",
	Seat: "Присяжный", Asked: "спрошен", Answered: "ответил", Changes: "смены позиции", Undefined: "не определено",
}
