// Package recordings has the texts of the pages of recorded chains, in each language of package words. A test demands every text in every
// language, with the same places for values.
package recordings

import "jurat/internal/words"

// Texts are the texts of these pages. A place for a value is written {so}.
type Texts struct {
	Title, Lead, From, Chains, Nothing, None                                         string
	Acts, Models, NoModels, Tokens, Broken, Lost, Missed, NoGap, Tried, NotTried, To string

	Page, Earlier, Later, Back, Records, Trials, Send, SendHelp, Conversation, WholeAct, Act string

	Asked, Answered, FirstByte, EndedAfter, Cost, Used, Status                                  string
	Complete, UpstreamError, UpstreamCut, ClientGone, RecorderCut, LostInCrash                  string
	Repeats, Again, Retry, Attempt, Reference, Missing, Error, Problem, Others, Fault, Stopped  string
	Request, Response, ErasedBytes, Withheld, Unsealed, Cut, Encoded, Copied, Wrong             string
	Erased, NothingNew, MoreMessages, SecondHand                                                string
	Began, Ended, Opened, Closed, Configured, Gap, LostCall, ToolChanged, Alive, Unknown, Cause string

	FromRecording string
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
	Title: "Recorded conversations", Lead: "What recorders saw agents do, the newest first. A recorder is a witness: it shows what passed it, and not that nothing else happened.",
	From: "Acts from", Chains: "Chains", Nothing: "No recorded conversation matches.", None: "No recorder has sealed anything here. ‘jurat record --help’ says how one begins.",

	Acts: "{n} acts, {calls} of them calls of models", Models: "Models", NoModels: "no model is named", Tokens: "{in} tokens read and {out} written, by the count of {n} calls",
	Broken: "{n} acts did not come to their end.", Lost: "{n} of them were cut off when the recorder died.", Missed: "By the recorders' own word, {n} calls passed in this time without a record.",
	NoGap: "No gap is recorded.", Tried: "Trials of it", NotTried: "No trial of it is known.", To: "to",

	Page: "Acts {from} to {to} of {n}", Earlier: "Earlier acts", Later: "Later acts", Back: "All recorded conversations", Records: "The chain, record by record, with what is proved of it",
	Trials: "Trials", Send: "Send to trial",
	SendHelp:     "The jury of this server reads this conversation as it was recorded. What it reads then stands in the record of the trial, also texts that are sealed apart here, and cannot be erased there.",
	Conversation: "The conversation", WholeAct: "This act by itself, with all texts", Act: "Act {n}",

	Asked: "model asked for", Answered: "model that answered, by the provider's word", FirstByte: "first byte after {time}", EndedAfter: "ended after {time}",
	Cost: "{usd} by the list of prices", Used: "{in} tokens read, {out} written", Status: "HTTP status {n}",
	Complete: "The answer came to its end.", UpstreamError: "No answer came.", UpstreamCut: "The answer broke off on the provider's side.", ClientGone: "The agent went away before the end of the answer.",
	RecorderCut: "The recorder broke the answer off.", LostInCrash: "The recorder stopped working during the call. How it ended is not known.",
	Repeats: "Messages of its prompt that were shown before, and are not shown again: {n}.", Again: "The answer is again one that was shown before.",
	Retry: "It is another attempt of the request", Attempt: "The agent's library counts it as attempt {n}.",
	Reference: "A part of what the model was given was kept or fetched by the provider, and is not in the bytes:", Missing: "By its own word the recorder did not see:",
	Error: "The provider answered with an error:", Problem: "Not all of the bytes could be read as the protocol has it:", Others: "The agent got {n} more answers to choose from. The record has them.",
	Fault: "This record cannot be read as a part of the conversation:", Stopped: "Why the model stopped:",
	Request: "Request:", Response: "Answer:", ErasedBytes: "the operator has erased its bytes. The log has the act of erasure.", Withheld: "its bytes were sealed apart, and are not shown here.",
	Unsealed: "its bytes passed, and were not sealed.", Cut: "only its beginning is sealed.", Encoded: "it is sealed as it was encoded, because the recorder could not decode it, and is not read.",
	Copied: "its bytes repeat those of an earlier record that cannot be read any more.", Wrong: "its bytes are not those that the record states.",
	Erased: "Erased from this record:", NothingNew: "No message is new in it.", MoreMessages: "{n} more messages", SecondHand: "Second hand: nobody saw the bytes.",
	Began: "The recorder {recorder} began.", Ended: "The recorder {recorder} stopped.", Opened: "The recorder {recorder} let everything pass from now on, recorded or not.",
	Closed: "The recorder {recorder} let nothing pass from now on that is not recorded.", Configured: "The settings of the recorder {recorder} changed.",
	Gap: "The recorder {recorder} says: {n} calls passed without a record.", LostCall: "The recorder {recorder} died during a call of which nothing else is known.",
	ToolChanged: "The definition of a tool changed, says the recorder {recorder}:", Alive: "The recorder {recorder} was at work.", Unknown: "The recorder {recorder} says something that this program does not know.", Cause: "Reason:",

	FromRecording: "The recorded conversation that was judged:",
}

