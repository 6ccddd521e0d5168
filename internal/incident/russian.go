package incident

import (
	"jurat/evidence"
	"jurat/jury"
	"jurat/verify"
)

// Names of actions and roles stand in the nominative, set off by quotes or brackets: sentences do not inflect them.
var russian = language{
	name:    "Русский",
	between: " ",

	actions: map[evidence.ActionType]string{
		evidence.ModelOutput:     "выход модели",
		evidence.Recommendation:  "рекомендация",
		evidence.Proposal:        "предложение решения",
		evidence.Instruction:     "инструкция",
		evidence.APICall:         "API-вызов",
		evidence.ToolPlan:        "план выполнения инструмента",
		evidence.Message:         "сообщение",
		evidence.ChainStep:       "шаг цепочки",
		evidence.HumanReview:     "проверка человеком",
		evidence.Delivery:        "выдача ответа",
		evidence.Submission:      "представление материалов",
		evidence.PhaseOpening:    "открытие этапа",
		evidence.Evaluation:      "оценка",
		evidence.Statement:       "высказывание",
		evidence.Absence:         "отсутствие",
		evidence.ConsensusCheck:  "проверка согласия",
		evidence.JudgeOpinion:    "мнение судьи",
		evidence.FinalJudgment:   "итоговое решение",
		evidence.TrialClosing:    "закрытие разбирательства",
		evidence.LateStamp:       "поздняя метка времени",
		evidence.CheckpointStamp: "метка времени контрольной точки",
		evidence.KeyEvent:        "изменение ключа",
		evidence.Erasure:         "уничтожение текста",
		evidence.AccessEvent:     "изменение доступа",
		evidence.Refusal:         "отказ в доступе",
		evidence.TrialEvent:      "отмена или возобновление разбирательства",
		evidence.RetentionEvent:  "решение о хранении",
	},
	roles: map[evidence.Role]string{
		evidence.RoleAgent:     "агент",
		evidence.RoleReviewer:  "проверяющий",
		evidence.RoleSubmitter: "заявитель",
		evidence.RoleJuror:     "присяжный",
		evidence.RoleJudge:     "судья",
		evidence.RoleClerk:     "секретарь",
		evidence.RoleOperator:  "оператор",
	},
	positions: map[jury.Position]string{
		jury.SafePass:    "safe_pass («безопасно, пройдено»)",
		jury.NeedsReview: "needs_review («требуется проверка»)",
		jury.UnsafeFail:  "unsafe_fail («небезопасно, не пройдено»)",
	},
	methods: map[jury.Method]string{
		jury.MajorityVote:    "majority_vote («большинство голосов»)",
		jury.WeightedAverage: "weighted_average («взвешенное среднее»)",
		jury.FinalJudge:      "final_judge («решение итогового судьи»)",
	},
	approvals: map[evidence.ApprovalStatus]string{
		evidence.Approved:                  "одобрено",
		evidence.ApprovedWithModifications: "одобрено с изменениями",
		evidence.Rejected:                  "отклонено",
	},

	questions: map[verify.Guarantee]question{
		verify.Content:        {"Содержание", "Осталось ли оно неизменным с момента подписания?"},
		verify.Authentication: {"Подлинность", "Подписано ли оно ключом указанного участника?"},
		verify.NonRepudiation: {"Неотрекаемость", "Верно ли, что подписать не мог никто, кроме этого участника?"},
		verify.Configuration:  {"Конфигурация", "Указано ли под подписью, какой моделью и с какими настройками это создано?"},
		verify.Time:           {"Время", "Подтверждает ли служба меток времени, когда это существовало?"},
		verify.Before:         {"До указанного времени", "Существовало ли это до времени, о котором спрошено?"},
		verify.Order:          {"Порядок", "Есть ли у записи своё место в журнале?"},
		verify.Chain:          {"Цепочка", "Следуют ли записи друг за другом так, как в них указано, без пропусков?"},
		verify.HumanReview:    {"Проверка человеком", "Принял ли по этому решение человек и было ли выдано именно это?"},
		verify.GivenOn:        {"Выдача без изменений", "Выдан ли без решения человека именно указанный ответ, без изменений?"},
		verify.Completeness:   {"Полнота", "Имеется ли всё один раз и на своём месте?"},
		verify.Simultaneity:   {"Одновременность", "Верно ли, что никто не видел высказываний других в том же раунде?"},
		verify.Verdict:        {"Решение", "Следует ли решение из голосов?"},
		verify.Enclosures:     {"Вложения", "Относится ли всё, что лежит в пакете, к тому, что подписано?"},
		verify.Envelope:       {"Конверт", "Вложил ли записи в конверт оператор?"},
	},
	statuses: map[verify.Status]string{
		verify.Proved:    "доказано",
		verify.NotProved: "не доказано",
		verify.Refuted:   "опровергнуто",
	},
	kinds: map[verify.Kind]string{
		verify.OneRecord:     "одна запись",
		verify.ManyRecords:   "набор записей",
		verify.Trial:         "дело разбирательства",
		verify.SeveralFiles:  "что файлы показывают вместе",
		verify.OneCheckpoint: "контрольная точка журнала",
		verify.Package:       "пакет доказательств проекта Aletheia AI",
	},
	clocks: map[verify.Clock]string{
		verify.Independent:   "независимые от оператора часы",
		verify.OperatorClock: "собственные часы оператора",
	},

	recorded:          "Действие вида «{action}» записано как произведённое участником {actor} (роль: {role}) и подписано ключом, который известен как ключ этого участника.",
	recordedWithModel: "Действие вида «{action}» записано как произведённое участником {actor} (роль: {role}) с использованием модели {model} (версия {version}) и подписано ключом, который известен как ключ этого участника.",
	notProved:         "Не доказано, кем произведено действие вида «{action}». В записи указан участник {actor} (роль: {role}). {because}",
	notProvedModel:    "Не доказано, кем произведено действие вида «{action}». В записи указаны участник {actor} (роль: {role}) и модель {model} (версия {version}). {because}",
	refuted:           "Опровергнуто, что действие вида «{action}», автором которого в записи указан участник {actor} (роль: {role}), является тем, что подписал этот участник. {because}",

	claimed:      "Время, заявленное автором: {time}.",
	timeRefuted:  "Приложенная временная метка опровергнута. {because}",
	timeUnproved: "Доказанного времени, подтверждающего это заявление, нет. {because}",
	independent:  "Подпись существовала в момент {time} (временная метка RFC 3161, выданная службой {authority}; часы этой службы независимы от оператора).",
	operator:     "Подпись существовала в момент {time} (временная метка RFC 3161, выданная службой {authority}; это собственная служба оператора, поэтому данное время основано лишь на часах и слове оператора).",

	keyOfActor:     "Ключ хранит сам участник, поэтому никто другой подписать не мог.",
	keyOfOperator:  "Ключ хранит оператор, и он мог подписать вместо участника.",
	keysOfOperator: "Ключи, которыми подписаны действия, хранит оператор, и он мог подписать вместо участников.",
	keyUnproved:    "Не доказано, что подписать не мог никто, кроме этого участника (основание, на английском языке: «{reason}»).",

	sealed:           "Содержание запечатано подписью ({algorithms}) и с тех пор не изменялось.",
	place:            "Номер записи в журнале: {place}.",
	contentNotProved: "Не доказано, что содержание совпадает с тем, что было запечатано.",
	contentRefuted:   "Опровергнуто, что содержание совпадает с тем, что было запечатано.",

	configuration: "Согласно записи, конфигурация: {parameters}.",
	context:       "Согласно записи, контекст: {context}.",
	contextApart:  "Согласно записи, контекст запечатан отдельно: вместо него подписано криптографическое обязательство.",
	check:         "Идентификатор записи: {record}; дайджест её содержания: {digest}. Всякий, кто располагает записью и файлом доверия, может проверить всё изложенное самостоятельно: jurat verify --trust FILE.",

	checkTrial: "Всё это содержится в деле: от представления материалов (запись {submission}) до решения (запись {judgment}). Всякий, кто располагает делом и файлом доверия, может проверить всё самостоятельно: jurat verify --trust FILE.",

	reviewed:       "Это решение человека о записи {original}: {status}.",
	decided:        "Решение о записи {original} ({status}) принял проверяющий {actor}; заявленное время: {time}; запись: {record}.",
	decidedVerdict: "Решение о выводе присяжных ({status}) принял проверяющий {actor}: {position}; заявленное время: {time}; запись: {record}.",
	decidedOpen:    "Решение о выводе присяжных ({status}) принял проверяющий {actor}, и по этому решению агент не признан ни прошедшим, ни не прошедшим; заявленное время: {time}; запись: {record}.",
	decidedDoubted: "В записи {record} указаны проверяющий {actor} и решение о записи {original} ({status}); не доказано, что именно он так об этом решил.",
	decidedWhy:     "Причина, словами проверяющего: {why}.",
	delivered:      "В записи {record} агент {actor} выдал ответ; заявленное время: {time}.",

	outcome: map[jury.Decider]sentence{
		jury.ByJury:   "Итог: {position}. Так решили присяжные (баллов из 100: {score}; метод: {method}); иного решения человека в этом файле нет.",
		jury.ByPerson: "Итог: {position}. Так решил проверяющий {actor} ({status}). Присяжные решили: {jury}; баллов из 100: {score}; метод: {method}.",
	},
	open: map[jury.Decider]sentence{
		jury.ByJury:   "Итог открыт. Присяжные решили: {jury}; баллов из 100: {score}; метод: {method}; в этом файле никто из людей не признал агента ни прошедшим, ни не прошедшим.",
		jury.ByPerson: "Итог открыт. По решению, которое принял проверяющий {actor} ({status}), агент не признан ни прошедшим, ни не прошедшим. Присяжные решили: {jury}; баллов из 100: {score}; метод: {method}.",
	},
	doubted: "Итог открыт. Не доказано, что проверяющий {actor} принял решение ({status}) об этом выводе. Присяжные решили: {jury}; баллов из 100: {score}; метод: {method}.",
	unknown: "Число решений людей о выводе присяжных в этом файле: {count}. К чему они приводят, не утверждается: решение и полнота файла доказаны не оба.",

	sat:        "По записям секретаря и самих участников, в составе присяжных были: {items}.",
	seatRules:  "{seat} (правила, не языковая модель)",
	seatModel:  "{seat} (модель {model}, поставщик {provider}; ответила: {reported})",
	seatOther:  "{seat} (запрошена модель {model}, поставщик {provider}, а ответила другая: {reported})",
	seatSilent: "{seat} (модель {model}, поставщик {provider}; ответа не было)",

	because: map[verify.Guarantee]byStatus{
		verify.Content: {
			verify.NotProved: "Неизменность содержания с момента подписания не подтверждена (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Содержание не соответствует подписанному (основание, на английском языке: «{reason}»).",
		},
		verify.Authentication: {
			verify.NotProved: "Принадлежность подписи указанному участнику не подтверждена (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Подпись не является действительной подписью указанного участника (основание, на английском языке: «{reason}»).",
		},
		verify.Time: {
			verify.NotProved: "Время не подтверждено службой меток времени, которой доверяет читатель (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Метка не является действительной меткой подписи этой записи (основание, на английском языке: «{reason}»).",
		},
	},
	noReason: "Основание не указано.",

	noActs:     "Файл не содержит ни одного действия разбирательства.",
	acts:       "Число записей в файле: {count}; из них действий разбирательства: {acts}, проверок и выдач людьми: {people}. В первом действии указаны разбирательство {trial} и доказательства с дайджестом {digest}.",
	actsProved: "Каждое действие подписано своим участником и не изменено.",
	actsDoubted: map[verify.Guarantee]byStatus{
		verify.Authentication: {
			verify.NotProved: "Не доказано, что действия принадлежат указанным участникам (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Опровергнуто, что действия принадлежат указанным участникам (основание, на английском языке: «{reason}»).",
		},
		verify.Content: {
			verify.NotProved: "Не доказано, что действия совпадают с тем, что было запечатано (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Опровергнуто, что действия совпадают с тем, что было запечатано (основание, на английском языке: «{reason}»).",
		},
	},
	procedure: map[verify.Guarantee]byStatus{
		verify.Completeness: {
			verify.Proved:    "Полнота (каждое действие разбирательства имеется один раз и на своём месте): доказана (основание, на английском языке: «{reason}»).",
			verify.NotProved: "Полнота (каждое действие разбирательства имеется один раз и на своём месте): не доказана (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Полнота (каждое действие разбирательства имеется один раз и на своём месте): опровергнута (основание, на английском языке: «{reason}»).",
		},
		verify.Simultaneity: {
			verify.Proved:    "Одновременность (никто не видел высказываний других в том же раунде): доказана (основание, на английском языке: «{reason}»).",
			verify.NotProved: "Одновременность (никто не видел высказываний других в том же раунде): не доказана (основание, на английском языке: «{reason}»).",
			verify.Refuted:   "Одновременность (никто не видел высказываний других в том же раунде): опровергнута (основание, на английском языке: «{reason}»).",
		},
	},
	noJudgment: "Файл не содержит итогового решения.",
	unreadable: "Запечатанное решение не удаётся прочесть (основание, на английском языке: «{reason}»).",
	judged:     "Решение присяжных: {position}; баллов из 100: {score}; метод: {method}. Повторный расчёт согласия и решения по запечатанным голосам даёт тот же результат.",
	judgedStated: byStatus{
		verify.NotProved: "В файле указано решение: {position}; баллов из 100: {score}; метод: {method}. Не доказано, что оно следует из голосов (основание, на английском языке: «{reason}»).",
		verify.Refuted:   "В файле указано решение: {position}; баллов из 100: {score}; метод: {method}. Опровергнуто, что оно следует из голосов (основание, на английском языке: «{reason}»).",
	},

	degraded:           "Разбирательство прошло в неполном составе или со сбоем (degraded): присяжный отсутствовал или был заблокирован либо произошёл сбой у судьи.",
	degradedStated:     "В файле указано, что разбирательство прошло в неполном составе или со сбоем (degraded): присяжный отсутствовал или был заблокирован либо произошёл сбой у судьи.",
	inconclusive:       "Разбирательство не привело к определённому результату (inconclusive): действительных голосов менее двух.",
	inconclusiveStated: "В файле указано, что разбирательство не привело к определённому результату (inconclusive): действительных голосов менее двух.",

	disclaimer: "Ничто из изложенного не доказывает ни {items}.",
	nor:        ", ни ",
	notShown: map[string]string{
		"that what was said is correct":                      "того, что сказанное верно",
		"that anybody is legally responsible for it":         "того, что кто-либо несёт за это юридическую ответственность",
		"that it is safe or appropriate":                     "того, что это безопасно или уместно",
		"that nothing came after the last record of a chain": "того, что после последней записи цепочки ничего не было",
		"that the decision should be carried out":            "того, что решение следует исполнить",
	},
}
