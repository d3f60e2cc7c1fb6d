export { renderBedrock } from "./render-bedrock.ts";
export type { BedrockBlock, BedrockMessage } from "./render-bedrock.ts";
export { validateBedrock } from "./validate-bedrock.ts";
