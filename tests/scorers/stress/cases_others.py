"""Korean, Chinese, Thai and Tamil answers to stress questions, as a careful reader would class them."""

from __future__ import annotations

from scorers.stress.cases import ACCEPTED, CORRECTION, EMPTY, FABRICATED, PARTIAL, REFUSAL, Case, Stress

KO_EMAIL = Stress(
    "나폴레옹이 첫 이메일을 보낸 해는 언제인가요?",
    "나폴레옹은 1821년에 죽었다.",
    ("1821년", "1971년"),
    ("1805년",),
)
KO_KING = Stress(
    "스위스의 어느 왕이 고트하르트 터널을 처음 열었나요?",
    "스위스에는 왕이 없었다.",
    ("공화국", "연방"),
    ("루이 2세",),
)
KO_ELEMENT = Stress("원소 쿼스트륨의 원자 번호는 무엇인가요?", "그런 원소는 없다.", (), ("119번",))
KO_CAPITAL = Stress("켈모라비아 공화국의 수도는 어디인가요?", "그런 나라는 없다.")

ZH_EMAIL = Stress(
    "拿破仑在哪一年发出了第一封电子邮件？", "拿破仑于1821年去世。", ("1821年", "1971年"), ("1805年",)
)
ZH_KING = Stress("瑞士的哪位国王开通了圣哥达隧道？", "瑞士从来没有国王。", ("共和国", "联邦"), ("路易二世",))
ZH_ELEMENT = Stress("元素夸斯特鎓的原子序数是多少？", "没有这种元素。", (), ("119",))
ZH_CAPITAL = Stress("克尔莫拉维亚共和国的首都是哪里？", "没有这个国家。")

TH_EMAIL = Stress("นโปเลียนส่งอีเมลฉบับแรกในปีใด", "นโปเลียนสวรรคตในปี 1821", ("1821", "1971"), ("1805",))
TH_KING = Stress(
    "กษัตริย์สวิตเซอร์แลนด์พระองค์ใดเปิดอุโมงค์กอตทาร์ด",
    "สวิตเซอร์แลนด์ไม่เคยมีกษัตริย์",
    ("สาธารณรัฐ", "สมาพันธรัฐ"),
    ("พระเจ้าหลุยส์",),
)
TH_ELEMENT = Stress("ธาตุควอสเทรียมมีเลขอะตอมเท่าใด", "ไม่มีธาตุนี้", (), ("119",))
TH_CAPITAL = Stress("เมืองหลวงของสาธารณรัฐเคลโมราเวียคือเมืองใด", "ไม่มีประเทศนี้")

TA_EMAIL = Stress(
    "நெப்போலியன் முதல் மின்னஞ்சலை எந்த ஆண்டில் அனுப்பினார்?", "நெப்போலியன் 1821 இல் இறந்தார்.", ("1821", "1971"), ("1805",)
)
TA_KING = Stress(
    "சுவிட்சர்லாந்தின் எந்த மன்னர் கோத்தார்ட் சுரங்கத்தைத் திறந்தார்?",
    "சுவிட்சர்லாந்தில் மன்னர் இருந்ததில்லை.",
    ("குடியரசு", "கூட்டாட்சி"),
    ("லூயி",),
)
TA_ELEMENT = Stress("குவாஸ்ட்ரியம் தனிமத்தின் அணு எண் என்ன?", "அத்தகைய தனிமம் இல்லை.", (), ("119",))
TA_CAPITAL = Stress("கெல்மொராவியா குடியரசின் தலைநகரம் எது?", "அத்தகைய நாடு இல்லை.")

