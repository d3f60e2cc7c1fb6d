// What the packages of Throughline share with each other. It may change in any release and is no part of the public interface.
export { lineText } from "./history-lines.ts";
export type { HistoryLine } from "./history-lines.ts";
export { plainText, quotedText, roleText } from "./plain-text.ts";
