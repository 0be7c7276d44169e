"""Around a call, in other languages than English: an example, a question, a retraction, a refusal, or an act.

Texts that the model only repeats are no business of words: see `tests/stages/reading/test_provenance.py`.
"""

import pytest

from stages.rescue import rescue

CALL = '{"name": "get_weather", "arguments": {"city": "Rome"}}'
LANGUAGES = {
    "German": (
        ("Zum Beispiel:\nCALL", "Ein Aufruf sieht so aus:\nCALL", "Du kannst es so aufrufen: CALL"),
        ("CALL\nSoll ich das ausführen?", "CALL\nIch warte auf Ihre Zustimmung."),
        ("CALL\nDas war ein Fehler, vergiss das.", "CALL\nIch habe das nicht ausgeführt."),
        ("Ich rufe jetzt das Wetter in Rom ab:\nCALL", "Zuerst prüfe ich das Wetter.\nCALL"),
    ),
    "French": (
        ("Par exemple :\nCALL", "Un appel ressemble à ceci :\nCALL", "Vous pouvez l'appeler ainsi : CALL"),
        ("CALL\nVoulez-vous que je l'exécute ?", "CALL\nJ'attends votre confirmation."),
        ("CALL\nC'était une erreur.", "CALL\nJe ne l'ai pas exécuté."),
        ("Je vais vérifier la météo à Rome :\nCALL", "D'abord, la météo de la ville de Rome :\nCALL"),
    ),
    "Spanish": (
        ("Por ejemplo:\nCALL", "Una llamada se vería así:\nCALL", "Puedes llamarla así: CALL"),
        ("CALL\n¿Quieres que lo ejecute?", "CALL\nEspero su confirmación."),
        ("CALL\nFue un error.", "CALL\nNo lo he ejecutado."),
        ("Voy a consultar el tiempo en Roma:\nCALL", "Primero consulto el tiempo.\nCALL"),
    ),
    "Portuguese": (
        ("Por exemplo:\nCALL", "Uma chamada seria assim:\nCALL", "Você pode chamar assim: CALL"),
        ("CALL\nQuer que eu execute?", "CALL\nAguardo a sua confirmação."),
        ("CALL\nFoi um erro.", "CALL\nNão executei isso."),
        ("Vou verificar o tempo em Roma:\nCALL", "Primeiro verifico o tempo.\nCALL"),
    ),
    "Italian": (
        ("Per esempio:\nCALL", "Una chiamata sarebbe così:\nCALL", "Puoi chiamarla così: CALL"),
        ("CALL\nVuoi che lo esegua?", "CALL\nAttendo la tua conferma."),
        ("CALL\nÈ stato un errore.", "CALL\nNon l'ho eseguito."),
        ("Adesso verifico il meteo di Roma:\nCALL", "Sto per controllare il meteo.\nCALL"),
    ),
    "Dutch": (
        ("Bijvoorbeeld:\nCALL", "Een aanroep ziet er zo uit:\nCALL", "Je kunt het zo aanroepen: CALL"),
        ("CALL\nZal ik dit uitvoeren?", "CALL\nIk wacht op uw bevestiging."),
        ("CALL\nDat was fout, vergeet dit.", "CALL\nDit is maar een voorbeeld."),
        ("Ik ga nu het weer in Rome opzoeken:\nCALL", "Eerst het weer.\nCALL"),
    ),
    "Russian": (
        ("Например:\nCALL", "Вызов выглядит так:\nCALL", "Вы можете вызвать его так: CALL"),  # noqa: RUF001 - Russian
        ("CALL\nВыполнить этот вызов?", "CALL\nЖду вашего подтверждения."),  # noqa: RUF001 - Russian
        ("CALL\nЯ ошибся.", "CALL\nЯ это не выполнял."),
        ("Сейчас я проверю погоду в Риме:\nCALL", "Давайте проверю погоду.\nCALL"),
    ),
    "Chinese": (
        ("例如\N{FULLWIDTH COLON}\nCALL", "调用格式如下\N{FULLWIDTH COLON}\nCALL", "你可以这样调用\nCALL"),
        ("CALL\n需要我执行吗\N{FULLWIDTH QUESTION MARK}", "CALL\n请您确认。"),
        ("CALL\n我错了。", "CALL\n我没有执行。"),
        ("我现在查询罗马的天气\N{FULLWIDTH COLON}\nCALL", "首先查询天气。\nCALL"),
    ),
    "Japanese": (
        ("例えば\N{FULLWIDTH COLON}\nCALL", "形式は次のとおりです\nCALL", "次のように書きます\nCALL"),
        ("CALL\n実行してよろしいですか。", "CALL\n承認をお願いします。"),
        ("CALL\n間違えました。", "CALL\nまだ実行していません。"),
        ("これからローマの天気を調べます\N{FULLWIDTH COLON}\nCALL", "まず天気を確認します。\nCALL"),
    ),
    "Korean": (
        ("예를 들면:\nCALL", "형식은 다음과 같습니다:\nCALL", "이렇게 호출할 수 있습니다:\nCALL"),
        ("CALL\n실행할까요?", "CALL\n확인을 기다립니다."),
        ("CALL\n잘못 호출했습니다.", "CALL\n예시입니다."),
        ("지금 로마의 날씨를 확인하겠습니다:\nCALL", "먼저 날씨를 검색합니다.\nCALL"),
    ),
}
REFUSED = {
    "German": ("Das werde ich nicht aufrufen:\nCALL", "Sobald Sie bestätigen, führe ich das aus:\nCALL"),
    "French": ("Je ne vais pas appeler ceci :\nCALL", "Dès que vous confirmez, je lance ceci :\nCALL"),
    "Spanish": ("No voy a ejecutar esto:\nCALL", "Cuando confirme, voy a ejecutar esto:\nCALL"),
    "Portuguese": ("Não vou executar isto:\nCALL", "Assim que confirmar, vou executar isto:\nCALL"),
    "Italian": ("Non eseguo questa chiamata:\nCALL", "Appena confermi, eseguo questa chiamata:\nCALL"),
    "Dutch": ("Ik ga dit niet uitvoeren:\nCALL", "Zodra u bevestigt, ga ik dit uitvoeren:\nCALL"),
    "Russian": ("Я не буду выполнять это:\nCALL", "Когда вы подтвердите, я вызову это:\nCALL"),
    "Chinese": ("我不会执行这个\nCALL", "您确认后我将执行\nCALL"),
    "Japanese": ("これは実行しません。\nCALL", "確認後に実行します。\nCALL"),
    "Korean": ("이것은 실행하지 않겠습니다:\nCALL", "승인 후 실행하겠습니다:\nCALL"),
}
FORMS = (CALL, f"```json\n{CALL}\n```", f"<tool_call>\n{CALL}\n</tool_call>")
NOT_MADE = [pytest.param(t, id=f"{name}: {t}") for name, four in LANGUAGES.items() for three in four[:3] for t in three]
NOT_MADE += [pytest.param(t, id=f"{name}: {t}") for name, two in REFUSED.items() for t in two]
MADE = [pytest.param(t, id=f"{name}: {t}") for name, four in LANGUAGES.items() for t in four[3]]


@pytest.mark.parametrize("text", NOT_MADE)
def test_an_example_a_question_a_retraction_and_a_refusal_are_no_call(text: str) -> None:
    for form in FORMS:
        assert rescue(text.replace("CALL", form), ("get_weather",)).calls == ()


@pytest.mark.parametrize("text", MADE)
def test_a_sentence_in_which_the_model_acts_leads_up_to_a_call(text: str) -> None:
    for form in FORMS:
        assert len(rescue(text.replace("CALL", form), ("get_weather",)).calls) == 1
