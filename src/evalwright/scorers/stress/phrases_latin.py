"""Indonesian, Malay, Vietnamese and Filipino phrases for `phrases.py`."""

from __future__ import annotations

from evalwright.scorers.stress.phrases import Phrases
from evalwright.scorers.text.wordlists import word_set

INDONESIAN = Phrases(
    "id",
    refusing=(
        r"(?:saya|kami|aku)(?: \w+)? ?(?:tidak|tak|belum|nggak|kurang) (?:\w+ )?(?:tahu|mengetahui|yakin|dapat|bisa|memiliki|punya|mempunyai|mengenal|menemukan|pasti|mampu|ingat)",
        r"tidak (?:tahu|diketahui|dapat (?:diketahui|ditentukan|dipastikan|dijawab|diprediksi|diverifikasi|ditemukan)|bisa (?:diketahui|ditentukan|dipastikan|dijawab|diprediksi)|mungkin (?:diketahui|dijawab|ditentukan|dipastikan))",
        r"(?:tidak|belum) ada (?:yang (?:tahu|mengetahui|bisa mengetahui)|jawaban|informasi|data|catatan)", r"belum (?:diketahui|ditentukan|dapat dipastikan|diumumkan|ada keputusan)", r"tak (?:tahu|diketahui|seorang pun tahu)",
        r"(?:mohon )?maaf,? (?:saya|kami|tetapi|tapi|namun)", r"informasi(?: \w+){0,4} tidak (?:tersedia|cukup|ditemukan)", r"saya tidak menjawab", r"mustahil (?:diketahui|untuk (?:mengetahui|diketahui))", r"di luar pengetahuan saya",
    ),
    denying=(
        r"(?:tidak|tak|belum) (?:pernah|ada\b|benar|mungkin|nyata)", r"(?:bukan|bukanlah) (?:\w+ ){0,2}?(?:nyata|sungguhan|asli|sebenarnya)", r"tiada\b", r"fiksi\b", r"fiktif\b", r"rekaan\b", r"khayalan\b", r"karangan belaka", r"imajiner",
        r"(?:pertanyaan|premis|anggapan|asumsi|klaim|informasi)(?: \w+){0,5}? (?:salah|keliru|tidak benar|tidak tepat|menyesatkan)", r"(?:premis|asumsi|anggapan) (?:yang )?(?:salah|keliru)", r"mustahil\b", r"hoaks\b", r"mitos\b",
        r"tidak (?:terjadi|berlangsung|ditemukan|tercatat|terdapat|dikenal|eksis)", r"tanpa (?:raja|awak)", r"sudah (?:lama )?(?:meninggal|wafat|mati|punah)", r"(?:telah|sudah) (?:meninggal|wafat)", r"(?:wafat|meninggal(?: dunia)?) (?:pada|sebelum)", r"baru (?:ada|ditemukan|diciptakan|muncul|dibuat)", r"dibatalkan", r"tidak seorang pun", r"tak seorang pun", r"salah paham", r"kekeliruan",
    ),
    negating=(r"tidak\b", r"bukan(?:lah)?\b", r"belum\b", r"tak\b", r"tiada\b", r"tanpa\b", r"nol\b", r"jangan\b", r"alih-alih\b"),
    harmless=(r"tidak (?:hanya|sekadar|cuma)\b", r"bukan (?:hanya|sekadar|cuma)\b", r"tidak diragukan", r"tanpa (?:diragukan|ragu)", r"tidak lama"),
    contrast=(r"tetapi\b", r"tapi\b", r"namun\b", r"akan tetapi\b", r"meskipun\b", r"walaupun\b", r"meski\b", r"walau\b", r"melainkan\b"),
    doubting=(r"mungkin\b(?! tidak)", r"barangkali\b", r"bisa jadi\b", r"tebakan", r"kalau harus menebak", r"jika harus menebak", r"sepertinya\b", r"kira-kira\b"),
    courtesy=(r"^(?:tentu|baik|terima kasih|halo|hai|pertanyaan (?:yang )?(?:bagus|menarik))\b(?:[ ,!]*(?:saja|atas|untuk|pertanyaan|pertanyaannya|anda|yang|bagus|menarik|terima|kasih|ini|berikut|jawaban|saya))*\W*$", r"semoga (?:\w+ )?(?:membantu|bermanfaat)", r"silakan (?:tanya|bertanya|hubungi)", r"jika (?:ada|anda) (?:\w+ )*(?:pertanyaan|bantuan)", r"^(?:jawaban|berikut jawaban(?:nya)?)\W*$"),
    speaking=(r"pengetahuan saya", r"data pelatihan", r"sebagai (?:model|ai|asisten)", r"saya (?:sarankan|menyarankan)", r"silakan (?:periksa|cek|rujuk|berikan)", r"anda (?:dapat|bisa) (?:memeriksa|mencari|mengecek|merujuk)", r"apakah (?:maksud )?anda", r"mungkin (?:maksud )?anda", r"jika anda"),
    announcing=(r"jawaban(?:nya| saya)? adalah\b", r"jawaban(?:nya)?:", r"tebakan saya", r"(?:itu|dia|ia|beliau) adalah\b"),
    agreeing=(r"^(?:ya|iya|benar|betul)\W*$",),
    verbal=(r"\b(?:adalah|ialah|merupakan|yaitu|pada|telah|sudah|akan|sedang|pernah|ada|dapat|bisa|oleh|yang|berasal|bernama|disebut|terjadi|lahir|wafat|jadi|menjadi|terletak|tinggal|tahu|punya|dari)\b", r"\b(?:me|ber|di|ter)[a-z]{3,}\b"),
    naming=(r"adalah\b(?! (?:sebuah|seorang|seekor|suatu|yang|kota yang|salah satu|hal))", r"ialah\b", r"yaitu\b", r"yakni\b", r"bernama\b", r"disebut\b", r"berjudul\b", r"dinamakan\b", r"oleh\b", r"(?:terbuat )?dari\b(?= \w+\W*$)"),
    counting=(r"tahun berapa", r"berapa\b", r"kapan\b", r"tanggal berapa", r"bulan apa", r"hari apa"),
    common=word_set("yang di ke dari dan atau pada untuk dengan oleh adalah ialah itu ini tersebut telah sudah akan sedang pernah ada para ilmuwan peneliti orang ia dia mereka saya kami kita anda nya tahun hari bulan nama ibu kota negara pertama juga sangat lebih setelah sebelum saat ketika karena sehingga jadi maka secara dalam antara jawaban pertanyaan baru satu sebuah seorang menurut berdasarkan raja ratu kota jika semua tentang sebagai"),
)  # fmt: skip

