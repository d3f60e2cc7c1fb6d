export { recordFromReply, recordsFromMessages } from "./from-messages/anthropic.ts";
export { renderAnthropic } from "./render-anthropic.ts";
export { validateAnthropic } from "./validate-anthropic.ts";
