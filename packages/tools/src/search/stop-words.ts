/**
 * These words say nothing about the topic of a question. Among a few episodes the rarity of a word does not show that.
 * Without this list 79.3 % of the evidence of LoCoMo is among the first five places, and 81.8 % with it.
 */
const english =
  "a an the of to in on at for with and or but is are was were be been being am do does did doing done have has had " +
  "having i you he she it we they me him her us them my your his its our their this that these those what which who " +
  "whom whose when where why how as by from about into than then so if not no can could will would should may might " +
  "must shall there here s t d ll m re ve don didn doesn isn wasn just also too very up out over after before during";

/** Words of a search have no accents: `für` is `fur`. */
const german =
  "der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren wird werden wurde wurden " +
  "hat haben hatte hatten ich du er sie es wir ihr mich dich uns euch ihm ihn ihnen mein dein sein unser nicht kein " +
  "keine in im an am auf aus bei mit nach von vom zu zum zur fur uber unter vor durch um als wie was wer wen wem wo " +
  "wann warum welche welcher welches welchen so auch nur noch schon man sich dass wenn";

export const stopWords: ReadonlySet<string> = new Set(`${english} ${german}`.split(" "));