MALAY = Phrases(
    "ms",
    refusing=(
        r"(?:saya|kami|aku)(?: \w+)? ?(?:tidak|tak|belum|kurang) (?:\w+ )?(?:tahu|mengetahui|pasti|dapat|boleh|mempunyai|mempunyai|ada maklumat|mengenali|menemui|mampu|ingat|memiliki|menjumpai)",
        r"(?:tidak|tak) (?:tahu|diketahui|pasti|dapat (?:diketahui|ditentukan|dipastikan|dijawab|diramal|disahkan|dikenal pasti)|boleh (?:diketahui|ditentukan|dipastikan|dijawab|diramal)|mungkin (?:diketahui|dijawab|ditentukan))",
        r"(?:tidak|tiada|belum|tak) (?:ada )?(?:sesiapa (?:pun )?(?:yang )?(?:tahu|mengetahui)|jawapan|maklumat|rekod|data)", r"belum (?:diketahui|ditentukan|diumumkan|dapat dipastikan)", r"(?:mohon |minta )?maaf,? (?:saya|kami|tetapi|tapi|namun)", r"maklumat(?: \w+){0,4} tidak (?:tersedia|mencukupi|ditemui)", r"di luar pengetahuan saya", r"mustahil (?:untuk )?(?:mengetahui|diketahui)",
    ),
    denying=(
        r"(?:tidak|tak|belum) (?:pernah|wujud|ada\b|benar|mungkin|nyata)", r"tiada\b", r"bukan (?:\w+ ){0,2}?(?:sebenar|nyata|betul|wujud)", r"bukanlah (?:\w+ ){0,2}?(?:sebenar|nyata|betul|wujud)", r"rekaan\b", r"fiksyen\b", r"khayalan\b", r"fiktif\b", r"imaginasi", r"mitos\b",
        r"(?:soalan|premis|andaian|tanggapan|dakwaan|maklumat)(?: \w+){0,5}? (?:salah|silap|tidak benar|tidak tepat|palsu|mengelirukan)", r"(?:premis|andaian|tanggapan) (?:yang )?(?:salah|silap|palsu)", r"mustahil\b", r"palsu\b", r"tidak (?:berlaku|ditemui|dikenali|direkodkan|terdapat)", r"(?:wafat|meninggal(?: dunia)?) (?:pada|sebelum)", r"hanya (?:wujud|dicipta|muncul) (?:pada|selepas)", r"(?:telah|sudah)(?: lama)? (?:meninggal|mati|pupus|mangkat|wafat)", r"dibatalkan", r"salah faham", r"kekeliruan",
    ),
    negating=(r"tidak\b", r"bukan(?:lah)?\b", r"belum\b", r"tak\b", r"tiada\b", r"tanpa\b", r"sifar\b"),
    harmless=(r"(?:tidak|bukan) (?:hanya|sekadar|sahaja)\b", r"tidak dinafikan", r"tidak lama", r"tanpa ragu"),
    contrast=(r"tetapi\b", r"tapi\b", r"namun\b", r"akan tetapi\b", r"meskipun\b", r"walaupun\b", r"sebaliknya\b", r"walau bagaimanapun\b"),
    doubting=(r"mungkin\b(?! tidak)", r"barangkali\b", r"boleh jadi\b", r"tekaan", r"jika perlu meneka", r"kalau perlu meneka", r"agaknya\b", r"rasanya\b"),
    courtesy=(r"^(?:tentu|baik|terima kasih|hai|helo|soalan (?:yang )?(?:bagus|menarik|baik))\b(?:[ ,!]*(?:sahaja|atas|untuk|soalan|anda|yang|bagus|baik|menarik|terima|kasih|ini|berikut|jawapan|saya))*\W*$", r"semoga (?:\w+ )?(?:membantu|bermanfaat)", r"sila (?:tanya|hubungi)", r"jika (?:ada|anda) (?:\w+ )*(?:soalan|bantuan)", r"^(?:jawapan|berikut jawapan(?:nya)?)\W*$"),
    speaking=(r"pengetahuan saya", r"data latihan", r"sebagai (?:model|ai|pembantu)", r"saya (?:cadangkan|mencadangkan|syorkan)", r"sila (?:semak|rujuk|berikan)", r"anda (?:boleh|dapat) (?:menyemak|mencari|merujuk)", r"adakah anda", r"mungkin (?:maksud )?anda", r"jika anda"),
    announcing=(r"jawapan(?:nya| saya)? (?:ialah|adalah)\b", r"jawapan(?:nya)?:", r"tekaan saya", r"(?:itu|dia|ia|beliau) (?:ialah|adalah)\b"),
    agreeing=(r"^(?:ya|benar|betul)\W*$",),
    verbal=(r"\b(?:ialah|adalah|merupakan|iaitu|pada|telah|sudah|akan|sedang|pernah|ada|dapat|boleh|oleh|yang|berasal|bernama|dipanggil|berlaku|lahir|mati|jadi|menjadi|terletak|tinggal|tahu|punya|dari|daripada)\b", r"\b(?:me|ber|di|ter)[a-z]{3,}\b"),
    naming=(r"(?:ialah|adalah)\b(?! (?:sebuah|seorang|seekor|satu|suatu|yang|bandar yang|salah satu))", r"iaitu\b", r"yakni\b", r"bernama\b", r"dipanggil\b", r"bertajuk\b", r"dinamakan\b", r"oleh\b", r"daripada\b(?= \w+\W*$)"),
    counting=(r"tahun (?:berapa|bila)", r"berapa\b", r"bila(?:kah)?\b", r"pada tahun", r"berapakah\b", r"tarikh\b", r"bulan apa"),
    common=word_set("yang di ke dari daripada dan atau pada untuk dengan oleh adalah ialah itu ini tersebut telah sudah akan sedang pernah ada para saintis penyelidik orang ia dia mereka beliau saya kami kita anda nya tahun hari bulan nama ibu negara bandar pertama juga sangat lebih selepas sebelum semasa apabila kerana sehingga jadi maka secara dalam antara jawapan soalan baharu baru satu sebuah seorang menurut berdasarkan raja ratu jika semua tentang sebagai kota"),
)  # fmt: skip

