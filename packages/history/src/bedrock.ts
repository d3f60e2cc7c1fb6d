export { recordFromReply, recordsFromMessages } from "./from-messages/bedrock.ts";
export { renderBedrock } from "./render-bedrock.ts";
export { validateBedrock } from "./validate-bedrock.ts";