var japanese = Texts{
	Title: "記録された会話", Lead: "記録者が見たエージェントの行為を、新しい順に示します。記録者は証人です。示すのは記録者を通ったものであり、ほかに何も起きなかったことではありません。",
	From: "行為の日時（から）", Chains: "連鎖", Nothing: "該当する記録された会話はありません。", None: "記録者はまだ何も封印していません。始め方は「jurat record --help」で分かります。",

	Acts: "行為{n}件（うちモデルの呼び出し{calls}件）", Models: "モデル", NoModels: "モデルの名前はありません", Tokens: "読んだトークン{in}、書いたトークン{out}（呼び出し{n}件の報告による）",
	Broken: "最後まで届かなかった行為が{n}件あります。", Lost: "そのうち{n}件は、記録者が停止したときに切れました。", Missed: "記録者自身によれば、この間に{n}件の呼び出しが記録されずに通りました。",
	NoGap: "欠落は記録されていません。", Tried: "この会話の審理", NotTried: "この会話の審理は見つかっていません。", To: "から",

	Page: "行為{from}から{to}まで（全{n}件）", Earlier: "前の行為", Later: "次の行為", Back: "記録された会話の一覧", Records: "連鎖の記録と、証明されていること",
	Trials: "審理", Send: "審理にかける",
	SendHelp:     "このサーバーの陪審が、記録されたとおりの会話を読みます。陪審が読んだものは、ここで別に封印されている文も含めて審理の記録に残り、そこからは消去できません。",
	Conversation: "会話", WholeAct: "この行為だけを、すべての文とともに表示", Act: "行為{n}",

	Asked: "指定されたモデル", Answered: "応答したモデル（提供者の報告）", FirstByte: "最初のバイトまで{time}", EndedAfter: "終わりまで{time}",
	Cost: "価格表によれば{usd}", Used: "読んだトークン{in}、書いたトークン{out}", Status: "HTTPステータス{n}",
	Complete: "応答は最後まで届きました。", UpstreamError: "応答はありませんでした。", UpstreamCut: "応答は提供者の側で途切れました。", ClientGone: "応答が終わる前にエージェントが接続を切りました。",
	RecorderCut: "記録者が応答を打ち切りました。", LostInCrash: "呼び出しの途中で記録者が停止しました。どう終わったかは分かりません。",
	Repeats: "すでに表示したため省いた、プロンプト内のメッセージ：{n}件。", Again: "応答は、すでに表示したものと同じです。",
	Retry: "次の要求の再試行です：", Attempt: "エージェントのライブラリによれば{n}回目の試行です。",
	Reference: "モデルに渡されたものの一部は提供者が保持または取得したもので、バイト列にはありません：", Missing: "記録者自身が見ていないと述べているもの：",
	Error: "提供者がエラーを返しました：", Problem: "バイト列の一部は、プロトコルのとおりに読めませんでした：", Others: "エージェントはほかに{n}件の応答を受け取りました。記録にはあります。",
	Fault: "この記録は会話の一部として読めません：", Stopped: "モデルが止まった理由：",
	Request: "要求：", Response: "応答：", ErasedBytes: "運用者がバイト列を消去しました。消去の行為はログにあります。", Withheld: "バイト列は別に封印されており、ここには表示されません。",
	Unsealed: "バイト列は通りましたが、封印されていません。", Cut: "初めの部分だけが封印されています。", Encoded: "記録者が復号できなかったため、符号化されたまま封印されており、読まれていません。",
	Copied: "バイト列は、もう読めない以前の記録のものを繰り返しています。", Wrong: "バイト列は、記録が述べるものと違います。",
	Erased: "この記録から消去されたもの：", NothingNew: "新しいメッセージはありません。", MoreMessages: "ほかにメッセージ{n}件", SecondHand: "また聞き：バイト列は誰も見ていません。",
	Began: "記録者{recorder}が始まりました。", Ended: "記録者{recorder}が止まりました。", Opened: "記録者{recorder}は、ここから、記録の有無にかかわらずすべてを通しました。",
	Closed: "記録者{recorder}は、ここから、記録されないものを通しませんでした。", Configured: "記録者{recorder}の設定が変わりました。",
	Gap: "記録者{recorder}によれば、{n}件の呼び出しが記録されずに通りました。", LostCall: "記録者{recorder}が呼び出しの途中で停止しました。その呼び出しについてほかに分かることはありません。",
	ToolChanged: "記録者{recorder}によれば、道具の定義が変わりました：", Alive: "記録者{recorder}は動いていました。", Unknown: "記録者{recorder}が、このプログラムの知らないことを述べています。", Cause: "理由：",

	FromRecording: "審理された、記録された会話：",
}

