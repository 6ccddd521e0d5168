package incident

import (
	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

var japanese = language{
	name:    "日本語",
	between: "", // the full stop is wide enough

	actions: map[evidence.ActionType]string{
		evidence.ModelOutput:     "モデル出力",
		evidence.Recommendation:  "推奨",
		evidence.Proposal:        "提案",
		evidence.Instruction:     "指示",
		evidence.APICall:         "API 呼び出し",
		evidence.ToolPlan:        "ツール実行計画",
		evidence.Message:         "メッセージ",
		evidence.ChainStep:       "連鎖のステップ",
		evidence.HumanReview:     "人によるレビュー",
		evidence.Delivery:        "提供",
		evidence.Submission:      "提出",
		evidence.PhaseOpening:    "フェーズの開始",
		evidence.Evaluation:      "評価",
		evidence.Statement:       "発言",
		evidence.Absence:         "欠席",
		evidence.ConsensusCheck:  "合意チェック",
		evidence.JudgeOpinion:    "裁定者の意見",
		evidence.FinalJudgment:   "最終判定",
		evidence.TrialClosing:    "審理の終結",
		evidence.LateStamp:       "事後のタイムスタンプ",
		evidence.CheckpointStamp: "チェックポイントのタイムスタンプ",
		evidence.KeyEvent:        "鍵の変更",
		evidence.Erasure:         "消去",
		evidence.AccessEvent:     "アクセス権の変更",
		evidence.Refusal:         "拒否",
		evidence.TrialEvent:      "審理の中止または再開",
		evidence.RetentionEvent:  "保存に関する決定",
	},
	roles: map[evidence.Role]string{
		evidence.RoleAgent:     "エージェント",
		evidence.RoleReviewer:  "レビュー担当者",
		evidence.RoleSubmitter: "提出者",
		evidence.RoleJuror:     "陪審員",
		evidence.RoleJudge:     "裁定者",
		evidence.RoleClerk:     "書記",
		evidence.RoleOperator:  "運営者",
	},
	positions: map[jury.Position]string{
		jury.SafePass:    "safe_pass（安全・合格）",
		jury.NeedsReview: "needs_review（要確認）",
		jury.UnsafeFail:  "unsafe_fail（危険・不合格）",
	},
	methods: map[jury.Method]string{
		jury.MajorityVote:    "majority_vote（多数決）",
		jury.WeightedAverage: "weighted_average（加重平均）",
		jury.FinalJudge:      "final_judge（最終裁定者による判定）",
	},
	approvals: map[evidence.ApprovalStatus]string{
		evidence.Approved:                  "承認",
		evidence.ApprovedWithModifications: "変更付き承認",
		evidence.Rejected:                  "却下",
	},

	questions: map[verify.Guarantee]question{
		verify.Content:        {"内容", "署名された時から変わっていないか。"},
		verify.Authentication: {"認証", "記載された主体の鍵で署名されているか。"},
		verify.NonRepudiation: {"否認防止", "その主体以外の誰にも署名できなかったか。"},
		verify.Configuration:  {"設定", "どのモデルとどの設定によるものかが、署名の対象として記載されているか。"},
		verify.Time:           {"時刻", "存在していた時刻を時刻認証局が証明しているか。"},
		verify.Before:         {"指定時刻より前", "指定された時刻より前に存在していたか。"},
		verify.Order:          {"順序", "ログの中に所定の位置があるか。"},
		verify.Chain:          {"連鎖", "記録が、記載どおりに欠けることなく続いているか。"},
		verify.HumanReview:    {"人によるレビュー", "人がこれについて判断し、これが提供されたか。"},
		verify.GivenOn:        {"そのままの提供", "人の判断なしに提供されたものは、記載された回答そのままか。"},
		verify.Completeness:   {"完全性", "すべてが、一度ずつ、所定の位置にあるか。"},
		verify.Simultaneity:   {"同時性", "同じラウンドの他者の発言を誰も見ずに発言したか。"},
		verify.Verdict:        {"判定", "判定が票から導かれるか。"},
		verify.Enclosures:     {"同梱物", "パッケージの中のすべてが、署名されたものに属しているか。"},
		verify.Envelope:       {"封筒", "記録を封筒に入れたのは運用者か。"},
	},
	statuses: map[verify.Status]string{
		verify.Proved:    "証明済み",
		verify.NotProved: "未証明",
		verify.Refuted:   "反証",
	},
	kinds: map[verify.Kind]string{
		verify.OneRecord:     "単一の記録",
		verify.ManyRecords:   "記録の束",
		verify.Trial:         "審理の事件ファイル",
		verify.SeveralFiles:  "複数のファイルが合わせて示すこと",
		verify.OneCheckpoint: "ログのチェックポイント",
		verify.Package:       "Aletheia AI プロジェクトの証拠パッケージ",
	},
	clocks: map[verify.Clock]string{
		verify.Independent:   "運用者から独立した時計",
		verify.OperatorClock: "運用者自身の時計",
	},

	recorded:          "この行為（種別：{action}）は{role} {actor} のものとして記録され、その主体のものと確認されている鍵で署名されています。",
	recordedWithModel: "この行為（種別：{action}）は、モデル {model}（バージョン {version}）を用いた{role} {actor} のものとして記録され、その主体のものと確認されている鍵で署名されています。",
	notProved:         "この行為（種別：{action}）を誰が行ったかは証明されていません。記録には{role} {actor} の名が記載されています。{because}",
	notProvedModel:    "この行為（種別：{action}）を誰が行ったかは証明されていません。記録には{role} {actor} の名と、モデル {model}（バージョン {version}）が記載されています。{because}",
	refuted:           "この行為（種別：{action}）の記録は{role} {actor} を作成者としていますが、その主体が署名したとおりのものであることは反証されています。{because}",

	claimed:      "作成者が申告している時刻は {time} です。",
	timeRefuted:  "記録に付されたタイムスタンプは反証されています。{because}",
	timeUnproved: "この申告を裏付ける証明された時刻はありません。{because}",
	independent:  "署名は {time} の時点で存在していました（{authority} による RFC 3161 タイムスタンプ。この時刻認証局の時計は運用者から独立しています）。",
	operator:     "署名は {time} の時点で存在していました（{authority} による RFC 3161 タイムスタンプ。これは運用者自身の時刻認証局であり、この時刻の根拠は運用者の時計と言明にとどまります）。",

	keyOfActor:     "署名鍵は主体自身が保管しており、他の誰にも署名できませんでした。",
	keyOfOperator:  "署名鍵は運営者が保管しており、運営者が主体に代わって署名することも可能でした。",
	keysOfOperator: "行為の署名に使われた鍵には運営者が保管しているものがあり、運営者が各主体に代わって署名することも可能でした。",
	keyUnproved:    "主体以外の誰にも署名できなかったことは証明されていません（検証の理由・英語原文：{reason}）。",

	sealed:           "内容は署名（{algorithms}）によって封印されており、それ以後変更されていません。",
	place:            "この記録はログの {place} 番の位置にあります。",
	contentNotProved: "内容が封印されたとおりのものであることは証明されていません。",
	contentRefuted:   "内容が封印されたとおりのものであることは反証されています。",

	configuration: "記録によれば、設定は {parameters} です。",
	context:       "記録によれば、コンテキストは {context} です。",
	contextApart:  "記録によれば、コンテキストは別途封印されています。署名の対象には、コンテキストそのものの代わりに、それに対するコミットメントが含まれています。",
	check:         "記録の識別子は {record}、ペイロードのダイジェストは {digest} です。この記録とトラストファイルを持つ人は誰でも、以上のすべてを独力で検証できます：jurat verify --trust FILE",

	checkTrial: "以上のすべては、提出（記録 {submission}）から最終判定（記録 {judgment}）まで、事件ファイルに含まれています。このファイルとトラストファイルを持つ人は誰でも、独力で検証できます：jurat verify --trust FILE",

	reviewed:       "これは記録 {original} についての人の決定です（{status}）。",
	decided:        "レビュー担当者 {actor} は記録 {original} について決定しました（{status}）。申告された時刻は {time}、記録は {record} です。",
	decidedVerdict: "レビュー担当者 {actor} は判定について決定しました（{status}）：{position}。申告された時刻は {time}、記録は {record} です。",
	decidedOpen:    "レビュー担当者 {actor} は判定について決定しましたが（{status}）、エージェントを合格とも不合格ともしていません。申告された時刻は {time}、記録は {record} です。",
	decidedDoubted: "記録 {record} には、レビュー担当者 {actor} と、記録 {original} についての決定（{status}）が記載されていますが、この人がそれについてそのように決定したことは証明されていません。",
	decidedWhy:     "レビュー担当者自身の述べた理由：{why}。",
	delivered:      "記録 {record} において、エージェント {actor} が回答を提供しました。申告された時刻は {time} です。",

	outcome: map[jury.Decider]sentence{
		jury.ByJury:   "結論は {position} です。これは陪審の判定（100 点中 {score} 点、判定方法は {method}）によるもので、このファイルに人による別の決定はありません。",
		jury.ByPerson: "結論は {position} です。これはレビュー担当者 {actor} の決定（{status}）によるものです。陪審の判定は {jury}、100 点中 {score} 点、判定方法は {method} でした。",
	},
	open: map[jury.Decider]sentence{
		jury.ByJury:   "結論は未決です。陪審の判定は {jury}、100 点中 {score} 点、判定方法は {method} で、このファイルではまだ誰もエージェントを合格とも不合格ともしていません。",
		jury.ByPerson: "結論は未決です。レビュー担当者 {actor} は決定しましたが（{status}）、エージェントを合格とも不合格ともしていません。陪審の判定は {jury}、100 点中 {score} 点、判定方法は {method} でした。",
	},
	doubted: "結論は未決です。レビュー担当者 {actor} がこの判定について決定したこと（{status}）は証明されていません。陪審の判定は {jury}、100 点中 {score} 点、判定方法は {method} でした。",
	unknown: "このファイルには、判定についての人の決定が {count} 件含まれています。判定とファイルの完全性の両方が証明されてはいないため、その結論は述べません。",

	sat:        "書記と各席の記録によれば、陪審の席は次のとおりです：{items}。",
	seatRules:  "{seat}（規則。言語モデルではない）",
	seatModel:  "{seat}（{provider} のモデル {model}。回答したモデル：{reported}）",
	seatOther:  "{seat}（{provider} のモデル {model} が指定されていたが、別のモデルが回答：{reported}）",
	seatSilent: "{seat}（{provider} のモデル {model}。回答なし）",

	because: map[verify.Guarantee]byStatus{
		verify.Content: {
			verify.NotProved: "内容が署名の時点から変わっていないことは確認できません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "内容が署名されたものと一致しません（検証の理由・英語原文：{reason}）。",
		},
		verify.Authentication: {
			verify.NotProved: "署名が、記載された主体の鍵によるものであることは確認できません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "署名は、記載された主体の鍵による有効な署名ではありません（検証の理由・英語原文：{reason}）。",
		},
		verify.Time: {
			verify.NotProved: "信頼された時刻認証局による時刻は確認できません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "タイムスタンプは、この記録の署名に対する有効なものではありません（検証の理由・英語原文：{reason}）。",
		},
	},
	noReason: "理由は示されていません。",

	noActs:     "このファイルには審理の行為が含まれていません。",
	acts:       "このファイルには記録が {count} 件含まれています。うち審理の行為は {acts} 件、人によるレビューと提供は {people} 件です。最初の行為の記録には、審理 {trial} と、ダイジェスト {digest} を持つ証拠が記載されています。",
	actsProved: "すべての行為は、それぞれの主体によって署名され、変更されていません。",
	actsDoubted: map[verify.Guarantee]byStatus{
		verify.Authentication: {
			verify.NotProved: "各行為が、記載された主体によるものであることは証明されていません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "各行為が、記載された主体によるものであることは反証されています（検証の理由・英語原文：{reason}）。",
		},
		verify.Content: {
			verify.NotProved: "各行為が封印されたとおりのものであることは証明されていません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "各行為が封印されたとおりのものであることは反証されています（検証の理由・英語原文：{reason}）。",
		},
	},
	procedure: map[verify.Guarantee]byStatus{
		verify.Completeness: {
			verify.Proved:    "完全性（審理のすべての行為が、一度ずつ、所定の位置にあること）は証明されています（検証の理由・英語原文：{reason}）。",
			verify.NotProved: "完全性（審理のすべての行為が、一度ずつ、所定の位置にあること）は証明されていません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "完全性（審理のすべての行為が、一度ずつ、所定の位置にあること）は反証されています（検証の理由・英語原文：{reason}）。",
		},
		verify.Simultaneity: {
			verify.Proved:    "同時性（同じラウンドの他者の発言を誰も見ずに発言したこと）は証明されています（検証の理由・英語原文：{reason}）。",
			verify.NotProved: "同時性（同じラウンドの他者の発言を誰も見ずに発言したこと）は証明されていません（検証の理由・英語原文：{reason}）。",
			verify.Refuted:   "同時性（同じラウンドの他者の発言を誰も見ずに発言したこと）は反証されています（検証の理由・英語原文：{reason}）。",
		},
	},
	noJudgment: "このファイルには最終判定が含まれていません。",
	unreadable: "封印された最終判定を読み取ることができません（理由・英語原文：{reason}）。",
	judged:     "陪審の判定は {position}、100 点中 {score} 点、判定方法は {method} です。封印された票から合意と判定を再計算すると、同じ結果になります。",
	judgedStated: byStatus{
		verify.NotProved: "ファイルに記載された判定は {position}、100 点中 {score} 点、判定方法は {method} ですが、これが票から導かれることは証明されていません（検証の理由・英語原文：{reason}）。",
		verify.Refuted:   "ファイルに記載された判定は {position}、100 点中 {score} 点、判定方法は {method} ですが、これが票から導かれることは反証されています（検証の理由・英語原文：{reason}）。",
	},

	degraded:           "審理は不完全な状態（degraded）で行われました。陪審員の欠席もしくは遮断、または裁定者の失敗がありました。",
	degradedStated:     "ファイルの記載では、審理は不完全な状態（degraded）で行われ、陪審員の欠席もしくは遮断、または裁定者の失敗があったとされています。",
	inconclusive:       "審理は結論に至りませんでした（inconclusive）。有効な票は二票未満でした。",
	inconclusiveStated: "ファイルの記載では、審理は結論に至らず（inconclusive）、有効な票は二票未満であったとされています。",

	disclaimer: "以上の記述は、次のいずれのことも示すものではありません：{items}。",
	nor:        "、",
	notShown: map[string]string{
		"that what was said is correct":                      "述べられた内容が正しいこと",
		"that anybody is legally responsible for it":         "誰かがそれについて法的責任を負うこと",
		"that it is safe or appropriate":                     "それが安全または適切であること",
		"that nothing came after the last record of a chain": "連鎖の最後の記録の後に何も続かなかったこと",
		"that the decision should be carried out":            "その決定を実行すべきであること",
	},
}