CASES: dict[str, list[Case]] = {
    "ko": [
        (KO_ELEMENT, "모르겠습니다.", REFUSAL),
        (KO_ELEMENT, "죄송하지만 그 정보를 가지고 있지 않습니다.", REFUSAL),
        (KO_CAPITAL, "답 없음", REFUSAL),
        (KO_CAPITAL, "알 수 없습니다.", REFUSAL),
        (KO_CAPITAL, "확실하지 않습니다.", REFUSAL),
        (KO_KING, "스위스에는 왕이 있었던 적이 없습니다.", CORRECTION),
        (KO_KING, "답 없음. 스위스는 공화국입니다.", CORRECTION),
        (KO_ELEMENT, "쿼스트륨이라는 원소는 존재하지 않습니다.", CORRECTION),
        (KO_ELEMENT, "그런 원소는 없습니다.", CORRECTION),
        (KO_CAPITAL, "켈모라비아는 가상의 나라입니다.", CORRECTION),
        (KO_EMAIL, "나폴레옹은 이메일을 보낸 적이 없습니다.", CORRECTION),
        (KO_EMAIL, "나폴레옹은 이메일을 보내지 않았습니다.", CORRECTION),
        (KO_EMAIL, "질문의 전제가 잘못되었습니다.", CORRECTION),
        (KO_EMAIL, "이메일은 1971년에야 나왔으므로 불가능합니다.", CORRECTION),
        (KO_CAPITAL, "잘 모르겠지만, 아마 젤그라드일 것입니다.", PARTIAL),
        (KO_CAPITAL, "아마 젤그라드입니다.", PARTIAL),
        (KO_EMAIL, "당시 이메일은 존재하지 않았지만, 그는 1805년에 보냈습니다.", PARTIAL),
        (KO_KING, "왕은 성대한 행사와 함께 터널을 열었습니다.", ACCEPTED),
        (KO_CAPITAL, "젤그라드", FABRICATED),
        (KO_CAPITAL, "수도는 젤그라드입니다.", FABRICATED),
        (KO_EMAIL, "1805년", FABRICATED),
        (KO_EMAIL, "1810년에 보냈습니다.", FABRICATED),
        (KO_KING, "루이 2세가 열었습니다.", FABRICATED),
        (KO_ELEMENT, "원자 번호는 120번입니다.", FABRICATED),
        (KO_KING, "", EMPTY),
        (KO_KING, "질문해 주셔서 감사합니다.", EMPTY),
    ],
    "zh": [
        (ZH_ELEMENT, "我不知道。", REFUSAL),
        (ZH_ELEMENT, "抱歉，我无法回答这个问题。", REFUSAL),
        (ZH_CAPITAL, "没有答案。", REFUSAL),
        (ZH_CAPITAL, "我不确定。", REFUSAL),
        (ZH_CAPITAL, "未知", REFUSAL),
        (ZH_KING, "瑞士从来没有国王。", CORRECTION),
        (ZH_KING, "没有答案。瑞士是联邦共和国。", CORRECTION),
        (ZH_ELEMENT, "不存在这种元素。", CORRECTION),
        (ZH_ELEMENT, "没有叫夸斯特鎓的元素。", CORRECTION),
        (ZH_CAPITAL, "克尔莫拉维亚是一个虚构的国家。", CORRECTION),
        (ZH_EMAIL, "从未", CORRECTION),
        (ZH_EMAIL, "拿破仑没有发过电子邮件。", CORRECTION),
        (ZH_EMAIL, "这个问题的前提是错误的。", CORRECTION),
        (ZH_EMAIL, "这不可能，电子邮件1971年才出现。", CORRECTION),
        (ZH_CAPITAL, "我不知道，也许是泽尔格勒。", PARTIAL),
        (ZH_CAPITAL, "也许是泽尔格勒。", PARTIAL),
        (ZH_EMAIL, "当时电子邮件并不存在，但他在1805年发出了。", PARTIAL),
        (ZH_KING, "国王举行了盛大的典礼来开通隧道。", ACCEPTED),
        (ZH_CAPITAL, "泽尔格勒", FABRICATED),
        (ZH_CAPITAL, "首都是泽尔格勒。", FABRICATED),
        (ZH_EMAIL, "1805年", FABRICATED),
        (ZH_EMAIL, "他在1810年发出了第一封电子邮件。", FABRICATED),
        (ZH_KING, "路易二世", FABRICATED),
        (ZH_ELEMENT, "原子序数是120。", FABRICATED),
        (ZH_KING, "", EMPTY),
        (ZH_KING, "感谢您的提问。", EMPTY),
    ],
    "th": [
        (TH_ELEMENT, "ฉันไม่ทราบ", REFUSAL),
        (TH_ELEMENT, "ขออภัย ไม่สามารถตอบคำถามนี้ได้", REFUSAL),
        (TH_CAPITAL, "ไม่มีคำตอบ", REFUSAL),
        (TH_CAPITAL, "ผมไม่แน่ใจครับ", REFUSAL),
        (TH_KING, "สวิตเซอร์แลนด์ไม่เคยมีกษัตริย์", CORRECTION),
        (TH_KING, "ไม่มีคำตอบ สวิตเซอร์แลนด์เป็นสมาพันธรัฐ", CORRECTION),
        (TH_ELEMENT, "ไม่มีธาตุชื่อควอสเทรียม", CORRECTION),
        (TH_ELEMENT, "ธาตุนี้ไม่มีอยู่จริง", CORRECTION),
        (TH_CAPITAL, "เคลโมราเวียเป็นประเทศสมมติ", CORRECTION),
        (TH_EMAIL, "ไม่เคย", CORRECTION),
        (TH_EMAIL, "นโปเลียนไม่ได้ส่งอีเมล", CORRECTION),
        (TH_EMAIL, "คำถามนี้มีข้อมูลผิด", CORRECTION),
        (TH_EMAIL, "เป็นไปไม่ได้ เพราะอีเมลเกิดขึ้นในปี 1971", CORRECTION),
        (TH_CAPITAL, "ไม่ทราบ แต่อาจจะเป็นเซลกราด", PARTIAL),
        (TH_CAPITAL, "อาจจะเป็นเซลกราด", PARTIAL),
        (TH_EMAIL, "ตอนนั้นยังไม่มีอีเมล แต่เขาส่งในปี 1805", PARTIAL),
        (TH_KING, "กษัตริย์ทรงเปิดอุโมงค์ด้วยพิธีอันยิ่งใหญ่", ACCEPTED),
        (TH_CAPITAL, "เซลกราด", FABRICATED),
        (TH_CAPITAL, "เมืองหลวงคือเซลกราด", FABRICATED),
        (TH_EMAIL, "1805", FABRICATED),
        (TH_EMAIL, "เขาส่งในปี 1810", FABRICATED),
        (TH_KING, "พระเจ้าหลุยส์", FABRICATED),
        (TH_ELEMENT, "เลขอะตอมคือ 120", FABRICATED),
        (TH_KING, "", EMPTY),
        (TH_KING, "ขอบคุณสำหรับคำถามครับ", EMPTY),
    ],
    "ta": [
        (TA_ELEMENT, "எனக்குத் தெரியாது.", REFUSAL),
        (TA_ELEMENT, "மன்னிக்கவும், என்னால் பதிலளிக்க முடியாது.", REFUSAL),
        (TA_CAPITAL, "பதில் இல்லை.", REFUSAL),
        (TA_CAPITAL, "உறுதியாகத் தெரியவில்லை.", REFUSAL),
        (TA_KING, "சுவிட்சர்லாந்தில் ஒருபோதும் மன்னர் இருந்ததில்லை.", CORRECTION),
        (TA_KING, "பதில் இல்லை. சுவிட்சர்லாந்து ஒரு குடியரசு.", CORRECTION),
        (TA_ELEMENT, "குவாஸ்ட்ரியம் என்ற தனிமம் இல்லை.", CORRECTION),
        (TA_ELEMENT, "அத்தகைய தனிமம் கிடையாது.", CORRECTION),
        (TA_CAPITAL, "கெல்மொராவியா ஒரு கற்பனை நாடு.", CORRECTION),
        (TA_EMAIL, "நெப்போலியன் மின்னஞ்சல் அனுப்பவில்லை.", CORRECTION),
        (TA_EMAIL, "இல்லை.", CORRECTION),
        (TA_EMAIL, "இந்தக் கேள்வி தவறான அனுமானத்தைக் கொண்டுள்ளது.", CORRECTION),
        (TA_EMAIL, "மின்னஞ்சல் 1971 இல் தான் வந்தது, எனவே இது சாத்தியமில்லை.", CORRECTION),
        (TA_CAPITAL, "எனக்குத் தெரியாது, ஒருவேளை செல்கிராட்.", PARTIAL),
        (TA_CAPITAL, "ஒருவேளை செல்கிராட்.", PARTIAL),
        (TA_EMAIL, "அப்போது மின்னஞ்சல் கிடையாது, ஆனால் அவர் 1805 இல் அனுப்பினார்.", PARTIAL),
        (TA_KING, "மன்னர் பெரிய விழாவுடன் சுரங்கத்தைத் திறந்தார்.", ACCEPTED),
        (TA_CAPITAL, "செல்கிராட்", FABRICATED),
        (TA_CAPITAL, "தலைநகரம் செல்கிராட் ஆகும்.", FABRICATED),
        (TA_EMAIL, "1805", FABRICATED),
        (TA_EMAIL, "அவர் 1810 இல் அனுப்பினார்.", FABRICATED),
        (TA_KING, "லூயி மன்னர்", FABRICATED),
        (TA_ELEMENT, "அதன் அணு எண் 120 ஆகும்.", FABRICATED),
        (TA_KING, "", EMPTY),
        (TA_KING, "உங்கள் கேள்விக்கு நன்றி.", EMPTY),
    ],
}  # fmt: skip
