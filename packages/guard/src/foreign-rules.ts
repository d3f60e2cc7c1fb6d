import { linearExpression, type LinearExpression } from "@throughline/core/internal";
/** Matches an overflow in another language: a subject and a word for "too large" in the same sentence. */
export interface ForeignRule {
  readonly language: string;
  readonly subject: LinearExpression;
  readonly large: LinearExpression;
  /** Matches rate limits, quotas and output limits, which use the same words for "too large". */
  readonly never: LinearExpression;
}

/** Gateways translate the texts of providers, so the English rules miss them. Sentences are those of `plainText`. */
export const foreignRules: readonly ForeignRule[] = [
  {
    language: "zh",
    subject: linearExpression(
      String.raw`上下文|输入|輸入|提示词|提示詞|提示|消息|訊息|对话|對話|tokens?|文本|请求|請求|最大长度|最大長度|会话|历史|內容|内容|令牌|prompts?|contexts?|messages?|inputs?`,
    ),
    large: linearExpression(
      String.raw`超出|超过|超過|过长|過長|超长|超長|太长|太長|超限|溢出|过大|過大|过多|過多|达到上限|放不下|已满|已滿`,
    ),
    never: linearExpression(
      String.raw`每分钟|每分鐘|每秒|每天|每日|每月|频率|頻率|速率|限流|配额|配額|额度|額度|余额|餘額|频繁|頻繁|并发|输出长度|图片|圖片|圖像|图像|超时|逾时|令牌.{0,4}(?:无效|过期)|套餐|(?:请求|請求)(?:过多|過多|太多|数|數|次)|队列|隊列|排队|用户名|名称|标题|密码|文件|附件|字段|参数`,
    ),
  },
  {
    language: "ja",
    subject: linearExpression(String.raw`コンテキスト|プロンプト|入力|トークン|メッセージ|会話|履歴`),
    large: linearExpression(String.raw`超え|超過|長すぎ|多すぎ|大きすぎ|上限に達|オーバー|収まりません|収まらな`),
    never: linearExpression(String.raw`毎分|1分|一分|レート|クォータ|リクエスト数|残高|画像|出力|1日|期限|無効`),
  },
  {
    language: "ko",
    subject: linearExpression(String.raw`컨텍스트|콘텍스트|프롬프트|입력|토큰|메시지|대화|문맥`),
    large: linearExpression(String.raw`초과|너무 (?:깁|길|많|큽|크)|넘었|넘습|넘어|넘을`),
    never: linearExpression(String.raw`분당|속도|요금|할당량|요청 (?:수|한도)|하루|일일|이미지|출력|만료`),
  },
  {
    language: "es-pt-it",
    subject: linearExpression(
      String.raw`\b(?:contextos?|contesto|entradas?|prompts?|mensajes|mensagens|messaggi|tokens?|conversaci[oó]n|conversa|conversazione|ventana|janela|finestra|indicaci[oó]n|input)\b`,
    ),
    large: linearExpression(
      String.raw`exced\w*|supera\w*|sobrepas\w*|rebas\w*|ultrapass\w*|ecced\w*|demasiad\w* (?:larg|grand|extens)\w*|demasiados tokens|muito (?:long|grand)\w*|long[oa] demais|tokens demais|tropp[oi] (?:lung|grand|token)\w*|no cabe|não cabe`,
    ),
    never: linearExpression(
      String.raw`por minuto|por d[ií]a|por dia|por segundo|al minuto|al giorno|cuota|cota|quota|tasa|taxa de|frecuencia|frequ|solicitudes por|richieste|saldo|imagen|imagem|immagine|salida|saída|uscita|caduc|expir|inv[aá]lid|mensual|mensal|mensil|diari|giornalier|plan\b|piano\b`,
    ),
  },
  {
    language: "fr",
    subject: linearExpression(
      String.raw`\b(?:contexte|entrée|prompts?|invite|requête|messages|jetons|tokens|conversation|fenêtre|historique)(?![a-zà-ÿ])`,
    ),
    large: linearExpression(
      String.raw`dépass\w*|excèd\w*|excéd\w*|trop (?:long|grand|volumineu)\w*|trop de (?:jetons|tokens)|ne tien\w* pas|supérieure? (?:à|au)`,
    ),
    never: linearExpression(
      String.raw`par minute|par jour|par seconde|débit|quota|facturation|crédit|solde|fréquence|image|sortie|expir|invalide|mensuel|quotidien|abonnement|forfait`,
    ),
  },
  {
    language: "de",
    subject: linearExpression(
      String.raw`kontext\w*|eingabe\w*|prompts?\b|nachrichten|tokens?\b|tokenanzahl|tokenlimit|anfrage|unterhaltung|verlauf|gespräch`,
    ),
    large: linearExpression(
      String.raw`überschr\w*|übersteig\w*|überstieg\w*|zu (?:lang|groß|viele token)\w*|größer als|länger als|passt nicht|sprengt`,
    ),
    never: linearExpression(
      String.raw`pro minute|pro tag|pro sekunde|pro monat|rate|kontingent|guthaben|quote|abrechnung|bild|ausgabe|abgelaufen|ungültig|monatlich|täglich|tarif|zeitüber|frist`,
    ),
  },
  {
    language: "ru",
    subject: linearExpression(
      String.raw`контекст\S*|промпт\S*|запрос\S*|ввод\S*|входн\S*|токен\S*|сообщени\S*|подсказк\S*|окн\S*|диалог\S*|истори\S*`,
    ),
    large: linearExpression(
      String.raw`превы\S*|слишком (?:длин|больш|много)\S*|больше(?: \S+){0,2} (?:макс|допуст)\S*|не помеща\S*`,
    ),
    never: linearExpression(
      String.raw`в минуту|в секунду|в день|в сутки|в месяц|квот\S*|частот\S*|баланс|изображени\S*|ответ\S*|выход\S*|истёк|истек|недейств\S*|количество запросов|лимит запросов|тариф\S*|врем\S*`,
    ),
  },
  {
    language: "pl-tr-vi",
    subject: linearExpression(
      String.raw`kontekst\w*|okn[oa] kontekst\w*|wejści\w*|tokenów|bağlam\w*|istem\w*|girdi\w*|belirteç\w*|ngữ cảnh|đầu vào|lời nhắc|số token`,
    ),
    large: linearExpression(
      String.raw`przekr\w*|za dług\w*|zbyt dług\w*|aşı\w*|aşt\w*|çok uzun|vượt|quá dài|quá nhiều`,
    ),
    never: linearExpression(
      String.raw`na minutę|dziennie|limit zapytań|dakika|günlük|kota|mỗi phút|hạn ngạch|obraz|görsel|hình ảnh|çıktı|wyjści|đầu ra`,
    ),
  },
];
