"""The cues of `cues` in other languages: German, French, Spanish, Portuguese, Italian, Dutch, Russian, CJK.

Words stand from the beginning of a word to its end, in lower case; signs (Chinese, Japanese, Korean) anywhere.
"""

SHOWN = (
    # German
    r"\w+ (?:ich|wir) (?:\w+ )?nicht(?: \w+)?$|(?:lehne|verweigere) (?:ich|es)",
    r"(?:zum )?beispiel\w*|z\.\s?b\.|etwa so|(?:sieht|sähe|schaut) (?:\w+ ){0,5}(?:so|wie folgt|aus)",
    r"(?:wenn|falls) (?:du|sie|ihr|man|wir|der nutzer)",
    r"(?:du|sie|ihr|man) (?:kannst|können|könnt|kann|könnte\w*|müsste\w*)",
    r"(?:kannst|könn(?:en|te|test|ten)) (?:du|sie|ihr|man)",
    r"(?:würde|könnte|müsste)(?:n|st)? (?:ich|man|so|etwa|der|die|das)",
    r"(?:ich|man) (?:würde|könnte)",
    r"(?:nicht|nie|niemals|keine?n?) (?:\w+ ){0,3}\w*(?:rufe|führe|sende|schreib|benutz|verwend)\w*",
    r"verfügbare\w* (?:werkzeug|funktion|tool)\w*|vorlage|platzhalter|angenommen",
    r"(?:soll|darf|möchtest du|möchten sie)\b[^?]*\?$",
    r"(?:das|dieses|erwartete|richtige) (?:format|schema) (?:ist|lautet|wäre)",
    r"(?:sobald|nachdem|wenn erst) (?:du|sie|ihr) (?:\w+ ){0,3}(?:bestätig|zustimm|einverstanden|freig)\w*",
    r"nach (?:deiner|ihrer|eurer) (?:zustimmung|bestätigung|freigabe)",
    # French
    r"par exemple|p\.\s?ex\.|exemples?|ressembl\w+|comme suit",
    r"(?:vous|tu|on) (?:pouvez|peux|peut|pourr\w+|devez|dois|doit)",
    r"si (?:vous|tu|on)|si l['\u2019]on|je (?:pourrais|ferais|devrais|n['\u2019]\w+ pas)|supposons|imaginons",
    r"(?:ne|n['\u2019]) ?(?:\w+ ){0,2}(?:pas|jamais) (?:\w+ ){0,3}(?:appel|exécut|lanc|envo|utilis)\w*|jamais",
    r"n['\u2019](?:appel|exécut|utilis|envo)\w+ (?:pas|jamais)|(?:outils|fonctions) disponibles",
    r"le format (?:\w+ )?(?:est|serait)",
    r"(?:dois-je|puis-je|voulez-vous|veux-tu|souhaitez-vous|souhaites-tu)",
    r"(?:dès que|quand|une fois que|après que) (?:vous|tu) (?:\w+ ){0,2}(?:confirm|valid|accept|approuv)\w*",
    r"(?:après|avec) (?:votre|ton) (?:accord|confirmation)",
    # Spanish
    r"(?:por )?ejemplos?|p\.\s?ej\.|se ver(?:ía|á)|(?:puedes|usted puede|se puede|podr(?:ías?|íamos))",
    r"el formato (?:\w+ )?(?:es|sería)",
    r"si (?:quier\w+|desea\w*|necesita\w*|usted)|supong\w+|imagin[ae]\w*|sería|plantilla",
    r"(?:herramientas|funciones) disponibles",
    r"(?:no|nunca) (?:\w+ ){0,3}(?:llam(?:es?|en|ar|aré)|ejecut\w+|enví\w+|envi\w+|uses)",
    r"(?:debo|puedo|quieres|quiere|desea|deseas)\b[^?]*\?$",
    r"(?:cuando|una vez que|en cuanto|después de que) (?:\w+ ){0,2}(?:confirm|aprueb|acept)\w*",
    # Portuguese
    r"por exemplo|exemplos?|voc[êe] (?:pode|poderia|deve)|pode-se|poderia|se (?:voc[êe]|quiser|desejar|precisar)",
    r"seria",
    r"(?:não|nunca) (?:\w+ ){0,3}(?:cham|execut|envi)\w+|(?:ferramentas|funções) disponíveis|o formato é|suponha",
    r"(?:devo|posso|quer|deseja)\b[^?]*\?$",
    r"(?:quando|assim que|depois que) (?:\w+ ){0,2}(?:confirm|aprov|aceit)\w*",
    # Italian
    r"(?:per|ad) esempio|esempi\w?|(?:puoi|potresti|potrebbe|si può)|se (?:vuoi|vuole|desideri)|sarebbe|il formato è",
    r"(?:non|mai) (?:\w+ ){0,3}(?:chiam|esegu|invi)\w+|(?:strumenti|funzioni) disponibili",
    r"(?:devo|posso|vuoi|vuole)\b[^?]*\?$",
    r"(?:quando|appena|dopo che|non appena) (?:\w+ ){0,2}(?:conferm|approv|accett)\w*",
    # Dutch
    r"bijvoorbeeld|bijv\.|voorbeeld\w*|(?:kun|kunt|kan) (?:je|u|men)|(?:je|u|men) (?:kunt|kan|zou|moet)",
    r"als (?:je|u|men)",
    r"zou(?:den)? (?:er|ik|je|men|u)|(?:niet|nooit) (?:\w+ ){0,3}(?:aanroep|uitvoer|verstu|gebruik)\w*",
    r"ziet er (?:\w+ )?(?:zo|als volgt)",
    r"(?:zal|mag|wil|wilt)\b[^?]*\?$|beschikbare (?:tools|functies)",
    r"(?:zodra|nadat) (?:je|u) (?:\w+ ){0,3}(?:bevestig|akkoord|goedkeur|instem)\w*",
    # Russian
    r"например|к примеру|пример\w*|выглядит|(?:вы|ты) (?:можете|можешь|могли|мог)|можно",
    r"если (?:вы|ты|бы|хотите|нужно)|допустим",
    r"(?:не|никогда) (?:\w+ ){0,2}(?:вызыва|выполня|запуска|отправля|использу|вызов|буду)\w*",
    r"доступные (?:инструменты|функции)",
    r"(?:хотите|выполнить|вызвать|запустить|мне)\b[^?]*\?$|(?:я|мы) бы",
    r"(?:как только|после того,? как|когда) (?:вы|ты) (?:подтверд|соглас|одобр)\w*|после вашего \w+",
)
SHOWN_SIGNS = (
    r"例如|比如|譬如|示例|例子|样例|範例|举例|格式(?:如下|为|是)|看起来|(?:你|您|用户|人们)(?:也)?可以",
    r"如果(?:你|您|用户|想)|假设|假如",
    r"不(?:要|会|应|必|得|能|可)?(?:再|直接|实际)?(?:调用|执行|运行|使用|发送)|切勿|请勿|是否|要不要|吗[\uff1f?]?$",
    r"可用的?(?:工具|函数)|模板",
    r"(?:确认|同意|批准)(?:后|之后|以后)|ご?(?:確認|承認|許可)(?:後|いただ|され|できたら)",
    r"(?:확인|승인)(?:하시면|해 주시면|되면|후)",
    r"例えば|たとえば|例[:\uff1a]|例$|の例|例として|サンプル|ように(?:なり|書|呼|し)|形式は|場合は|もし|仮に",
    r"でしょうか|ますか|よろしいですか",
    r"しないで|呼び出(?:さ|しません)|実行し(?:ない|ません)|(?:利用|使用)(?:可能な|できる)(?:ツール|関数)",
    r"テンプレート|できます",
    r"예를 들|예시|예[:\uff1a]|예제|형식은|경우에|수 (?:있습|있어|있다|없)|하지 (?:마|않)|할까요|시겠습니까",
    r"사용 가능한",
)
REPORTED = (
    # Somebody else acts
    r"(?:das modell|d(?:er|en) (?:agent|assistent|server|bot)|modelle)",
    r"(?:le|les|un) (?:modèles?|agents?|assistants?|serveurs?|bot)|l['\u2019](?:agent|assistant)",
    r"(?:el|los|un) (?:modelos?|agentes?|asistentes?|servidor|bot)",
    r"(?:o|os|um) (?:modelos?|agentes?|assistentes?|servidor|bot)",
    r"(?:il|un|i) (?:modell[oi]|server|bot|client)|(?:gli |l['\u2019])(?:agent[ei]|assistent[ei])",
    r"(?:het model|de (?:agent|assistent|server|client|bot))",
    r"(?:модел[ьи]|агент|ассистент|сервер|бот)",
    r"formato|formaat|формат\w*",
    # German
    r"zurückgegeben|(?:gab|gibt) (?:\w+ )?zurück|(?:ge)?antwortete?t?|gesendet|geschickt|geschrieben|enthält",
    r"enthielt|zeigte?|lautete",
    r"(?:habe|wurde|hatte) (?:\w+ ){0,5}(?:aufgerufen|ausgeführt|gemacht|versucht)|vorhin|bereits|gestern|zuvor",
    r"ungültige?\w?|falsche?\w?",
    r"(?:ergebnis|ausgabe|antwort|protokoll|fehlermeldung|nachricht|datei|e-?mail|rückgabe)\w*$",
    r"(?:steht|stand) (?:folgendes|dies|da)",
    # French
    r"(?:a|ont|avait) (?:\w+ )?(?:répondu|renvoyé|retourné|envoyé|écrit|dit|affiché|reçu)|renvoie|contient",
    r"contenait|affiche|indique",
    r"j['\u2019]ai (?:\w+ )?(?:appelé|exécuté|envoyé|utilisé|lancé)|déjà|précédemment|invalide|incorrecte?|erronée?",
    r"(?:résultat|sortie|réponse|journal|fichier|message|observation)$|vous (?:m['\u2019])?avez",
    # Spanish
    r"devolvió|devuelve|respondió|(?:ha|había) (?:devuelto|respondido|enviado)|(?:\w+ )dice|decía|contiene",
    r"contenía|muestra|mostró|envió",
    r"ya (?:\w+ )?(?:llamé|ejecuté|llamado|ejecutado|usé)|anteriormente|ayer|incorrect[ao]|inválid[ao]",
    r"(?:resultado|salida|respuesta|registro)$",
    # Portuguese
    r"retornou|respondeu|dizia|(?:\w+ )diz|contém|continha|mostrou|enviou|escreveu",
    r"já (?:\w+ )?(?:chamei|executei|usei)|ontem|incorret[ao]",
    r"(?:saída|resposta|mensagem)$",
    # Italian
    r"ha (?:\w+ )?(?:restituito|risposto|inviato|scritto|detto|mostrato)|restituisce",
    r"ho (?:\w+ )?(?:chiamato|eseguito|usato|inviato)|già|ieri",
    r"non valid[ao]|errat[ao]|(?:risultato|risposta|messaggio)$",
    # Dutch
    r"antwoordde|stuurde|gaf|bevatte?|toonde|toont|heb (?:\w+ ){0,4}(?:aangeroepen|uitgevoerd)|eerder|gisteren",
    r"ongeldige?|onjuiste?",
    r"(?:resultaat|uitvoer|antwoord|bericht|logboek)$",
    # Russian
    r"верну\w+|возвра\w+|ответил\w*|содерж\w+|показал\w*|показыва\w+|написал\w*|отправил\w*|сказал\w*",
    r"прислал\w*|уже|вчера|ранее",
    r"неверн\w+|ошибочн\w+|недопустим\w+|(?:результат|ответ|вывод|журнал|сообщение|лог)$",
)
REPORTED_SIGNS = (
    r"(?:模型|助手|智能体|モデル|アシスタント|エージェント|모델|어시스턴트|에이전트)(?:应|会|将|必|需|可|は|が|은|는|이|가)",
    r"返回(?:了|的|值)|输出|结果(?:是|为|如下)?[:\uff1a]?$|显示|包含|写道|写着|说[:\uff1a]?$|日志|之前|刚才|已经",
    r"曾经|昨天|错误的|无效的|发(?:送)?了|收到|文件(?:中|里)",
    r"返(?:し|され|って)|結果(?:は)?[:\uff1a]?$|出力|表示され|含まれ|書かれ|ログ|以前|先ほど|すでに|既に|昨日|無効",
    r"間違",
    r"반환|결과[:\uff1a]?$|출력|로그|포함|표시|이미|이전|어제|잘못",
)
INTENT = (
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
INTENT_SIGNS = (
    r"我(?:将|会|要|来|需要|现在|先|正在|去|得|应该)|让我|现在|首先|接下来|正在",
    r"これから|今から|まず|次に|ましょう|必要があ|(?:呼び出し|調べ|確認し|検索し|実行し|取得し|使い|使用し)ます",
    r"하겠습니다|할게요|지금|먼저|호출합니다|확인합니다|검색합니다",
)
AFTERWARDS = (
    r"nicht (?:\w+ )?(?:aus|auf|ab)(?:ge)?\w+",
    r"(?:ist|war|dient|sind) (?:\w+ ){0,2}(?:als )?(?:\w+ )?(?:beispiel|vorlage|platzhalter)|soll ich|möchtest du",
    r"möchten sie",
    r"so (?:sieht|sähe|würde)|würde (?:ich|man|das|so)",
    r"(?:habe|hat|werde|wurde) (?:\w+ ){0,5}nicht (?:\w+ )?(?:auf|aus|ge)\w+",
    r"(?:est|était|n['\u2019]est|c['\u2019]est) (?:\w+ ){0,2}(?:qu['\u2019]|d['\u2019])?(?:un |l['\u2019])?exemple",
    r"voulez-vous|veux-tu|souhaitez-vous",
    r"je (?:ne |n['\u2019])(?:\w+ )?(?:ai|ferai|vais|lancerai|exécuterai)|puis-je|dois-je",
    r"es (?:\w+ )?(?:un )?ejemplo|(?:quieres|quiere|desea|deseas) que|debo (?:ejecut|llam|envi)\w+",
    r"no (?:lo |la )?(?:he|voy a|fue)",
    r"é (?:\w+ )?(?:um )?exemplo|quer que eu|deseja que|devo (?:execut|cham|envi)\w+|não (?:foi|vou|executei|chamei)",
    r"è (?:\w+ )?(?:un )?esempio|vuoi che|desidera che|devo (?:esegu|chiam|invi)\w+",
    r"non (?:ho|l['\u2019]ho|è stat[ao])",
    r"is (?:\w+ )?(?:een )?voorbeeld|wil je dat|wilt u dat|zal ik (?:dit|het|deze)",
    r"(?:это|лишь) (?:\w+ )?пример|хотите|(?:мне )?(?:выполнить|вызвать|запустить)[^.?]{0,60}\?",
    r"не (?:выполн|вызва|вызыв|запус)\w+|вернул\w*",
)
AFTERWARDS_SIGNS = (
    r"是(?:一个)?(?:示例|例子|样例|举例)|仅供参考|(?:需要|要)我|是否",
    r"(?:没有|并未|未|不会|还没)(?:实际|真的)?(?:执行|调用|运行)|吗\uff1f|请确认",
    r"例です|一例|サンプル|よろしいですか|しますか|ましょうか|実行して(?:い)?ません|ように(?:なり|書)",
    r"예시입니다|예입니다|할까요|시겠습니까|원하시|실행하지",
)
SUBJECT = (
    r"ist|war|wäre|würde|hat|hatte|gibt|gab|bedeutet|liefert|est|était|serait|renvoie|es|era|sería|devuelve",
    r"devolvió|foi|é",
    r"seria|retorna|retornou|è|sarebbe|restituisce|zou|heeft|geeft|вернул\w*|возвращает|является|означает",
)
SUBJECT_SIGNS = r"是|会|将|表示|返回|这|は|が|を|という|のような|를|을|은|는"