VIETNAMESE = Phrases(
    "vi",
    refusing=(
        r"(?:tôi|chúng tôi|mình|em)(?: \w+)? ?(?:không|chưa|chẳng) (?:\w+ )?(?:biết|rõ|chắc|thể|có thông tin|tìm thấy|nhớ|có (?:đủ )?(?:thông tin|dữ liệu)|được biết)", r"^không (?:biết|rõ|chắc|có câu trả lời|thể trả lời|trả lời được)", r"không có câu trả lời",
        r"(?:không|chưa) (?:ai |một ai )?(?:có thể |thể )?(?:biết|biết được|xác định|xác định được|đoán trước|dự đoán|trả lời)\b", r"không ai (?:biết|có thể biết)", r"(?:không|chưa) (?:được )?(?:biết|rõ)\b", r"không (?:có|đủ) (?:đủ )?thông tin", r"chưa có (?:thông tin|câu trả lời)", r"(?:rất )?(?:xin lỗi|tiếc),? (?:nhưng )?(?:tôi|mình|em)", r"thông tin(?: \w+){0,5} (?:không có sẵn|chưa được)", r"chưa được (?:công bố|xác định|quyết định)", r"không thể (?:nào )?(?:biết|xác định|trả lời|dự đoán|đoán|xác nhận|kiểm chứng)",
    ),
    denying=(
        r"(?:không|chưa|chẳng)(?: hề| từng| bao giờ| thực sự| thật sự| còn)* (?:tồn tại|xảy ra|diễn ra|có thật|có thực|đúng|chính xác|phải là (?:một )?\w+ (?:có )?thật)", r"(?:chưa|không) (?:từng|bao giờ|hề)\b", r"không có(?: \w+){0,4}? (?:nào|tên là|tên|gọi là|như vậy|như thế)", r"không (?:có )?(?:ai|người nào|nước nào|vị vua nào)\b",
        r"hư cấu", r"bịa đặt", r"tưởng tượng", r"giả tưởng", r"không có (?:thật|thực|vua|thủ đô|giải)", r"làm gì có", r"(?:câu hỏi|tiền đề|giả định|giả thiết|thông tin|nhận định)(?: \w+){0,6}? (?:sai|không đúng|nhầm|không chính xác|nhầm lẫn)", r"(?:tiền đề|giả định|giả thiết) (?:\w+ )?sai", r"nhầm lẫn", r"không thể (?:nào )?(?:có|xảy ra|là|gửi|sử dụng|giành|đoạt|làm)", r"bất khả thi", r"(?:đã )?(?:qua đời|mất|chết|băng hà|tuyệt chủng) (?:từ|vào|năm|trước|lâu)", r"bị hủy bỏ", r"là (?:chuyện )?hoang đường",
    ),
    negating=(r"không\b", r"chưa\b", r"chẳng\b", r"chả\b", r"thay vì\b"),
    harmless=(r"không (?:chỉ|những)\b", r"không nghi ngờ", r"không lâu", r"không khí", r"không quân", r"không gian", r"hàng không"),
    contrast=(r"nhưng\b", r"tuy nhiên\b", r"mặc dù\b", r"tuy\b", r"dù\b", r"song\b", r"thế nhưng\b"),
    doubting=(r"có lẽ\b", r"có thể (?:là|đó là)\b", r"chắc là\b", r"đoán\b", r"hình như\b", r"biết đâu"),
    courtesy=(r"^(?:vâng|dạ|chắc chắn rồi|cảm ơn|xin chào|chào bạn|câu hỏi (?:rất )?(?:hay|thú vị))\b(?:[ ,!]*(?:bạn|đã|hỏi|về|câu|vì|rất|hay|thú|vị|cảm|ơn|này|sau|đây|là|trả|lời|của|tôi))*\W*$", r"hy vọng (?:\w+ )*(?:giúp|hữu ích)", r"(?:hãy|cứ) (?:hỏi|cho tôi biết)", r"nếu (?:bạn )?(?:có|cần) (?:\w+ )*(?:câu hỏi|giúp)", r"^(?:trả lời|câu trả lời|đáp án)\W*$", r"^sau đây là (?:câu )?trả lời"),
    speaking=(r"kiến thức của tôi", r"dữ liệu huấn luyện", r"(?:là|với tư cách) (?:một )?(?:mô hình|trí tuệ nhân tạo|trợ lý)", r"bạn (?:có thể|nên) (?:kiểm tra|tìm|tham khảo|tra)", r"vui lòng", r"có phải (?:ý )?bạn", r"có (?:thể|lẽ) bạn", r"nếu bạn"),
    announcing=(r"(?:câu trả lời|đáp án)(?: \w+)? là\b", r"(?:trả lời|đáp án):", r"(?:đó|ông ấy|bà ấy|ông|người đó) là\b"),
    agreeing=(r"^(?:vâng|đúng|đúng vậy|có)\W*$",),
    verbal=(r"(?<!\w)(?:là|được|bị|đã|đang|sẽ|có|gọi|tên|vào|của|bởi|sinh|nằm|do|làm|giành|đoạt|phát|sống|từ)(?!\w)",),
    naming=(r"(?:là|tên là|gọi là|mang tên|do|bởi|từ)\b(?! (?:một|người|thành phố|quốc gia|nơi|vua đã|cái|điều|vì|rất))",),
    counting=(r"năm nào", r"năm bao nhiêu", r"bao nhiêu", r"khi nào", r"ngày nào", r"tháng nào", r"mấy\b", r"bao giờ", r"ngày mấy"),
    common=word_set("là của và các những một trong cho với được bị đã đang sẽ có không này đó ở tại từ vào ra lên năm ngày tháng tên thủ đô nước vua ông bà họ tôi bạn người nhà khoa học đầu tiên cũng rất hơn sau trước khi vì nên do theo về bởi mới giữa thành phố câu trả lời hỏi nếu tất cả"),
)  # fmt: skip