var russian = Texts{
	Title: "Записанные разговоры", Lead: "Что регистраторы видели из действий агентов, сначала новое. Регистратор — свидетель: он показывает то, что прошло через него, а не то, что больше ничего не было.",
	From: "Действия с", Chains: "Цепочки", Nothing: "Подходящих записанных разговоров нет.", None: "Регистраторы здесь ещё ничего не заверили. Как начать, скажет «jurat record --help».",

	Acts: "Действий: {n}, из них вызовов моделей: {calls}", Models: "Модели", NoModels: "модель не названа", Tokens: "Прочитано токенов: {in}, написано: {out}, по подсчёту вызовов: {n}",
	Broken: "Действий, не дошедших до конца: {n}.", Lost: "Из них оборвалось с остановкой регистратора: {n}.", Missed: "По словам самих регистраторов, за это время без записи прошло вызовов: {n}.",
	NoGap: "Пропусков не записано.", Tried: "Разбирательства по нему", NotTried: "Разбирательств по нему не найдено.", To: "до",

	Page: "Действия с {from} по {to} из {n}", Earlier: "Раньше", Later: "Дальше", Back: "Все записанные разговоры", Records: "Цепочка по записям и то, что о ней доказано",
	Trials: "Разбирательства", Send: "Передать на разбирательство",
	SendHelp:     "Присяжные этого сервера прочтут разговор так, как он записан. Прочитанное останется в записи разбирательства, в том числе тексты, которые здесь заверены отдельно, и стереть их оттуда нельзя.",
	Conversation: "Разговор", WholeAct: "Это действие отдельно, со всеми текстами", Act: "Действие {n}",

	Asked: "запрошенная модель", Answered: "ответившая модель, по словам поставщика", FirstByte: "первый байт через {time}", EndedAfter: "конец через {time}",
	Cost: "{usd} по прейскуранту", Used: "прочитано токенов: {in}, написано: {out}", Status: "статус HTTP {n}",
	Complete: "Ответ дошёл до конца.", UpstreamError: "Ответа не было.", UpstreamCut: "Ответ оборвался на стороне поставщика.", ClientGone: "Агент ушёл до конца ответа.",
	RecorderCut: "Регистратор оборвал ответ.", LostInCrash: "Во время вызова регистратор перестал работать. Чем вызов кончился, неизвестно.",
	Repeats: "Сообщений запроса, уже показанных выше и не показанных снова: {n}.", Again: "Ответ повторяет уже показанный.",
	Retry: "Это ещё одна попытка запроса", Attempt: "По счёту библиотеки агента это попытка {n}.",
	Reference: "Часть того, что получила модель, хранил или загрузил поставщик, и в байтах её нет:", Missing: "По своим словам, регистратор не видел:",
	Error: "Поставщик ответил ошибкой:", Problem: "Не все байты удалось прочесть так, как велит протокол:", Others: "Агент получил и другие ответы: {n}. Они есть в записи.",
	Fault: "Эту запись нельзя прочесть как часть разговора:", Stopped: "Почему модель остановилась:",
	Request: "Запрос:", Response: "Ответ:", ErasedBytes: "оператор стёр его байты. Акт стирания есть в журнале.", Withheld: "его байты заверены отдельно и здесь не показаны.",
	Unsealed: "его байты прошли, но не заверены.", Cut: "заверено только начало.", Encoded: "он заверен в том виде, как был закодирован, потому что регистратор не смог его раскодировать, и не прочитан.",
	Copied: "его байты повторяют байты более ранней записи, которую больше нельзя прочесть.", Wrong: "его байты не те, о которых говорит запись.",
	Erased: "Стёрто из этой записи:", NothingNew: "Новых сообщений в нём нет.", MoreMessages: "Ещё сообщений: {n}", SecondHand: "Из вторых рук: байтов никто не видел.",
	Began: "Регистратор {recorder} начал работу.", Ended: "Регистратор {recorder} остановился.", Opened: "С этого момента регистратор {recorder} пропускал всё, с записью или без неё.",
	Closed: "С этого момента регистратор {recorder} не пропускал ничего без записи.", Configured: "Настройки регистратора {recorder} изменились.",
	Gap: "Регистратор {recorder} сообщает: вызовов прошло без записи: {n}.", LostCall: "Регистратор {recorder} перестал работать во время вызова, о котором больше ничего не известно.",
	ToolChanged: "Определение инструмента изменилось, сообщает регистратор {recorder}:", Alive: "Регистратор {recorder} работал.", Unknown: "Регистратор {recorder} сообщает то, чего эта программа не знает.", Cause: "Причина:",

	FromRecording: "Записанный разговор, который рассматривался:",
}
