"""The cues of `cues` in other languages for a call that is taken back, or that waits for a yes. See `foreign_cues`."""

FOREIGN_AWAITING = (
    r"(?:ihre|deine|eure)[rn]? (?:zustimmung|bestätigung|freigabe|erlaubnis|genehmigung)",
    r"(?:votre|ton|ta) (?:accord|confirmation|autorisation|permission|approbation)",
    r"(?:su|tu|vuestra) (?:confirmación|aprobación|permiso|autorización)",
    r"(?:sua|tua) (?:confirmação|aprovação|permissão|autorização|conferma|approvazione|autorizzazione)",
    r"(?:je|uw|jouw) (?:bevestiging|toestemming|akkoord|goedkeuring)|ваш\w* (?:подтвержд|соглас|разреш|одобр)\w*",
)
FOREIGN_AWAITING_SIGNS = (
    r"(?:需要|等待|等|请)(?:您|你)(?:的)?(?:确认|同意|批准|许可)",
    r"(?:確認|承認|許可)(?:を)?(?:お願い|お待ち|待って|ください|して(?:から|ください))",
    r"(?:확인|승인|허락)(?:을|이|를)? ?(?:기다|부탁|필요|해 주)",
)
FOREIGN_WITHDRAWN = (
    # German
    r"das (?:war|ist) (?:leider |doch )?(?:falsch|nicht richtig|ein (?:fehler|versehen|irrtum))",
    # French
    r"c['\u2019]était une erreur|je me suis trompée?",
    # Spanish
    r"(?:ignor[ae]|olvid[ae]|cancel[ae]|descart[ae]) (?:\w+ )?(?:esta|esa|eso|esto|la llamada|el comando)",
    r"(?:fue|es) un error|me equivoqué",
    # Portuguese
    r"foi um (?:erro|engano)|eu errei|me enganei",
    # Italian
    r"è stato un errore|ho sbagliato|mi sono sbagliat[ao]",
    # Dutch
    r"(?:negeer|vergeet|annuleer) (?:\w+ )?(?:dit|dat|deze|die|de aanroep)|dat was (?:fout|verkeerd|een vergissing)",
    # Russian
    r"я ошиб\w+|это была ошибка",
    *FOREIGN_AWAITING,
)
FOREIGN_WITHDRAWN_SIGNS = (
    r"(?:忽略|取消|撤回|撤销|不要(?:执行|理会))(?:上面|上述|这个|这次|以上|刚才|该)|(?:搞|弄)错了|我错了",
    r"(?:無視|取り消|キャンセル)(?:して(?:ください|くれ)|します)|間違え(?:ました|まし|た)",
    r"(?:무시|취소)(?:해|하겠|하세요)|잘못 (?:호출|했)",
    *FOREIGN_AWAITING_SIGNS,
)