FILIPINO = Phrases(
    "fil",
    refusing=(
        r"hindi ko (?:\w+ )?(?:alam|po alam|masagot|matukoy|masabi|tiyak|mahanap|makumpirma|kilala|maalala)", r"di ko (?:po )?alam", r"hindi (?:po )?ako (?:\w+ )?(?:sigurado|tiyak|makakasagot|makasagot|pamilyar)", r"wala (?:po )?akong (?:\w+ )?(?:alam|impormasyon|kaalaman|sagot|datos|access|ideya|tala)", r"walang (?:sagot|nakakaalam|makapagsasabi|impormasyon|nakaaalam|sapat na impormasyon|makakaalam)", r"hindi (?:pa )?(?:alam|nalalaman|matukoy|malalaman|mahuhulaan|masasagot|tiyak|matiyak|natutukoy|natitiyak|inaanunsyo|mapapatunayan)\b", r"(?:pasensya|paumanhin|patawad)(?: \w+)?,? (?:po )?(?:ngunit|pero|hindi|wala|ako)", r"imposibleng (?:malaman|matukoy|masagot)", r"hindi maaaring (?:malaman|matukoy|masagot)",
    ),
    denying=(
        r"walang (?:\w+ ){0,4}?(?:na may pangalang|na nagngangalang|na tinatawag|ganyan|ganoon|ganitong|hari|reyna|umiiral|tao|sinuman|ebidensya|tala|katibayan|kilalang|nangyari|naganap|nanalo|elemento|lungsod|bansa|pelikula|aklat|premyo|buwan)\b", r"wala(?:ng)? (?:naman )?(?:talagang |pang )?(?:ganyan|ganoon|ganito|ganoong|ganyang|ganitong)", r"hindi (?:\w+ )?(?:totoo|umiiral|nangyari|naganap|tunay|tama|posible|umiral|totoong|tunay na|kailanman|nag-iral)", r"hindi (?:ito |siya |sila )?kailanman", r"(?:kailanman|kahit kailan)(?: ay)? (?:hindi|di|walang)", r"kathang[- ]isip", r"gawa-gawa", r"imbento", r"piksiyon|piksyon", r"haka-haka", r"imposible\b", r"alamat lamang", r"(?:tanong|premisa|palagay|akala|pahayag)(?: \w+){0,6}? (?:mali|hindi tama|hindi totoo)", r"(?:maling|mali ang) (?:premisa|palagay|akala|tanong|impormasyon|paniniwala)", r"(?:patay|namatay|pumanaw|yumao) na\b", r"(?:na|nang) (?:patay|namatay|pumanaw)\b", r"(?:namatay|pumanaw|yumao) (?:siya |si \w+ |ito )?(?:noong|bago)", r"kinansela", r"wala pang\b", r"walang sinuman", r"wala ni isa", r"hindi pa (?:kailanman )?(?:nagkaroon|nangyari|nangyayari)",
    ),
    negating=(r"hindi\b", r"wala(?:ng)?\b", r"di\b", r"huwag\b", r"sa halip\b", r"wala\b"),
    harmless=(r"hindi (?:lamang|lang)\b", r"walang (?:duda|alinlangan|anuman)", r"hindi (?:nagtagal|kalaunan)"),
    contrast=(r"ngunit\b", r"pero\b", r"subalit\b", r"subali\b", r"gayunpaman\b", r"gayunman\b", r"bagaman\b", r"kahit (?:na )?\b(?=\w+ (?:hindi|wala))", r"datapwat\b", r"kundi\b"),
    doubting=(r"marahil\b", r"siguro\b", r"baka\b", r"maaaring (?:si|ang|ito)\b", r"hula\b", r"kung huhulaan", r"tantya"),
    courtesy=(r"^(?:sige|oo naman|salamat|maraming salamat|kumusta|magandang (?:tanong|araw|umaga))\b(?:[ ,!]*(?:po|sa|iyong|inyong|tanong|salamat|maganda|magandang|narito|ang|sagot|ko|na|iyan|yan))*\W*$", r"sana (?:ay )?(?:\w+ )?(?:nakatulong|makatulong)", r"(?:sabihin|ipaalam) (?:mo |ninyo |lang )?(?:sa akin|lang)", r"kung (?:may|mayroon) (?:\w+ )*(?:tanong|katanungan)", r"^(?:sagot|narito ang (?:aking )?sagot)\W*$"),
    speaking=(r"(?:aking|ang) kaalaman(?: ko)?", r"bilang (?:isang )?(?:ai|modelo|katulong)", r"iminumungkahi ko", r"maaari (?:mong|ninyong) (?:suriin|hanapin|tingnan|konsultahin)", r"pakisuri|pakitingnan|pakibigay", r"ang ibig (?:mo|ninyo)? ?bang sabihin", r"baka (?:ang )?(?:ibig|tinutukoy|naiisip|nalilito)", r"kung (?:ikaw|kayo|gusto|nais)"),
    announcing=(r"ang (?:aking )?sagot (?:ko )?ay\b", r"sagot:", r"(?:ito|siya|iyon) ay (?:si|ang)\b", r"hula ko"),
    agreeing=(r"^(?:oo|opo|tama|tama po)\W*$",),
    verbal=(r"\b(?:ay|ang|ng|nang|mga|may|mayroon|naging|nasa|noong|ni|kay|nina)\b", r"\b(?:nag|mag|um|na|ipin|pin|in)[a-z]{4,}\b"),
    naming=(r"(?<!siya )(?<!sila )ay (?:si |sina |ang )?(?!isang|isa|hindi|wala|may|nasa|noong|napaka|mga|na\w)", r"(?:si|ni|kay|sina|nina)\b", r"tinatawag na\b", r"pinangalanang\b", r"pinamagatang\b", r"gawa sa\b", r"mula sa\b"),
    counting=(r"anong (?:taon|petsa|araw|buwan)", r"kailan\b", r"ilan(?:g)?\b", r"gaano\b", r"magkano\b", r"taon\b"),
    common=word_set("ang ng nang mga sa na ay si ni kay sina nina at o kung para may mayroon ito iyon siya sila ako kami tayo ikaw kayo niya nila ko mo namin natin noong taon araw buwan kabisera bansa lungsod pangalan hari reyna una unang isa isang din rin napaka pagkatapos bago nang dahil kaya ayon sagot tanong mga siyentipiko bago bagong pagitan kasama lahat tungkol bilang lamang po"),
)  # fmt: skip

LATIN = (INDONESIAN, MALAY, VIETNAMESE, FILIPINO)
