"""The cues of `cues` in other languages: German, French, Spanish, Portuguese, Italian, Dutch, Russian, CJK.

Words match as whole words, in lower case; signs (Chinese, Japanese, Korean) match anywhere. Each line decides a reply
of the corpora or of `tests/stages/rescue/test_cues.py`. Those of `FOREIGN_INTENT` allow a call, so they also list verbs
that no such reply has. Whether a call only repeats what the model was shown is decided elsewhere, without words: see
`stages.reading.provenance`.
"""

FOREIGN_SHOWN = (
    # German
    r"\w+ (?:ich|wir) (?:\w+ )?nicht(?: \w+)?$|(?:lehne|verweigere) (?:ich|es)",
    r"(?:zum )?beispiel\w*|z\.\s?b\.|etwa so|(?:sieht|sähe|schaut) (?:\w+ ){0,5}(?:so|wie folgt|aus)",
    r"(?:du|sie|ihr|man) (?:kannst|können|könnt|kann|könnte\w*|müsste\w*)",
    r"(?:soll|darf|möchtest du|möchten sie)\b[^?]*\?$",
    r"(?:sobald|nachdem|wenn erst) (?:du|sie|ihr) (?:\w+ ){0,3}(?:bestätig|zustimm|einverstanden|freig)\w*",
    # French
    r"par exemple|p\.\s?ex\.|exemples?|ressembl\w+|comme suit",
    r"(?:ne|n['\u2019]) ?(?:\w+ ){0,2}(?:pas|jamais) (?:\w+ ){0,3}(?:appel|exécut|lanc|envo|utilis)\w*|jamais",
    r"(?:dois-je|puis-je|voulez-vous|veux-tu|souhaitez-vous|souhaites-tu)",
    r"(?:dès que|quand|une fois que|après que) (?:vous|tu) (?:\w+ ){0,2}(?:confirm|valid|accept|approuv)\w*",
    # Spanish
    r"(?:por )?ejemplos?|p\.\s?ej\.|se ver(?:ía|á)|(?:puedes|usted puede|se puede|podr(?:ías?|íamos))",
    r"(?:no|nunca) (?:\w+ ){0,3}(?:llam(?:es?|en|ar|aré)|ejecut\w+|enví\w+|envi\w+|uses)",
    r"(?:debo|puedo|quieres|quiere|desea|deseas)\b[^?]*\?$",
    r"(?:cuando|una vez que|en cuanto|después de que) (?:\w+ ){0,2}(?:confirm|aprueb|acept)\w*",
    # Portuguese
    r"por exemplo|exemplos?|voc[êe] (?:pode|poderia|deve)|pode-se|poderia|se (?:voc[êe]|quiser|desejar|precisar)",
    r"(?:não|nunca) (?:\w+ ){0,3}(?:cham|execut|envi)\w+|(?:ferramentas|funções) disponíveis|o formato é|suponha",
    r"(?:quando|assim que|depois que) (?:\w+ ){0,2}(?:confirm|aprov|aceit)\w*",
    # Italian
    r"(?:per|ad) esempio|esempi\w?|(?:puoi|potresti|potrebbe|si può)|se (?:vuoi|vuole|desideri)|sarebbe|il formato è",
    r"(?:non|mai) (?:\w+ ){0,3}(?:chiam|esegu|invi)\w+|(?:strumenti|funzioni) disponibili",
    r"(?:devo|posso|vuoi|vuole)\b[^?]*\?$",
    r"(?:quando|appena|dopo che|non appena) (?:\w+ ){0,2}(?:conferm|approv|accett)\w*",
    # Dutch
    r"bijvoorbeeld|bijv\.|voorbeeld\w*|(?:kun|kunt|kan) (?:je|u|men)|(?:je|u|men) (?:kunt|kan|zou|moet)",
    r"zou(?:den)? (?:er|ik|je|men|u)|(?:niet|nooit) (?:\w+ ){0,3}(?:aanroep|uitvoer|verstu|gebruik)\w*",
    r"(?:zal|mag|wil|wilt)\b[^?]*\?$|beschikbare (?:tools|functies)",
    r"(?:zodra|nadat) (?:je|u) (?:\w+ ){0,3}(?:bevestig|akkoord|goedkeur|instem)\w*",
    # Russian
    r"например|к примеру|пример\w*|выглядит|(?:вы|ты) (?:можете|можешь|могли|мог)|можно",
    r"(?:не|никогда) (?:\w+ ){0,2}(?:вызыва|выполня|запуска|отправля|использу|вызов|буду)\w*",
    r"(?:хотите|выполнить|вызвать|запустить|мне)\b[^?]*\?$|(?:я|мы) бы",
    r"(?:как только|после того,? как|когда) (?:вы|ты) (?:подтверд|соглас|одобр)\w*|после вашего \w+",
)
FOREIGN_SHOWN_SIGNS = (
    r"例如|比如|譬如|示例|例子|样例|範例|举例|格式(?:如下|为|是)|看起来|(?:你|您|用户|人们)(?:也)?可以",
    r"不(?:要|会|应|必|得|能|可)?(?:再|直接|实际)?(?:调用|执行|运行|使用|发送)|切勿|请勿|是否|要不要|吗[\uff1f?]?$",
    r"(?:确认|同意|批准)(?:后|之后|以后)|ご?(?:確認|承認|許可)(?:後|いただ|され|できたら)",
    r"(?:확인|승인)(?:하시면|해 주시면|되면| ?후)",
    r"例えば|たとえば|例[:\uff1a]|例$|の例|例として|サンプル|ように(?:なり|書|呼|し)|形式は|場合は|もし|仮に",
    r"しないで|呼び出(?:さ|しません)|実行し(?:ない|ません)|(?:利用|使用)(?:可能な|できる)(?:ツール|関数)",
    r"예를 들|예시|예[:\uff1a]|예제|형식은|경우에|수 (?:있습|있어|있다|없)|하지 (?:마|않)|할까요|시겠습니까",
)
FOREIGN_REPORTED = (
    # Somebody else acts
    r"(?:модел[ьи]|агент|ассистент|сервер|бот)",
    r"formato|formaat|формат\w*",
    # French
    r"(?:a|ont|avait) (?:\w+ )?(?:répondu|renvoyé|retourné|envoyé|écrit|dit|affiché|reçu)|renvoie|contient",
    # Spanish
    r"devolvió|devuelve|respondió|(?:ha|había) (?:devuelto|respondido|enviado)|(?:\w+ )dice|decía|contiene",
    r"contenía|muestra|mostró|envió",
    # Portuguese
    r"retornou|respondeu|dizia|(?:\w+ )diz|contém|continha|mostrou|enviou|escreveu",
    # Russian
    r"верну\w+|возвра\w+|ответил\w*|содерж\w+|показал\w*|показыва\w+|написал\w*|отправил\w*|сказал\w*",
)
FOREIGN_REPORTED_SIGNS = (
    r"返回(?:了|的|值)|输出|结果(?:是|为|如下)?[:\uff1a]?$|显示|包含|写道|写着|说[:\uff1a]?$|日志|之前|刚才|已经",
)
FOREIGN_INTENT = (
    r"ich (?:werde|rufe|muss|will|möchte|führe|nutze|verwende|suche|schaue|hole|frage|starte|sende|prüfe)",
    r"lass(?:en sie)? mich|jetzt|nun",
    r"(?:werde|rufe|muss|führe|nutze|verwende|suche|hole) ich|zuerst|zunächst",
    r"je (?:vais|dois|veux|lance|appelle|cherche|consulte|vérifie|utilise|fais)|laiss\w+-moi|permett\w+-moi",
    r"maintenant|d['\u2019]abord|voyons",
    r"voy a|vamos a|necesito|déjame|permíteme|ahora|primero|llamaré|usaré|buscaré|consultaré|procedo",
    r"vou|preciso|deixe-me|agora|primeiro|chamarei|usarei|buscarei|vamos",
    r"vado a|sto per|lasciami|fammi|ora|adesso|chiamerò|userò|cercherò|verifico|procedo|eseguo",
    r"ik (?:ga|zal|moet|wil|roep|zoek|gebruik|haal|controleer)|laat me|nu|eerst",
    r"(?:вызову|вызываю|проверю|посмотрю|поищу|найду|использую)|сейчас|давайте|позвольте|сначала|теперь",
)
FOREIGN_INTENT_SIGNS = (
    r"我(?:将|会|要|来|需要|现在|先|正在|去|得|应该)|让我|现在|首先|接下来|正在",
    r"これから|今から|まず|次に|ましょう|必要があ|(?:呼び出し|調べ|確認し|検索し|実行し|取得し|使い|使用し)ます",
    r"하겠습니다|할게요|지금|먼저|호출합니다|확인합니다|검색합니다",
)
FOREIGN_AFTERWARDS = (
    r"(?:ist|war|dient|sind) (?:\w+ ){0,2}(?:als )?(?:\w+ )?(?:beispiel|vorlage|platzhalter)|soll ich|möchtest du",
    r"möchten sie",
    r"(?:habe|hat|werde|wurde) (?:\w+ ){0,5}nicht (?:\w+ )?(?:auf|aus|ge)\w+",
    r"voulez-vous|veux-tu|souhaitez-vous",
    r"je (?:ne |n['\u2019])(?:\w+ |l['\u2019])?(?:ai|ferai|vais|lancerai|exécuterai)|puis-je|dois-je",
    r"es (?:\w+ )?(?:un )?ejemplo|(?:quieres|quiere|desea|deseas) que|debo (?:ejecut|llam|envi)\w+",
    r"no (?:lo |la )?(?:he|voy a|fue)",
    r"é (?:\w+ )?(?:um )?exemplo|quer que eu|deseja que|devo (?:execut|cham|envi)\w+|não (?:foi|vou|executei|chamei)",
    r"è (?:\w+ )?(?:un )?esempio|vuoi che|desidera che|devo (?:esegu|chiam|invi)\w+",
    r"non (?:ho|l['\u2019]ho|è stat[ao])",
    r"is (?:\w+ )?(?:een )?voorbeeld|wil je dat|wilt u dat|zal ik (?:dit|het|deze)",
    r"(?:это|лишь) (?:\w+ )?пример|хотите|(?:мне )?(?:выполнить|вызвать|запустить)[^.?]{0,60}\?",
    r"не (?:выполн|вызва|вызыв|запус)\w+|вернул\w*",
)
FOREIGN_AFTERWARDS_SIGNS = (
    r"(?:没有|并未|未|不会|还没)(?:实际|真的)?(?:执行|调用|运行)|吗\uff1f|请确认",
    r"例です|一例|サンプル|よろしいですか|しますか|ましょうか|実行して(?:い)?ません|ように(?:なり|書)",
    r"예시입니다|예입니다|할까요|시겠습니까|원하시|실행하지",
)
FOREIGN_SUBJECT = (
    r"ist|war|wäre|würde|hat|hatte|gibt|gab|bedeutet|liefert|est|était|serait|renvoie|es|era|sería|devuelve",
    r"devolvió|foi|é",
    r"seria|retorna|retornou|è|sarebbe|restituisce|zou|heeft|geeft|вернул\w*|возвращает|является|означает",
)
FOREIGN_SUBJECT_SIGNS = r"是|会|将|表示|返回|这|は|が|を|という|のような|를|을|은|는"
